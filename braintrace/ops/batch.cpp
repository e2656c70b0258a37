// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/batch.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/constant.h"

namespace braintrace {
namespace {

bool any_batched(std::span<const BatchAxis> axes) {
  return std::any_of(axes.begin(), axes.end(),
                     [](const BatchAxis& a) { return bool(a); });
}

// The axis all batched operands share, else 0.
std::int64_t common_axis(std::span<const BatchAxis> axes) {
  BatchAxis common;
  for (const BatchAxis& a : axes) {
    if (!a) continue;
    if (common && *common != *a) return 0;
    common = a;
  }
  return common.value_or(0);
}

Value with_axis_at(const Value& v, const BatchAxis& axis, std::int64_t at,
                   std::int64_t size) {
  if (axis) return move_axis(v, *axis, at);
  return move_axis(batch_in_front(v, axis, size), 0, at);
}

// All operands get the batch axis at one place; the op itself does not change.
BatchResult batch_elementwise(const Site& s, std::span<const BatchAxis> axes) {
  const std::int64_t at = common_axis(axes), size = batch_size(s.in, axes);
  Values in;
  for (std::size_t i = 0; i < s.in.size(); ++i)
    in.push_back(with_axis_at(s.in[i], axes[i], at, size));
  BatchResult r{.values = emit(s.op, std::move(in), s.attrs, s.loc), .axes = {}};
  r.axes.resize(r.values.size(), at);
  return r;
}

}  // namespace

std::int64_t batch_size(std::span<const Value> values, std::span<const BatchAxis> axes) {
  BT_INVARIANT(values.size() == axes.size());
  std::optional<std::int64_t> size;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!axes[i]) continue;
    BT_REQUIRE(*axes[i] >= 0 && *axes[i] < values[i].rank(),
               fmt::format("batch: axis {} is out of range for {}", *axes[i],
                           to_string(values[i].type())));
    const std::int64_t n = values[i].dim(*axes[i]);
    BT_REQUIRE(
        !size || *size == n,
        fmt::format("batch: batch axes must have one size, got {} and {}", *size, n));
    size = n;
  }
  BT_REQUIRE(size, "batch: at least one input must have a batch axis");
  return *size;
}

Value batch_in_front(const Value& v, BatchAxis axis, std::int64_t size) {
  if (axis) return move_axis(v, *axis, 0);
  Shape shape = v.shape();
  shape.insert(shape.begin(), size);
  return broadcast_to(v, shape);
}

Value lanes_of_rank(const Value& lanes, std::int64_t rank) {
  Shape shape(static_cast<std::size_t>(rank), 1);
  shape.at(0) = lanes.dim(0);
  return reshape(lanes, shape);
}

BatchResult batch_node(const Site& s, std::span<const BatchAxis> axes) {
  BT_INVARIANT(s.in.size() == axes.size());
  if (!any_batched(axes)) {
    BatchResult r{.values = emit(s.op, {s.in.begin(), s.in.end()}, s.attrs, s.loc),
                  .axes = {}};
    r.axes.resize(r.values.size());
    return r;
  }
  if (s.op.batch) return s.op.batch(s, axes);
  BT_REQUIRE_KIND(has(s.op.traits, Trait::elementwise), ErrorKind::not_implemented,
                  fmt::format("{}: no batch rule", s.op.name));
  return batch_elementwise(s, axes);
}

BatchResult batch_graph(const Graph& g, std::span<const Value> inputs,
                        std::span<const BatchAxis> axes) {
  BT_REQUIRE(inputs.size() == g.inputs().size() && axes.size() == inputs.size(),
             fmt::format("batch_graph: the program has {} inputs, got {} values and {} "
                         "axes",
                         g.inputs().size(), inputs.size(), axes.size()));
  if (any_batched(axes)) batch_size(inputs, axes);
  Values env(g.num_values());
  std::vector<BatchAxis> axis(g.num_values());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    env[g.inputs()[i].index] = inputs[i];
    axis[g.inputs()[i].index] = axes[i];
  }
  // Recorded where there is a trace: running what is made of literals alone would blow a
  // stretched scalar up to a literal array.
  const std::shared_ptr<Builder> trace = common_builder(inputs);
  for (const Node& n : g.nodes()) {
    if (const Array* value = literal(n)) {
      env[n.outputs[0].index] = trace ? trace->constant(*value) : Value(*value);
      continue;
    }
    Values in;
    std::vector<BatchAxis> in_axes;
    for (ValueId v : n.inputs) {
      in.push_back(env[v.index]);
      in_axes.push_back(axis[v.index]);
    }
    const BatchResult r = batch_node({*n.op, in, {}, n.attrs, n.loc}, in_axes);
    BT_INVARIANT(r.values.size() == n.outputs.size() && r.axes.size() == r.values.size());
    for (std::size_t k = 0; k < r.values.size(); ++k) {
      env[n.outputs[k].index] = r.values[k];
      axis[n.outputs[k].index] = r.axes[k];
    }
  }
  BatchResult result;
  for (ValueId v : g.outputs()) {
    result.values.push_back(env[v.index]);
    result.axes.push_back(axis[v.index]);
  }
  return result;
}

}  // namespace braintrace
