// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/unit_products.h"

#include <algorithm>

#include "braintrace/ir/constant.h"
#include "braintrace/ops/ops.h"
#include "braintrace/passes/lowered_impl.h"
#include "braintrace/passes/narrow_uniform.h"
#include "braintrace/passes/rewrite.h"
#include "braintrace/passes/spread_product_impl.h"

namespace braintrace {
namespace {

// Zero unless both axes have the same index.
struct Diagonal {
  std::int64_t first, second;

  friend bool operator==(const Diagonal&, const Diagonal&) = default;
  std::int64_t other(std::int64_t axis) const { return axis == first ? second : first; }
};

// Whether a is 1 where its indices along both axes are the same, and 0 elsewhere.
bool are_units_along(const Array& a, const Diagonal& d) {
  const Ints strides = row_major_strides(a.shape());
  const auto index = [&](std::int64_t i, std::int64_t axis) {
    const auto k = static_cast<std::size_t>(axis);
    return i / strides[k] % a.shape()[k];
  };
  for (std::int64_t i = 0; i < a.size(); ++i)
    if (a.at(i) != (index(i, d.first) == index(i, d.second) ? 1.0 : 0.0)) return false;
  return true;
}

std::optional<Diagonal> unit_axes(const Array& a) {
  if (!is_float(a.dtype()) || a.size() < 2) return std::nullopt;
  for (std::int64_t first = 0; first < a.rank(); ++first)
    for (std::int64_t second = first + 1; second < a.rank(); ++second) {
      const std::int64_t n = a.shape()[static_cast<std::size_t>(first)];
      if (n > 1 && a.shape()[static_cast<std::size_t>(second)] == n &&
          are_units_along(a, {first, second}))
        return Diagonal{first, second};
    }
  return std::nullopt;
}

class Diagonals {
 public:
  explicit Diagonals(const LoweredGraph& lowered)
      : lowered_(lowered), g_(lowered.graph()), found_(g_.num_values()) {
    if (std::none_of(g_.nodes().begin(), g_.nodes().end(), are_units)) return;
    std::vector<Shape> inputs;
    for (const Type& t : g_.input_types()) inputs.push_back(t.shape);
    uniform_ = uniform_shapes(g_, inputs, all_values());
    for (const Node& n : g_.nodes())
      if (n.outputs.size() == 1) found_[n.outputs[0].index] = find(n);
  }

  const std::optional<Diagonal>& of(ValueId v) const { return found_[v.index]; }

  // The diagonal of v lying along `axis`; the other one, and axes v repeats along, may be
  // of size 1. Nullopt: ones.
  std::optional<Value> along(ValueId v, std::int64_t axis,
                             std::span<const Value> env) const {
    const Node& n = *lowered_.producer(v);
    if (literal(n)) return std::nullopt;
    if (const auto axes = view_axes(lowered_, n)) return shown(n, *axes, axis, env);
    const Lowering& l = lowered_.lowering(n);
    const auto x = factor(n.inputs[0], *of(v), axis, env);
    if (is_micro(l, MicroOp::select)) return chosen(n, v, axis, *x, env);
    if (is_micro(l, MicroOp::neg)) return -x.value_or(one_for(v));
    const auto y = factor(n.inputs[1], *of(v), axis, env);
    if (is_micro(l, MicroOp::div)) return x.value_or(one_for(v)) / *y;
    return x && y ? *x * *y : (x ? x : y);
  }

  Value one_for(ValueId v) const {
    const Type& t = g_.type(v);
    return full(Shape(t.shape.size(), 1), 1, t.dtype);
  }

 private:
  static bool are_units(const Node& n) {
    const Array* a = literal(n);
    return a && unit_axes(*a);
  }

  std::vector<ValueId> all_values() const {
    std::vector<ValueId> out;
    for (std::uint32_t i = 0; i < g_.num_values(); ++i) out.push_back(ValueId{i});
    return out;
  }

