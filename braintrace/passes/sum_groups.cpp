// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/sum_groups.h"

#include "braintrace/ops/ops.h"
#include "braintrace/passes/lowered_impl.h"
#include "braintrace/passes/rewrite.h"

namespace braintrace {
namespace {

// A sum over the groups of `conv`, whose outputs were split into groups by a reshape and
// perhaps put in another order.
struct SummedGroups {
  const Node* conv;
  const ConvGeometry* geometry;
  Ints order;  // of the axes, groups and outputs apart, behind the reshape
};

class GroupFinder {
 public:
  explicit GroupFinder(const LoweredGraph& lowered)
      : lowered_(lowered), g_(lowered.graph()) {}

  std::optional<SummedGroups> find(const Node& sum) const {
    if (!is_sum(lowered_.lowering(sum))) return std::nullopt;
    const Ints& axes = std::get<lowering::Reduce>(lowered_.lowering(sum)).axes;
    const Node* n = maker(sum.inputs[0]);
    SummedGroups found{nullptr, nullptr, iota_ints(g_.type(sum.inputs[0]).rank())};
    if (n)
      if (const auto* t = std::get_if<lowering::Transpose>(&lowered_.lowering(*n))) {
        found.order = t->permutation;
        n = maker(n->inputs[0]);
      }
    if (!n || !std::holds_alternative<lowering::Reshape>(lowered_.lowering(*n)))
      return std::nullopt;
    const Shape& apart = g_.type(n->outputs[0]).shape;
    found.conv = maker(n->inputs[0]);
    if (!found.conv || found.conv->inputs.size() != 2) return std::nullopt;
    const auto* conv = std::get_if<lowering::Conv>(&lowered_.lowering(*found.conv));
    if (!conv || conv->geometry.groups == 1) return std::nullopt;
    found.geometry = &conv->geometry;
    const std::int64_t axis = std::ssize(apart) - 2;  // of the groups
    return is_split(g_.type(n->inputs[0]).shape, apart, conv->geometry.groups) &&
                   contains(axes, inverse(found.order)[static_cast<std::size_t>(axis)])
               ? std::optional(found)
               : std::nullopt;
  }

 private:
  const Node* maker(ValueId v) const {
    return lowered_.uses(v) == 1 ? lowered_.producer(v) : nullptr;
  }
  // [.., groups * o] as [.., groups, o]?
  static bool is_split(const Shape& whole, const Shape& apart, std::int64_t groups) {
    return apart.size() == whole.size() + 1 &&
           std::equal(whole.begin(), whole.end() - 1, apart.begin()) &&
           apart[apart.size() - 2] == groups;
  }

  const LoweredGraph& lowered_;
  const Graph& g_;
};

// [window.., c, groups * o] as [window.., groups * c, o]
Value one_below_the_other(const Value& kernel, std::int64_t groups) {
  const std::int64_t rank = kernel.rank(), c = kernel.dim(rank - 2),
                     o = kernel.dim(rank - 1) / groups;
  Shape apart = kernel.shape();
  apart.resize(apart.size() - 2);
  Shape joined = apart;
  apart.insert(apart.end(), {c, groups, o});
  joined.insert(joined.end(), {groups * c, o});
  Ints order = iota_ints(rank + 1);
  std::swap(order[static_cast<std::size_t>(rank - 2)],
            order[static_cast<std::size_t>(rank - 1)]);
  return reshape(transpose(reshape(kernel, apart), order), joined);
}

}  // namespace

Graph sum_groups(const Graph& g) {
  const LoweredGraph lowered(g);
  const GroupFinder finder(lowered);
  RewriteRules rules{.sub_graph = sum_groups};
  rules.old_node = [&](Builder& b, std::size_t i, std::span<const Value> env) -> Rewrite {
    const Node& n = g.nodes()[i];
    const auto found = finder.find(n);
    if (!found) return std::nullopt;
    ConvGeometry together = *found->geometry;
    together.groups = 1;
    const auto& in = found->conv->inputs;
    const Value y = conv_general(
        env[in[0].index], one_below_the_other(env[in[1].index], found->geometry->groups),
        together);
    Shape apart = y.shape();
    apart.insert(apart.end() - 1, 1);
    const std::vector<Value> terms = {transpose(reshape(y, apart), found->order)};
    return b.record(*n.op, terms, n.attrs);
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
