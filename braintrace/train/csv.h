// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tables of numbers as text.
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braintrace/array/array.h"

namespace braintrace {

struct CsvTable {
  std::vector<std::string> header;  // empty when there is none
  Array values;                     // f64 [rows, columns]
};

struct CsvOptions {
  char separator = ',';
  std::optional<bool> header =
      {};  // default: the first line is one if it has a non-number
  // What an empty field stands for; absent: UserError.
  std::optional<double> missing = {};
};

// Fields may be quoted ("" is a quote inside); lines end with \n or \r\n; empty lines are
// skipped. UserError names line and column: not a number, a line of another length.
CsvTable parse_csv(std::string_view text, const CsvOptions& options = {});
CsvTable read_csv(const std::string& path, const CsvOptions& options = {});

// The whole file. UserError when it cannot be read or is larger than the limit.
std::string read_file(const std::string& path, std::size_t limit = std::size_t{1} << 32);

}  // namespace braintrace