  bool repeats(ValueId v, std::int64_t axis) const {
    return uniform_[v.index][static_cast<std::size_t>(axis)] == 1;
  }
  bool repeats_along_one(ValueId v, const Diagonal& d) const {
    return repeats(v, d.first) || repeats(v, d.second);
  }

  std::optional<Diagonal> find(const Node& n) const {
    if (const Array* a = literal(n)) return unit_axes(*a);
    if (n.inputs.empty()) return std::nullopt;
    const auto& d = of(n.inputs[0]);
    if (const auto axes = view_axes(lowered_, n)) {
      if (!d) return std::nullopt;
      const std::int64_t first = (*axes)[static_cast<std::size_t>(d->first)];
      const std::int64_t second = (*axes)[static_cast<std::size_t>(d->second)];
      return first < 0 || second < 0 ? std::nullopt
                                     : std::optional(Diagonal{first, second});
    }
    const Lowering& l = lowered_.lowering(n);
    if (is_micro(l, MicroOp::neg)) return d;
    if (is_micro(l, MicroOp::mul))
      return d && goes_with(n.inputs[1], *d) ? d : swapped(n);
    if (is_micro(l, MicroOp::div) && d && repeats_along_one(n.inputs[1], *d)) return d;
    if (is_micro(l, MicroOp::select)) return of_choice(n);
    return std::nullopt;
  }
  // Of two choices one, where the other is zero.
  std::optional<Diagonal> of_choice(const Node& n) const {
    const bool first = is_zero(n.inputs[2]);
    if (!first && !is_zero(n.inputs[1])) return std::nullopt;
    const auto& d = of(n.inputs[first ? 1 : 2]);
    return d && repeats_along_one(n.inputs[0], *d) ? d : std::nullopt;
  }
  bool is_zero(ValueId v) const {
    const Node* n = lowered_.producer(v);
    while (n && !literal(*n) && view_axes(lowered_, *n))
      n = lowered_.producer(n->inputs[0]);
    const Array* a = n ? literal(*n) : nullptr;
    if (!a || a->size() == 0) return false;
    return a->size() == 1 ? a->at(0) == 0 : splat_of(*n) && a->at(0) == 0;
  }
  bool goes_with(ValueId v, const Diagonal& d) const {
    return of(v) == d || repeats_along_one(v, d);
  }
  std::optional<Diagonal> swapped(const Node& n) const {
    const auto& d = of(n.inputs[1]);
    return d && repeats_along_one(n.inputs[0], *d) ? d : std::nullopt;
  }

  // One side of a product: diagonal itself, or its part that meets the diagonal.
  std::optional<Value> factor(ValueId v, const Diagonal& d, std::int64_t axis,
                              std::span<const Value> env) const {
    if (of(v) == d) return along(v, axis, env);
    const std::int64_t dropped = repeats(v, d.other(axis)) ? d.other(axis) : axis;
    const Value& x = env[v.index];
    Shape size = x.shape();
    size[static_cast<std::size_t>(dropped)] = 1;
    const Value kept = slice(x, Ints(size.size(), 0), size);
    if (dropped != axis) return kept;
    Ints order = iota_ints(x.rank());
    std::swap(order[static_cast<std::size_t>(d.first)],
              order[static_cast<std::size_t>(d.second)]);
    return transpose(kept, order);
  }

  // The diagonal of a choice between units and zero by `condition`.
  Value chosen(const Node& n, ValueId v, std::int64_t axis, const Value& condition,
               std::span<const Value> env) const {
    const bool first = is_zero(n.inputs[2]);
    const Value x = along(n.inputs[first ? 1 : 2], axis, env).value_or(one_for(v));
    return first ? select(condition, x, 0) : select(condition, 0, x);
  }

