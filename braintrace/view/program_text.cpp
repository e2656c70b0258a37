// SPDX-License-Identifier: Apache-2.0
#include "braintrace/view/program_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/ir/print.h"
#include "braintrace/view/step_names.h"

namespace braintrace {
namespace {

struct Line {
  std::string text, comment;
};

// Names of the values a line of the main program defines, from its leading "%4:f32[2]".
std::string exit_comment(const std::string& line, const view::StepNames& names) {
  std::string out;
  std::string_view defined = std::string_view(line).substr(0, line.find(" = "));
  while (!defined.empty() && defined[0] == '%') {
    const auto id =
        ValueId{static_cast<std::uint32_t>(std::stoul(std::string(defined.substr(1))))};
    if (const auto it = names.exit.find(id); it != names.exit.end())
      out += (out.empty() ? "" : ", ") + it->second;
    const auto next = defined.find(", %");
    defined = next == std::string_view::npos ? "" : defined.substr(next + 2);
  }
  return out;
}

std::vector<Line> input_lines(const StepModel& step, const view::StepNames& names) {
  std::vector<Line> lines;
  for (ValueId v : step.program.inputs())
    lines.push_back({fmt::format("{} %{}:{}", lines.empty() ? "in" : "  ", v.index,
                                 to_string(step.program.type(v))),
                     names.entry.at(v)});
  if (lines.empty()) lines.push_back({"in", ""});
  return lines;
}

}  // namespace

std::string program_text(const StepModel& step) {
  constexpr std::size_t kWidest = 60;  // longer lines do not move the comments
  const view::StepNames names = view::step_names(step);
  std::vector<Line> lines = input_lines(step, names);
  const std::string text = print(step.program);
  std::size_t at = text.find('\n') + 1;  // the inputs are shown one per line instead
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    lines.push_back({line, line[0] == '%' ? exit_comment(line, names) : ""});
    at = end + 1;
  }
  std::size_t width = 0;
  for (const Line& l : lines)
    if (!l.comment.empty()) width = std::max(width, std::min(l.text.size(), kWidest));
  std::string out;
  for (const Line& l : lines)
    out += l.comment.empty() ? l.text + "\n"
                             : fmt::format("{:<{}}  // {}\n", l.text, width, l.comment);
  return out;
}

}  // namespace braintrace
