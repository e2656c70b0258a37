// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/run_source.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "braintrace/testing/close.h"
#include "braintrace/testing/temporary_folder.h"

namespace braintrace::testing {

std::vector<double> run_source(const std::string& source, ExportLanguage language) {
  const TemporaryFolder folder;
  const bool cpp = language == ExportLanguage::cpp17;
  const std::string file = folder / (cpp ? "main.cpp" : "main.c");
  const std::string program = folder / "program", out = folder / "out";
  std::ofstream(file) << source;
  const std::string command = fmt::format(
      "{0} -Wall -Wextra -Werror -O2 {1} -o {2} -lm > {3} 2>&1 && {2} > {3} 2>&1",
      cpp ? "g++ -std=c++17" : "gcc -std=c99", file, program, out);
  const int status = std::system(command.c_str());
  std::stringstream text;
  text << std::ifstream(out).rdbuf();
  if (status != 0)
    throw CheckFailure(
        fmt::format("run_source: status {}: {}\n{}", status, text.str(), source));
  std::vector<double> numbers;
  for (std::string word; text >> word;)
    numbers.push_back(std::strtod(word.c_str(), nullptr));
  return numbers;
}

}  // namespace braintrace::testing
