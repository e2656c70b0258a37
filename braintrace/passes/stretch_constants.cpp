// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/stretch_constants.h"

#include <cstring>

#include "braintrace/ir/constant.h"
#include "braintrace/ops/ops.h"
#include "braintrace/passes/rewrite.h"

namespace braintrace {
namespace {

// Compares bits, and stops at the first difference.
bool is_splat(const Array& a) {
  const std::size_t element = size_of(a.dtype());
  const auto* bytes = static_cast<const std::byte*>(a.raw());
  return std::memcmp(bytes, bytes + element, a.num_bytes() - element) == 0;
}

}  // namespace

Graph stretch_constants(const Graph& g) {
  RewriteRules rules{.sub_graph = stretch_constants};
  rules.old_node = [&](Builder& b, std::size_t i, std::span<const Value>) -> Rewrite {
    const Array* a = literal(g.nodes()[i]);
    if (!a || a->size() < 2) return std::nullopt;
    const Array packed = a->contiguous();
    if (!is_splat(packed)) return std::nullopt;
    const Ints zero(packed.shape().size(), 0), one(packed.shape().size(), 1);
    const Array first = packed.sliced(zero, one, one).reshaped({});
    return {{broadcast_to(b.constant(first), packed.shape())}};
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
