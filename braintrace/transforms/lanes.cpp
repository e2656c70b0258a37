// SPDX-License-Identifier: Apache-2.0
#include "braintrace/transforms/lanes.h"

#include "braintrace/ir/builder.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/ops/region_view.h"

namespace braintrace {
namespace {

Shape in_front(const Shape& a, const Shape& b) { return joined({a, b}); }

Values by_forward(const Graph& g, const Values& inputs, std::size_t input) {
  const Type in = inputs[input].type();
  Values out = on_lanes({unit_vectors(in)}, [&](const Values& unit) {
    std::vector<Tangent> tangents(inputs.size());
    tangents[input] = unit[0];
    const JvpResult r = jvp_values(g, inputs, tangents);
    Values moved;
    for (std::size_t k = 0; k < r.outs.size(); ++k)
      moved.push_back(materialize(r.tangents[k], r.outs[k].type()));
    return moved;
  });
  for (std::size_t k = 0; k < out.size(); ++k)
    out[k] = reshape(out[k], in_front(in.shape, g.type(g.outputs()[k]).shape));
  return out;
}

// One result per wanted input.
Values by_reverse(const Graph& g, const Values& inputs,
                  const std::vector<std::size_t>& wanted, std::size_t output) {
  const Type out = g.type(g.outputs()[output]);
  std::vector<bool> active(inputs.size(), false);
  for (std::size_t i : wanted) active[i] = true;
  const Values rows = on_lanes({unit_vectors(out)}, [&](const Values& unit) {
    std::vector<Tangent> ct(g.outputs().size());
    ct[output] = unit[0];
    const VjpResult r = vjp_values(g, active, inputs, ct);
    Values own;
    for (std::size_t i : wanted)
      own.push_back(materialize(r.cotangents[i], inputs[i].type()));
    return own;
  });
  Values turned;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const Type in = inputs[wanted[k]].type();
    // Axes keep their names where they can, so that sums over other axes find the
    // product.
    Ints order;
    for (std::int64_t a = 0; a < in.rank(); ++a) order.push_back(out.rank() + a);
    for (std::int64_t a = 0; a < out.rank(); ++a) order.push_back(a);
    turned.push_back(transpose(reshape(rows[k], in_front(out.shape, in.shape)), order));
  }
  return turned;
}

}  // namespace

Values on_lanes(const Values& lanes, const ValuesFn& fn) {
  const auto builder = Builder::create();
  Values one;
  for (const Value& v : lanes)
    one.push_back(builder->input({v.dtype(), removed(v.shape(), 0)}));
  const Graph program = builder->finish(fn(one));
  Values in = lanes;
  std::vector<BatchAxis> axes(lanes.size(), BatchAxis{0});
  for (const Value& v : builder->captured()) {
    in.push_back(v);
    axes.emplace_back();
  }
  const BatchResult r = batch_graph(program, in, axes);
  Values out;
  for (std::size_t k = 0; k < r.values.size(); ++k)
    out.push_back(batch_in_front(r.values[k], r.axes[k], lanes[0].dim(0)));
  return out;
}

Array unit_vectors(const Type& t) {
  const std::int64_t n = t.size();
  std::vector<double> values(static_cast<std::size_t>(n * n), 0.0);
  for (std::int64_t i = 0; i < n; ++i) values[static_cast<std::size_t>(i * n + i)] = 1;
  return array(inserted(t.shape, 0, n), values, t.dtype);
}

Values sensitivities(const Graph& g, const Values& inputs, std::size_t input) {
  return sensitivities(g, inputs, std::vector{input})[0];
}

std::vector<Values> sensitivities(const Graph& g, const Values& inputs,
                                  const std::vector<std::size_t>& wanted) {
  std::int64_t rows = 0;
  for (ValueId v : g.outputs()) rows += g.type(v).size();
  std::vector<Values> out(wanted.size());
  std::vector<std::size_t> back, places;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const std::int64_t lanes =
        inputs[wanted[k]].type().size() * static_cast<std::int64_t>(wanted.size());
    if (lanes < rows || has_while(g)) {
      out[k] = by_forward(g, inputs, wanted[k]);
    } else {
      back.push_back(wanted[k]);
      places.push_back(k);
    }
  }
  for (std::size_t o = 0; !back.empty() && o < g.outputs().size(); ++o) {
    const Values own = by_reverse(g, inputs, back, o);
    for (std::size_t k = 0; k < places.size(); ++k) out[places[k]].push_back(own[k]);
  }
  return out;
}

}  // namespace braintrace
