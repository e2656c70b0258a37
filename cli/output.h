// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where text goes, and how it looks in a terminal.
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace braintrace::cli {

// A closed standard stream stays closed: without this the next file would get its number,
// and what is meant for the terminal.
void keep_closed_streams();

// To a file, which is replaced as a whole, or to standard output when `file` is empty.
// UserError (runtime) when it cannot be written.
void write_text(const std::string& text, const std::string& file = "");

// The same error, with the reason, before any work is done. Writes nothing; an empty name
// is fine.
void require_writable(const std::string& file);

// "1 step", "3 steps".
std::string counted(std::int64_t n, const char* what);

// What may be lost: a stream that cannot be written to is no reason to stop. Of standard
// output, the next write_text says so.
void tell(std::string_view text, std::FILE* stream = stderr);

// In one line. Bytes that are no UTF-8 (names of files) are replaced.
std::string json_text(const nlohmann::json& j);
std::string json_text(const nlohmann::ordered_json& j);

bool is_terminal(std::FILE* stream);

// Rows under a head, columns as wide as they must be; numbers (all but the first
// `left` columns) to the right.
std::string text_table(const std::vector<std::string>& head,
                       const std::vector<std::vector<std::string>>& rows,
                       std::size_t left = 1);

// Values over time as a picture of characters, `height` rows high. A level drawn as a
// line of dots, when it is within the picture.
struct PlotOptions {
  int width = 64, height = 9;
  double level = 0;
  std::string level_name = {};  // empty: no level
};
std::string text_plot(const std::vector<double>& values, const PlotOptions& options);

std::string number_text(double value);      // 4 digits that count
std::string count_text(std::int64_t n);     // 12,345
std::string duration_text(double seconds);  // 850 ms, 12 s, 3 min 5 s
std::string rate_text(double per_second);   // 1.2k, 3.4M
std::string percent_text(double share);     // 12.3 %

// One line of progress on standard error that replaces itself; nothing when that is no
// terminal.
class ProgressLine {
 public:
  explicit ProgressLine(bool wanted);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  void show(std::int64_t done, std::int64_t total, double seconds, std::string_view text);
  void clear();

 private:
  bool active_;
  bool shown_ = false;
  double last_ = -1;
};

}  // namespace braintrace::cli
