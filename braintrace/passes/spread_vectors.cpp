// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/spread_vectors.h"

#include <algorithm>

#include "braintrace/ops/ops.h"
#include "braintrace/passes/lowered_impl.h"
#include "braintrace/passes/rewrite.h"

namespace braintrace {
namespace {

constexpr std::int64_t kManyMatrices = 16;

// One operand of a product and what becomes of its axes.
struct Side {
  Value value;
  const Ints &batch, &contract;

  std::int64_t num_free() const {
    return value.rank() - static_cast<std::int64_t>(batch.size() + contract.size());
  }
};

bool fits(const Side& matrices, const Side& vectors) {
  const std::int64_t last = matrices.value.rank() - 1;
  return vectors.num_free() == 0 && matrices.num_free() > 0 &&
         contains(matrices.batch, last) && matrices.value.dim(last) >= kManyMatrices &&
         std::all_of(matrices.contract.begin(), matrices.contract.end(),
                     [&](std::int64_t a) {
                       return a < static_cast<std::int64_t>(matrices.contract.size());
                     });
}

// The vectors with their axes where those of the matrices are, size 1 for the free ones.
Value aligned(const Side& vectors, const Side& matrices) {
  Ints order;
  Shape shape;
  for (std::int64_t a = 0; a < matrices.value.rank(); ++a) {
    const auto from = [&](const Ints& mine, const Ints& theirs) {
      const auto it = std::find(mine.begin(), mine.end(), a);
      if (it != mine.end())
        order.push_back(theirs[static_cast<std::size_t>(it - mine.begin())]);
      return it != mine.end();
    };
    const bool shared =
        from(matrices.batch, vectors.batch) || from(matrices.contract, vectors.contract);
    shape.push_back(shared ? matrices.value.dim(a) : 1);
  }
  return reshape(transpose(vectors.value, order), shape);
}

Value spread(const Side& matrices, const Side& vectors) {
  const auto num_summed = static_cast<std::int64_t>(matrices.contract.size());
  const Value y =
      sum(matrices.value * aligned(vectors, matrices), {.axes = iota_ints(num_summed)});
  Ints order;  // batch axes, then free ones
  for (std::int64_t a : matrices.batch) order.push_back(a - num_summed);
  for (std::int64_t a = num_summed; a < matrices.value.rank(); ++a)
    if (!contains(matrices.batch, a)) order.push_back(a - num_summed);
  return transpose(y, order);
}

}  // namespace

Graph spread_vectors(const Graph& g) {
  const LoweredGraph lowered(g);
  RewriteRules rules{.sub_graph = spread_vectors};
  rules.old_node = [&](Builder&, std::size_t i, std::span<const Value> env) -> Rewrite {
    const Node& n = g.nodes()[i];
    const lowering::Gemm* gemm = plain_gemm(lowered, n);
    if (!gemm || gemm->lhs_contract.empty() || !is_float(g.type(n.outputs[0]).dtype))
      return std::nullopt;
    const Side l{env[n.inputs[0].index], gemm->lhs_batch, gemm->lhs_contract};
    const Side r{env[n.inputs[1].index], gemm->rhs_batch, gemm->rhs_contract};
    if (fits(l, r)) return {{spread(l, r)}};
    if (fits(r, l)) return {{spread(r, l)}};
    return std::nullopt;
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
