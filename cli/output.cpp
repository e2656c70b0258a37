// SPDX-License-Identifier: Apache-2.0
#include "output.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

#include "braintrace/base/error.h"
#include "braintrace/io/atomic_file.h"

namespace braintrace::cli {

namespace {

namespace fs = std::filesystem;

// A device or a pipe: there is nothing to replace.
bool is_stream(const std::string& file) {
  std::error_code unknown;
  return fs::exists(file, unknown) && !fs::is_regular_file(file, unknown) &&
         !fs::is_directory(file, unknown);
}

void write_stream(const std::string& text, const std::string& file) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  BT_REQUIRE_KIND(out, ErrorKind::runtime, fmt::format("cannot write '{}'", file));
}

template <class Json>
std::string replaced_text(const Json& j) {
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

void keep_closed_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0 &&
        open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
      return;
}

void write_text(const std::string& text, const std::string& file) {
  if (file.empty()) {
    const bool all = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    BT_REQUIRE_KIND(all && std::fflush(stdout) == 0 && std::ferror(stdout) == 0,
                    ErrorKind::runtime, "cannot write to standard output");
    return;
  }
  if (is_stream(file)) return write_stream(text, file);
  try {
    write_file_atomically(file, text);
  } catch (const UserError& e) {
    throw UserError(ErrorKind::runtime,
                    fmt::format("cannot write '{}': {}", file, e.what()));
  }
}

std::string counted(std::int64_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

void tell(std::string_view text, std::FILE* stream) {
  if (std::fwrite(text.data(), 1, text.size(), stream) == text.size())
    std::fflush(stream);
}

std::string json_text(const nlohmann::json& j) { return replaced_text(j); }
std::string json_text(const nlohmann::ordered_json& j) { return replaced_text(j); }

void require_writable(const std::string& file) {
  if (file.empty()) return;
  const fs::path folder = fs::absolute(file).parent_path();
  std::error_code unknown;
  const char* reason = nullptr;
  if (fs::is_directory(file, unknown))
    reason = "it is a folder";
  else if (!is_stream(file) && access(folder.c_str(), W_OK | X_OK) != 0)
    reason = std::strerror(errno);
  else if (fs::exists(file, unknown) && access(file.c_str(), W_OK) != 0)
    reason = std::strerror(errno);
  BT_REQUIRE_KIND(reason == nullptr, ErrorKind::runtime,
                  fmt::format("cannot write '{}': {}", file, reason));
}

bool is_terminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

std::string text_table(const std::vector<std::string>& head,
                       const std::vector<std::vector<std::string>>& rows,
                       std::size_t left) {
  std::vector<std::size_t> widths;
  for (const std::string& h : head) widths.push_back(h.size());
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], row[c].size());
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text = " ";
    for (std::size_t c = 0; c < cells.size(); ++c)
      text += c < left ? fmt::format(" {:<{}} ", cells[c], widths[c])
                       : fmt::format(" {:>{}} ", cells[c], widths[c]);
    return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  };
  std::string text = line(head);
  std::vector<std::string> rule;
  for (const std::size_t w : widths) rule.push_back(std::string(w, '-'));
  text += line(rule);
  for (const auto& row : rows) text += line(row);
  return text;
}

namespace {

// Means of equal shares of the values.
std::vector<double> columns_of(const std::vector<double>& values, std::size_t width) {
  const std::size_t n = std::min(width, values.size());
  std::vector<double> out;
  for (std::size_t c = 0; c < n; ++c) {
    const std::size_t from = c * values.size() / n, to = (c + 1) * values.size() / n;
    double sum = 0;
    for (std::size_t i = from; i < to; ++i) sum += values[i];
    out.push_back(sum / static_cast<double>(to - from));
  }
  return out;
}

}  // namespace

std::string text_plot(const std::vector<double>& values, const PlotOptions& o) {
  if (values.empty()) return "";
  const std::vector<double> columns =
      columns_of(values, static_cast<std::size_t>(o.width));
  double high = *std::max_element(columns.begin(), columns.end());
  if (!o.level_name.empty()) high = std::max(high, o.level);
  const double low = std::min(0.0, *std::min_element(columns.begin(), columns.end()));
  const double range = high > low ? high - low : 1;
  const auto row_of = [&](double v) {
    const double share = (v - low) / range * (o.height - 1);
    return o.height - 1 - static_cast<int>(std::lround(share));
  };
  std::vector<std::string> rows(static_cast<std::size_t>(o.height),
                                std::string(columns.size(), ' '));
  const int level = o.level_name.empty() ? -1 : row_of(o.level);
  if (level >= 0 && level < o.height)
    std::fill(rows[static_cast<std::size_t>(level)].begin(),
              rows[static_cast<std::size_t>(level)].end(), '.');
  for (std::size_t c = 0; c < columns.size(); ++c)
    rows[static_cast<std::size_t>(row_of(columns[c]))][c] = '*';
  std::string text;
  for (int r = 0; r < o.height; ++r) {
    const double v = high - range * r / (o.height - 1);
    const bool named = r == 0 || r == o.height - 1;
    std::string line = fmt::format("  {:>9} |{}", named ? number_text(v) : "",
                                   rows[static_cast<std::size_t>(r)]);
    if (r == level) line += " " + o.level_name;
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text + fmt::format("  {:>9} +{}\n", "", std::string(columns.size(), '-'));
}

std::string number_text(double value) { return fmt::format("{:.4g}", value); }

std::string count_text(std::int64_t n) {
  std::string text = fmt::format("{}", n);
  for (std::ptrdiff_t at = std::ssize(text) - 3; at > (n < 0 ? 1 : 0); at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::string duration_text(double seconds) {
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 7200) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string rate_text(double per_second) {
  if (per_second >= 1e6) return fmt::format("{:.1f}M", per_second / 1e6);
  if (per_second >= 1e3) return fmt::format("{:.1f}k", per_second / 1e3);
  return fmt::format("{:.1f}", per_second);
}

std::string percent_text(double share) {
  return share < 1e4 ? fmt::format("{:.1f} %", 100 * share)
                     : fmt::format("{:.3g} %", 100 * share);
}

namespace {

// Characters of a line of the terminal; many where it does not say.
std::size_t terminal_width() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 1000;
}

}  // namespace

ProgressLine::ProgressLine(bool wanted) : active_(wanted && is_terminal(stderr)) {}

void ProgressLine::show(std::int64_t done, std::int64_t total, double seconds,
                        std::string_view text) {
  constexpr int width = 16;
  constexpr double pause = 0.1;  // seconds between two pictures
  if (!active_ || (done < total && seconds - last_ < pause && last_ >= 0)) return;
  last_ = seconds;
  shown_ = true;
  const double share = static_cast<double>(done) / static_cast<double>(total);
  const int full = static_cast<int>(share * width);
  const std::string eta =
      done > 0 && done < total ? "  eta " + duration_text(seconds / share - seconds) : "";
  const std::string line =
      fmt::format("[{}{}] {:3.0f} %  {}{}", std::string(full, '#'),
                  std::string(width - full, '.'), 100 * share, text, eta);
  // A line that fills the terminal would wrap, and stay.
  tell("\r\x1b[K" + line.substr(0, terminal_width() - 1));
}

void ProgressLine::clear() {
  if (!shown_) return;
  tell("\r\x1b[K");
  shown_ = false;
}

}  // namespace braintrace::cli
