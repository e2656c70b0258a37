// SPDX-License-Identifier: Apache-2.0
// scan on many lanes: the loop stays one loop, the body is batched.
#include "braintrace/ops/batch.h"
#include "braintrace/ops/scan_impl.h"

namespace braintrace {
namespace {

// The axes of a body's inputs: consts where they are, carry and x_t in front.
struct BodyAxes {
  std::vector<BatchAxis> in, out;
};

Type lane_type(Type t, const BatchAxis& axis, std::int64_t size) {
  if (axis) t.shape.insert(t.shape.begin() + *axis, size);
  return t;
}

// Writes the batched body for these input axes; carry outputs follow their inputs.
GraphPtr batched_body(const ScanLayout& p, BodyAxes& axes, std::int64_t size) {
  std::vector<Type> types;
  for (std::size_t i = 0; i < axes.in.size(); ++i)
    types.push_back(lane_type(p.body.type(p.body.inputs()[i]), axes.in[i], size));
  return write_graph(types, [&](const Values& in) {
    BatchResult r = batch_graph(p.body, in, axes.in);
    axes.out = r.axes;
    for (std::size_t i = 0; i < r.values.size(); ++i) {
      const bool needed = i < p.carry && axes.in[p.consts + i];
      if (r.axes[i] || needed) r.values[i] = batch_in_front(r.values[i], r.axes[i], size);
    }
    return r.values;
  });
}

}  // namespace

BatchResult scan_batch(const Site& s, std::span<const BatchAxis> axes) {
  const ScanLayout p = scan_layout(s.attrs);
  const std::int64_t size = batch_size(s.in, axes);
  BodyAxes body_axes;
  for (std::size_t i = 0; i < axes.size(); ++i)
    body_axes.in.push_back(i < p.consts || !axes[i] ? axes[i] : BatchAxis(0));
  GraphPtr body;
  for (bool grew = true; grew;) {
    grew = false;
    body = batched_body(p, body_axes, size);
    for (std::size_t i = 0; i < p.carry; ++i) {
      if (!body_axes.out[i] || body_axes.in[p.consts + i]) continue;
      body_axes.in[p.consts + i] = 0;
      grew = true;
    }
  }

  ScanNode node{.body = body, .length = p.length, .reverse = p.reverse};
  Reader<Value> in{s.in};
  append(node.consts, in.take(p.consts));
  for (std::size_t i = p.consts; i < p.consts + p.carry; ++i)
    node.carry.push_back(body_axes.in[i] ? batch_in_front(s.in[i], axes[i], size)
                                         : s.in[i]);
  for (std::size_t i = p.consts + p.carry; i < s.in.size(); ++i)
    node.xs.push_back(axes[i] ? move_axis(s.in[i], *axes[i], 1) : s.in[i]);
  BatchResult result{.values = emit_scan(std::move(node), s.loc), .axes = {}};
  for (std::size_t i = 0; i < p.carry; ++i)
    result.axes.push_back(body_axes.in[p.consts + i]);
  for (std::size_t i = p.carry; i < p.carry + p.ys; ++i)
    result.axes.push_back(body_axes.out[i] ? BatchAxis(1) : std::nullopt);
  return result;
}

}  // namespace braintrace
