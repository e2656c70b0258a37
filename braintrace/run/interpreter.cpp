// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/interpreter.h"

#include <cmath>

#include <fmt/format.h>

#include "braintrace/ir/op_def.h"

namespace braintrace {
namespace {

void require_finite(const Node& n, std::span<const Array> outputs) {
  for (const Array& a : outputs) {
    if (!is_float(a.dtype())) continue;
    for (std::int64_t i = 0, size = a.size(); i < size; ++i)
      BT_REQUIRE_KIND(
          std::isfinite(a.at(i)), ErrorKind::runtime,
          fmt::format("interpret: {} gives {} at element {}{}", n.op->name, a.at(i), i,
                      n.loc ? fmt::format(" (at {})", to_string(n.loc)) : ""));
  }
}

}  // namespace

std::vector<Array> interpret(const Graph& g, std::span<const Array> inputs,
                             const InterpretOptions& options) {
  return eval_graph(g, inputs, [&](const Node& n, std::span<const Array> outputs) {
    if (options.check_finite) require_finite(n, outputs);
    if (options.observe) options.observe(n, outputs);
  });
}

}  // namespace braintrace
