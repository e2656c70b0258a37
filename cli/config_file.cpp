// SPDX-License-Identifier: Apache-2.0
#include "config_file.h"

#include <cctype>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "braintrace/base/error.h"

namespace braintrace::cli {
namespace {

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' ||
         c == '-';
}

std::string_view without_spaces(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front())) != 0)
    s.remove_prefix(1);
  return s;
}

std::string_view without_name(std::string_view s) {
  while (!s.empty() && in_name(s.front())) s.remove_prefix(1);
  return s;
}

// Nothing, or one of `starts` and whatever follows it on one line.
bool ends_here(std::string_view s, std::string_view starts) {
  s = without_spaces(s);
  if (s.empty()) return true;
  return starts.find(s.front()) != std::string_view::npos &&
         s.find('\r') == std::string_view::npos;
}

bool is_config_line(std::string_view line) {
  if (ends_here(line, "#;")) return true;
  line = without_spaces(line);
  const bool section = line.front() == '[';
  if (section) line.remove_prefix(1);
  const std::string_view rest = without_name(line);
  if (rest.size() == line.size()) return false;
  if (!section) return ends_here(rest, "=");
  return rest.starts_with(']') && ends_here(rest.substr(1), "#;");
}

// Without the byte order mark, lines ended by \n.
std::istringstream config_text(std::istream& in) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text.starts_with(mark)) text.erase(0, mark.size());
  for (std::size_t at = text.find("\r\n"); at != std::string::npos;
       at = text.find("\r\n", at))
    text.erase(at, 1);
  return std::istringstream(text);
}

class AnyLineEnds : public CLI::ConfigTOML {
 public:
  std::vector<CLI::ConfigItem> from_config(std::istream& in) const override {
    std::istringstream text = config_text(in);
    return CLI::ConfigTOML::from_config(text);
  }
};

}  // namespace

std::shared_ptr<CLI::Config> config_format() { return std::make_shared<AnyLineEnds>(); }

void require_config_lines(const std::string& file) {
  std::ifstream bytes(file, std::ios::binary);
  std::istringstream in = config_text(bytes);
  int number = 1;
  for (std::string line; std::getline(in, line); ++number)
    BT_REQUIRE(is_config_line(line),
               fmt::format("line {} of '{}' is neither [command] nor name = value: '{}'",
                           number, file, line));
}

std::string config_complaint(const std::string& message) {
  const std::string twice = ": At Most 1 required but received ";
  if (const std::size_t at = message.find(twice);
      at != std::string::npos && message.starts_with("--"))
    return fmt::format("{} is given {} times", message.substr(0, at),
                       message.substr(at + twice.size()));
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
