// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/narrow_uniform.h"

#include <algorithm>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/passes/lowered_impl.h"

namespace braintrace {
namespace {

// A value of the copy: as it was, or without its repetitions, or both.
struct Sized {
  std::optional<Value> whole = {}, narrow = {};  // narrow: of the same rank
};

class Narrower {
 public:
  explicit Narrower(const Graph& g, std::int64_t least = 0)
      : g_(g), least_(least), lowered_(g), values_(g.num_values()) {}

  void run(const std::vector<Shape>& inputs) {
    for (std::size_t i = 0; i < g_.inputs().size(); ++i) {
      const ValueId v = g_.inputs()[i];
      const Type& t = g_.type(v);
      if (inputs[i] == t.shape)
        at(v).whole = builder_->input(t);
      else
        at(v).narrow = builder_->input({t.dtype, inputs[i]});
    }
    for (const Node& n : g_.nodes()) add(n);
  }

  Graph finish() {
    Values out;
    for (ValueId v : g_.outputs()) out.push_back(whole(v));
    return builder_->finish(out);
  }
  std::vector<Shape> shapes(std::span<const ValueId> values) {
    std::vector<Shape> out;
    for (ValueId v : values) out.push_back(small(v).shape());
    return out;
  }

 private:
  Sized& at(ValueId v) { return values_[v.index]; }
  const Shape& shape(ValueId v) const { return g_.type(v).shape; }
  bool is_narrow(ValueId v) { return at(v).narrow.has_value(); }
  Value whole(ValueId v) {
    Sized& s = at(v);
    if (!s.whole) s.whole = broadcast_to(*s.narrow, shape(v));
    return *s.whole;
  }
  const Value& small(ValueId v) { return at(v).narrow ? *at(v).narrow : *at(v).whole; }

  void add(const Node& n) {
    if (n.outputs.size() == 1) {
      const ValueId out = n.outputs[0];
      if (const auto v = narrow(n); v && v->shape() != shape(out)) {
        at(out).narrow = *v;
        if (num_elements(shape(out)) >= least_) return;
      }
    }
    Values in;
    for (ValueId v : n.inputs) in.push_back(whole(v));
    const Values out = builder_->record(*n.op, in, n.attrs, n.loc);
    for (std::size_t i = 0; i < out.size(); ++i) at(n.outputs[i]).whole = out[i];
  }

  // The node on values without repetitions.
  std::optional<Value> narrow(const Node& n) {
    if (num_elements(shape(n.outputs[0])) == 0) return std::nullopt;  // nothing repeats
    const Lowering& l = lowered_.lowering(n);
    if (const auto number = splat_of(n))
      return reshape(builder_->constant(*number), Shape(shape(n.outputs[0]).size(), 1));
    if (const auto* b = std::get_if<lowering::Broadcast>(&l)) return stretched(n, *b);
    if (n.inputs.empty() || !std::any_of(n.inputs.begin(), n.inputs.end(),
                                         [&](ValueId v) { return is_narrow(v); }))
      return std::nullopt;
    if (std::holds_alternative<lowering::Elementwise>(l)) return elementwise(n);
    if (const auto* s = std::get_if<lowering::Slice>(&l)) return sliced(n, *s);
    if (const auto* c = std::get_if<lowering::Concatenate>(&l)) return joined(n, *c);
    if (const auto* t = std::get_if<lowering::Transpose>(&l))
      return transpose(small(n.inputs[0]), t->permutation);
    if (std::holds_alternative<lowering::Reshape>(l)) return reshaped(n);
    return std::nullopt;
  }

  std::optional<Value> stretched(const Node& n, const lowering::Broadcast& b) {
    const Value& in = small(n.inputs[0]);
    Shape to(shape(n.outputs[0]).size(), 1);
    for (std::size_t i = 0; i < b.in_axes.size(); ++i)
      to[static_cast<std::size_t>(b.in_axes[i])] = in.shape()[i];
    return reshape(in, to);
  }

  // The least shape all operands fit into; nullopt when they differ in rank.
  std::optional<Shape> common_shape(const Node& n) {
    Shape to = small(n.inputs[0]).shape();
    for (ValueId v : n.inputs) {
      const Shape& s = small(v).shape();
      if (shape(v).size() != to.size()) return std::nullopt;
      for (std::size_t a = 0; a < to.size(); ++a) to[a] = std::max(to[a], s[a]);
    }
    return to;
  }

  std::optional<Value> elementwise(const Node& n) {
    const auto to = common_shape(n);
    if (!to || *to == shape(n.outputs[0])) return std::nullopt;
    for (ValueId v : n.inputs)
      if (shape(v) != shape(n.outputs[0])) return std::nullopt;
    Values in;
    for (ValueId v : n.inputs) in.push_back(broadcast_to(small(v), *to));
    return builder_->record(*n.op, in, n.attrs, n.loc)[0];
  }

  std::optional<Value> sliced(const Node& n, const lowering::Slice& s) {
    const Value& in = small(n.inputs[0]);
    const Shape& from = shape(n.inputs[0]);
    Ints start = s.start, step = s.step;
    Shape size = shape(n.outputs[0]);
    for (std::size_t a = 0; a < from.size(); ++a) {
      if (in.shape()[a] == from[a] || size[a] == 0) continue;
      start[a] = 0;
      step[a] = 1;
      size[a] = 1;
    }
    return slice(in, start, size, step);
  }

  std::optional<Value> joined(const Node& n, const lowering::Concatenate& c) {
    const auto along = static_cast<std::size_t>(c.axis);
    auto to = common_shape(n);
    if (!to) return std::nullopt;
    Values in;
    for (ValueId v : n.inputs) {
      (*to)[along] = shape(v)[along];
      in.push_back(broadcast_to(small(v), *to));
    }
    return concat(in, c.axis);
  }

  // Axes of size 1 that come and go.
  std::optional<Value> reshaped(const Node& n) {
    const auto axes = view_axes(lowered_, n);
    if (!axes) return std::nullopt;
    const Value& in = small(n.inputs[0]);
    Shape to(shape(n.outputs[0]).size(), 1);
    for (std::size_t i = 0; i < axes->size(); ++i)
      if ((*axes)[i] >= 0) to[static_cast<std::size_t>((*axes)[i])] = in.shape()[i];
    return reshape(in, to);
  }

  const Graph& g_;
  const std::int64_t least_;
  LoweredGraph lowered_;
  std::shared_ptr<Builder> builder_ = Builder::create();
  std::vector<Sized> values_;
};

}  // namespace

Graph narrow_uniform(const Graph& g, std::int64_t least) {
  std::vector<Shape> inputs;
  for (const Type& t : g.input_types()) inputs.push_back(t.shape);
  Narrower n(g, least);
  n.run(inputs);
  return n.finish();
}

std::vector<Shape> uniform_shapes(const Graph& g, const std::vector<Shape>& inputs,
                                  std::span<const ValueId> values) {
  Narrower n(g);
  n.run(inputs);
  return n.shapes(values);
}

}  // namespace braintrace