  // The diagonal of what a view shows, its axes where the view has them.
  std::optional<Value> shown(const Node& n, const Ints& axes, std::int64_t axis,
                             std::span<const Value> env) const {
    const auto own = static_cast<std::int64_t>(std::find(axes.begin(), axes.end(), axis) -
                                               axes.begin());
    const auto x = along(n.inputs[0], own, env);
    if (!x) return std::nullopt;
    return with_axes_at(*x, axes, g_.type(n.outputs[0]).rank());
  }

  const LoweredGraph& lowered_;
  const Graph& g_;
  std::vector<Shape> uniform_;
  std::vector<std::optional<Diagonal>> found_;
};

// A product whose sum meets a diagonal: one of its terms is not zero.
struct UnitProduct {
  ValueId units;
  std::int64_t summed;  // axis of the units
  SpreadAxes to;
};

class UnitFinder {
 public:
  explicit UnitFinder(const LoweredGraph& lowered)
      : lowered_(lowered), g_(lowered.graph()), diagonals_(lowered) {}

  const Diagonals& diagonals() const { return diagonals_; }

  std::optional<UnitProduct> find(const Node& n, const lowering::Gemm& m) const {
    const auto num_batch = static_cast<std::int64_t>(m.lhs_batch.size());
    const std::int64_t num_left =
        rank(n.inputs[0]) - num_batch - static_cast<std::int64_t>(m.lhs_contract.size());
    const std::int64_t num_axes = rank(n.outputs[0]);
    if (auto u = side(n.inputs[0], m.lhs_batch, m.lhs_contract, num_batch, num_axes))
      return u;
    return side(n.inputs[1], m.rhs_batch, m.rhs_contract, num_batch + num_left, num_axes);
  }

 private:
  std::int64_t rank(ValueId v) const { return g_.type(v).rank(); }

  // `at`: the axis of the product that the free ones of this operand start at.
  std::optional<UnitProduct> side(ValueId v, const Ints& batch, const Ints& contract,
                                  std::int64_t at, std::int64_t num_axes) const {
    const auto& d = diagonals_.of(v);
    if (!d) return std::nullopt;
    const std::int64_t summed = contains(contract, d->first) ? d->first : d->second;
    const std::int64_t free = d->other(summed);
    if (!contains(contract, summed) || contains(contract, free) || contains(batch, free))
      return std::nullopt;
    for (std::int64_t a = 0; a < free; ++a)
      at += contains(contract, a) || contains(batch, a) ? 0 : 1;
    UnitProduct u{v, summed, {iota_ints(num_axes), {}, num_axes}};
    u.to.axes[static_cast<std::size_t>(at)] = -1;
    for (std::int64_t a : contract) {
      if (a != summed && g_.type(v).shape[static_cast<std::size_t>(a)] != 1)
        return std::nullopt;
      u.to.contracted.push_back(a == summed ? at : -1);
    }
    return u;
  }

  const LoweredGraph& lowered_;
  const Graph& g_;
  Diagonals diagonals_;
};

}  // namespace

Graph unit_products(const Graph& g) {
  const LoweredGraph lowered(g);
  const UnitFinder finder(lowered);
  RewriteRules rules{.sub_graph = unit_products};
  rules.old_node = [&](Builder&, std::size_t i, std::span<const Value> env) -> Rewrite {
    const Node& n = g.nodes()[i];
    const lowering::Gemm* gemm = plain_gemm(lowered, n);
    const auto found = gemm ? finder.find(n, *gemm) : std::nullopt;
    if (!found) return std::nullopt;
    const Diagonals& diagonals = finder.diagonals();
    const auto operand = [&](ValueId v) {
      if (v != found->units) return env[v.index];
      const auto x = diagonals.along(v, found->summed, env);
      Shape shape = g.type(v).shape;
      shape[static_cast<std::size_t>(diagonals.of(v)->other(found->summed))] = 1;
      return broadcast_to(x.value_or(diagonals.one_for(v)), shape);
    };
    const Value y =
        spread_product(*gemm, operand(n.inputs[0]), operand(n.inputs[1]), found->to);
    return {{broadcast_to(y, g.type(n.outputs[0]).shape)}};
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
