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

std::string line(const FillStep& s, const std::string&) {
  return fmt::format("fill {} with {}\n", to_string(s.to), s.element.item());
}

std::string line(const FusedStep& s, const std::string&) {
  const std::string chain =
      std::visit([](const auto& p) { return p.describe(); }, s.program);
  return fmt::format("fused {}, {} in, {} out\n", chain, s.in.size(), s.out.size());
}

std::string line(const GemmStep& s, const std::string&) {
  return fmt::format("gemm {}x{}x{}{}{}{}{} ({}, {}) -> {}\n", s.spec.m, s.spec.k,
                     s.spec.n,
                     s.spec.batch == 1 ? "" : fmt::format(" times {}", s.spec.batch),
                     s.bias ? " with bias" : "", s.spec.beta != 0 ? " added" : "",
                     s.events     ? (s.packed_b ? " of events tiled" : " of events")
                     : s.packed_b ? " packed"
                                  : "",
                     to_string(s.a), to_string(s.b), to_string(s.c));
}

std::string line(const PackStep& s, const std::string&) {
  return fmt::format("{} {} -> {}\n", s.events ? "tile" : "pack", to_string(s.b),
                     s.to.buffer);
}

std::string line(const KernelStep& s, const std::string&) {
  constexpr const char* names[] = {"reduce",  "conv",   "gather",
                                   "scatter", "sparse", "sparse outer"};
  const auto* outer = std::get_if<SparseOuterKernel>(&s.kernel);
  return fmt::format("{}{} ({}) -> {}\n", names[s.kernel.index()],
                     outer && outer->adds() ? " added" : "", list(s.in),
                     to_string(s.out));
}

std::string line(const EvalStep& s, const std::string&) {
  return fmt::format("eval {} ({}) -> ({})\n", s.op->name, list(s.in), list(s.out));
}

std::string ways(const std::vector<Carry>& carry) {
  std::string text;
  for (const Carry& c : carry)
    text += fmt::format(" {}:{}", to_string(c.init.type()),
                        c.stacked >= 0   ? "stacked"
                        : c.entered >= 0 ? "stacked before"
                        : c.spare >= 0   ? "swapped"
                                         : "in place");
  return text;
}

std::string line(const ScanStep& s, const std::string& indent) {
  const std::string parts = s.sliced ? fmt::format(" in {} parts", s.sliced->parts) : "";
  return fmt::format("scan {}{}{}, carry{}, {} xs, {} ys\n{}", s.length,
                     s.reverse ? " reversed" : "", parts, ways(s.carry), s.xs.size(),
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

double us(std::int64_t ns) { return static_cast<double>(ns) * 1e-3; }

std::string block_text(const Block& b, const std::string& indent) {
  std::string text;
  for (const Step& s : b.steps) {
    if (s.runs > 0)
      text += fmt::format("{:9.2f} us at best, {:9.2f} x {:<4} ", us(s.best_ns),
                          us(s.ns) / static_cast<double>(s.runs), s.runs);
    text +=
        indent + std::visit([&](const auto& kind) { return line(kind, indent); }, s.kind);
  }
  return text;
}

}  // namespace

std::string describe(const Program& p) { return block_text(p.top, ""); }

}  // namespace braintrace::plan
