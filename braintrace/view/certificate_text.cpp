// SPDX-License-Identifier: Apache-2.0
#include "braintrace/view/certificate_text.h"

#include <algorithm>

#include <fmt/format.h>

namespace braintrace {
namespace {

template <class Rows, class Name>
std::size_t width_of(const Rows& rows, std::size_t least, const Name& name) {
  for (const auto& r : rows) least = std::max(least, name(r).size());
  return least;
}

}  // namespace

std::string to_text(const CertificateData& c) {
  std::string out = fmt::format(
      "{}, history {}: {} steps in windows of {}\n"
      "against back-propagation through time: cosine {:.4f}, relative error {:.1e}; "
      "mean loss {:.4g}\n\n",
      c.algorithm, c.history, c.steps, c.window, c.cosine, c.error, c.loss);
  const std::size_t w =
      width_of(c.rows, 9, [](const CertificateRow& r) { return r.parameter; });
  out += fmt::format("{:<{}}  {:<11}  {:>8}  {:>8}  {:>9}  {}\n", "parameter", w,
                     "verdict", "cosine", "error", "|bptt|", "because");
  for (const CertificateRow& r : c.rows)
    out += fmt::format("{:<{}}  {:<11}  {:>8.4f}  {:>8.1e}  {:>9.2e}  {}\n", r.parameter,
                       w, r.verdict, r.cosine, r.error, r.bptt_norm, r.because);
  const std::size_t v =
      width_of(c.states, 5, [](const CertificateState& s) { return s.state; });
  out += fmt::format("\n{:<{}}  {:>9}  {:>9}  {}\n", "state", v, "largest", "change",
                     "firing");
  for (const CertificateState& s : c.states)
    out += fmt::format("{:<{}}  {:>9.2e}  {:>9.2e}  {}\n", s.state, v, s.largest,
                       s.change, s.rate ? fmt::format("{:.4f}", *s.rate) : "-");
  for (const std::string& warning : c.warnings) out += "\nwarning: " + warning;
  if (!c.warnings.empty()) out += "\n";
  return out;
}

}  // namespace braintrace
