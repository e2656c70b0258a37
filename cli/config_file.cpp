// SPDX-License-Identifier: Apache-2.0
#include "config_file.h"

#include <fstream>
#include <regex>

#include <fmt/format.h>

#include "braintrace/base/error.h"

namespace braintrace::cli {

void require_config_lines(const std::string& file) {
  static const std::regex known(
      R"(\s*|\s*[#;].*|\s*\[[\w.-]+\]\s*([#;].*)?|\s*[\w.-]+\s*(=.*)?)");
  std::ifstream in(file);
  int number = 1;
  for (std::string line; std::getline(in, line); ++number)
    BT_REQUIRE(std::regex_match(line, known),
               fmt::format("line {} of '{}' is neither [command] nor name = value: '{}'",
                           number, file, line));
}

std::string config_complaint(const std::string& message) {
  static const std::regex twice(R"((--[\w-]+): At Most 1 required but received (\d+))");
  std::smatch found;
  if (std::regex_match(message, found, twice))
    return fmt::format("{} is given {} times", found[1].str(), found[2].str());
  const std::string start = "INI was not able to parse ";
  if (!message.starts_with(start)) return message;
  const std::string name = message.substr(start.size());
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos)
    return fmt::format(
        "the config file has '{}' outside of a command; options stand under [command], "
        "for example [train]",
        name);
  const std::string command = name.substr(0, dot);
  if (name.substr(dot + 1) == "++")  // how the parser opens a section
    return fmt::format("the config file has [{}], which is no command", command);
  return fmt::format(
      "the config file has '{}' under [{}], which is no option of it; braintrace {} "
      "--help lists them",
      name.substr(dot + 1), command, command);
}

}  // namespace braintrace::cli
