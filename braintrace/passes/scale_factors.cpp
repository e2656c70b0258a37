// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/scale_factors.h"

#include "braintrace/ops/ops.h"
#include "braintrace/passes/lowered_impl.h"
#include "braintrace/passes/rewrite.h"

namespace braintrace {
namespace {

// A factor is small when the product is at least so many times as large.
constexpr std::int64_t kTimes = 4;

class Scales {
 public:
  explicit Scales(const LoweredGraph& lowered) : lowered_(lowered), g_(lowered.graph()) {}

  // number * large, found at a multiplication.
  struct Scaled {
    ValueId number, large;
  };
  std::optional<Scaled> find(const Node& n) const {
    if (n.outputs.size() != 1 || !is_micro(lowered_.lowering(n), MicroOp::mul) ||
        !is_float(g_.type(n.outputs[0]).dtype))
      return std::nullopt;
    const std::int64_t size = g_.type(n.outputs[0]).size();
    for (const std::size_t side : {0U, 1U}) {
      const auto number = number_in(n.inputs[side]);
      const ValueId large = n.inputs[1 - side];
      if (number && !is_small(large, size) && takes(large, size))
        return Scaled{*number, large};
    }
    return std::nullopt;
  }

  // number * v, the factor multiplied where it is small.
  Value scaled(Builder& b, ValueId v, const Value& number, std::int64_t size,
               std::span<const Value> env) const {
    if (is_small(v, size)) return number * env[v.index];
    const Node& n = *lowered_.producer(v);
    std::vector<Value> in;
    for (ValueId i : n.inputs) in.push_back(env[i.index]);
    const auto scale = [&](std::size_t i) {
      in[i] = scaled(b, n.inputs[i], number, size, env);
    };
    if (adds(n)) {
      scale(0), scale(1);
    } else {
      scale(n.inputs.size() == 1 ? 0 : *factor(n, size));
    }
    return b.record(*n.op, in, n.attrs)[0];
  }

 private:
  bool is_small(ValueId v, std::int64_t size) const {
    return kTimes * g_.type(v).size() <= size;
  }
  // The number v shows at all positions.
  std::optional<ValueId> number_in(ValueId v) const {
    for (; g_.type(v).size() != 1; v = lowered_.producer(v)->inputs[0]) {
      const Node* n = lowered_.producer(v);
      if (!n || !view_axes(lowered_, *n)) return std::nullopt;
    }
    return v;
  }

  bool adds(const Node& n) const {
    const Lowering& l = lowered_.lowering(n);
    return is_micro(l, MicroOp::add) || is_micro(l, MicroOp::sub);
  }
  bool multiplies(const Node& n) const {
    return is_micro(lowered_.lowering(n), MicroOp::mul) || is_product(lowered_, n);
  }
  std::optional<std::size_t> factor(const Node& n, std::int64_t size) const {
    for (const bool small : {true, false})
      for (const std::size_t side : {0U, 1U})
        if (small ? is_small(n.inputs[side], size) : takes(n.inputs[side], size))
          return side;
    return std::nullopt;
  }

  // Can a multiplication of v go to small factors? What else is read stays as it is, so
  // nothing large may be made twice; views make nothing.
  bool takes(ValueId v, std::int64_t size) const {
    if (is_small(v, size)) return true;
    const Node* n = lowered_.producer(v);
    if (!n || n->outputs.size() != 1 || n->inputs.empty()) return false;
    const bool view = view_axes(lowered_, *n).has_value();
    if (lowered_.uses(v) != 1 && !view) return false;
    if (adds(*n)) return takes(n->inputs[0], size) && takes(n->inputs[1], size);
    if (multiplies(*n)) return factor(*n, size).has_value();
    return n->inputs.size() == 1 && has(n->op->traits, Trait::linear) &&
           g_.type(n->inputs[0]).dtype == g_.type(v).dtype && takes(n->inputs[0], size);
  }

  const LoweredGraph& lowered_;
  const Graph& g_;
};

}  // namespace

Graph scale_factors(const Graph& g) {
  const LoweredGraph lowered(g);
  const Scales scales(lowered);
  RewriteRules rules;
  rules.old_node = [&](Builder& b, std::size_t i, std::span<const Value> env) -> Rewrite {
    const Node& n = g.nodes()[i];
    const auto found = scales.find(n);
    if (!found) return std::nullopt;
    const Value number = reshape(env[found->number.index], Shape{});
    return {{scales.scaled(b, found->large, number, g.type(n.outputs[0]).size(), env)}};
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
