// SPDX-License-Identifier: Apache-2.0
// Splits lines and fields, reads numbers.
#include "braintrace/train/csv.h"

#include <charconv>
#include <fstream>
#include <iterator>

#include <fmt/core.h>

namespace braintrace {
namespace {

struct Line {
  std::size_t number;  // from 1
  std::vector<std::string> fields;
};

// Reads one field starting at `at`; leaves `at` on the separator, line end or text end.
std::string read_field(std::string_view text, std::size_t& at, char separator,
                       std::size_t line) {
  std::string field;
  const bool quoted = at < text.size() && text[at] == '"';
  if (!quoted) {
    while (at < text.size() && text[at] != separator && text[at] != '\n' &&
           text[at] != '\r')
      field += text[at++];
    return field;
  }
  for (++at;; ++at) {
    BT_REQUIRE(at < text.size(),
               fmt::format("parse_csv: line {}: a quoted field does not end", line));
    if (text[at] != '"') {
      field += text[at];
    } else if (at + 1 < text.size() && text[at + 1] == '"') {
      field += text[++at];
    } else {
      ++at;
      return field;
    }
  }
}

std::vector<Line> split(std::string_view text, char separator) {
  std::vector<Line> lines;
  std::size_t at = 0, number = 1;
  while (at < text.size()) {
    Line line{number, {}};
    for (;;) {
      line.fields.push_back(read_field(text, at, separator, number));
      if (at >= text.size() || text[at] != separator) break;
      ++at;
    }
    if (at < text.size() && text[at] == '\r') ++at;
    const bool ends = at >= text.size() || text[at] == '\n';
    BT_REQUIRE(ends,
               fmt::format("parse_csv: line {}: text follows a closed field", number));
    ++at;
    ++number;
    const bool empty = line.fields.size() == 1 && line.fields[0].empty();
    if (!empty) lines.push_back(std::move(line));
  }
  return lines;
}

std::optional<double> number_of(std::string_view field) {
  const auto first = field.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  field = field.substr(first, field.find_last_not_of(" \t") - first + 1);
  if (field[0] == '+') field.remove_prefix(1);
  double value = 0;
  const auto [end, error] =
      std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size()) return {};
  return value;
}

bool has_header(const Line& first, const CsvOptions& options) {
  if (options.header) return *options.header;
  for (const std::string& f : first.fields)
    if (!f.empty() && !number_of(f)) return true;
  return false;
}

}  // namespace

CsvTable parse_csv(std::string_view text, const CsvOptions& options) {
  std::vector<Line> lines = split(text, options.separator);
  CsvTable table;
  if (!lines.empty() && has_header(lines[0], options)) {
    table.header = std::move(lines[0].fields);
    lines.erase(lines.begin());
  }
  const std::size_t columns = !table.header.empty() ? table.header.size()
                              : lines.empty()       ? 0
                                                    : lines[0].fields.size();
  std::vector<double> values;
  for (const Line& line : lines) {
    BT_REQUIRE(line.fields.size() == columns,
               fmt::format("parse_csv: line {} has {} fields, expected {}", line.number,
                           line.fields.size(), columns));
    for (std::size_t c = 0; c < columns; ++c) {
      const std::string& field = line.fields[c];
      const auto value = field.empty() ? options.missing : number_of(field);
      BT_REQUIRE(value, fmt::format("parse_csv: line {}, field {}: not a number: '{}'",
                                    line.number, c + 1, field.substr(0, 40)));
      values.push_back(*value);
    }
  }
  table.values =
      array({static_cast<std::int64_t>(lines.size()), static_cast<std::int64_t>(columns)},
            values, DType::f64);
  return table;
}

CsvTable read_csv(const std::string& path, const CsvOptions& options) {
  return parse_csv(read_file(path), options);
}

std::string read_file(const std::string& path, std::size_t limit) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  BT_REQUIRE_KIND(in, ErrorKind::runtime, fmt::format("cannot open '{}'", path));
  const auto size = static_cast<std::int64_t>(in.tellg());
  BT_REQUIRE_KIND(size >= 0 && static_cast<std::size_t>(size) <= limit,
                  ErrorKind::runtime,
                  fmt::format("'{}' is not a file of at most {} bytes", path, limit));
  std::string bytes(static_cast<std::size_t>(size), '\0');
  in.seekg(0);
  in.read(bytes.data(), size);
  BT_REQUIRE_KIND(in.gcount() == size, ErrorKind::runtime,
                  fmt::format("cannot read '{}'", path));
  return bytes;
}

}  // namespace braintrace
