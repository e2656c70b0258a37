// SPDX-License-Identifier: Apache-2.0
// A plan as text, one line per kernel.
#include <fmt/format.h>

#include "braintrace/run/plan_program_impl.h"

namespace braintrace::plan {
namespace {

std::string block_text(const Block& b, const std::string& indent);

std::string list(const std::vector<View>& views) {
  std::string text;
  for (const View& v : views) text += (text.empty() ? "" : ", ") + to_string(v);
  return text;
}

std::string line(const CopyStep& s, const std::string&) {
  return fmt::format("copy {} -> {}\n", to_string(s.from), to_string(s.to));
}

std::string line(const EvalStep& s, const std::string&) {
  return fmt::format("eval {} ({}) -> ({})\n", s.op->name, list(s.in), list(s.out));
}

std::string ways(const std::vector<Carry>& carry) {
  std::string text;
  for (const Carry& c : carry)
    text += fmt::format(" {}:{}", to_string(c.init.type()),
                        c.stacked >= 0 ? "stacked"
                        : c.spare >= 0 ? "swapped"
                                       : "in place");
  return text;
}

std::string line(const ScanStep& s, const std::string& indent) {
  return fmt::format("scan {}{}, carry{}, {} xs, {} ys\n{}", s.length,
                     s.reverse ? " reversed" : "", ways(s.carry), s.xs.size(),
                     s.ys.size(), block_text(*s.body, indent + "  "));
}

std::string line(const WhileStep& s, const std::string& indent) {
  return fmt::format("while, carry{}\n{}{}do\n{}", ways(s.carry),
                     block_text(*s.condition, indent + "  "), indent,
                     block_text(*s.body, indent + "  "));
}

std::string line(const CondStep& s, const std::string& indent) {
  return fmt::format("cond\n{}{}else\n{}", block_text(*s.if_true, indent + "  "), indent,
                     block_text(*s.if_false, indent + "  "));
}

std::string block_text(const Block& b, const std::string& indent) {
  std::string text;
  for (const Step& s : b.steps)
    text +=
        indent + std::visit([&](const auto& kind) { return line(kind, indent); }, s.kind);
  return text;
}

}  // namespace

std::string describe(const Program& p) { return block_text(p.top, ""); }

}  // namespace braintrace::plan
