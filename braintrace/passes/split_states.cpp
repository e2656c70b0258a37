// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/split_states.h"

#include <algorithm>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/region_view.h"
#include "braintrace/passes/lowered_impl.h"

namespace braintrace {
namespace {

constexpr std::int64_t kMaxParts = 4;
constexpr std::int64_t kFewElements = 64;  // not worth it

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// The axis to take apart: the last one that is not of size 1.
std::optional<std::int64_t> axis_of(const Shape& shape) {
  for (auto a = static_cast<std::int64_t>(shape.size()) - 1; a >= 0; --a) {
    const std::int64_t n = shape[at(a)];
    if (n == 1) continue;
    const bool fits = n >= 2 && n <= kMaxParts && num_elements(shape) >= kFewElements;
    return fits ? std::optional(a) : std::nullopt;
  }
  return std::nullopt;
}

template <class List>
List without(List list, std::int64_t axis) {
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(axis));
  return list;
}

// A value of the copy: whole, in parts, or both. Parts are `split` when the graph joined
// them somewhere; stretched values have parts as well, but follow the others.
struct Item {
  std::optional<Value> whole = {};
  Values parts = {};
  bool split = false;
};

class Splitter {
 public:
  explicit Splitter(const Graph& g) : g_(g), lowered_(g), items_(g.num_values()) {}

  // One input of the copy per part where asked for.
  void run(const std::vector<bool>& split_inputs) {
    for (std::size_t i = 0; i < g_.inputs().size(); ++i)
      declare(g_.inputs()[i], split_inputs[i]);
    for (const Node& n : g_.nodes()) add(n);
  }
  bool is_split(ValueId v) const { return items_[v.index].split; }
  Graph finish(const std::vector<bool>& split_outputs) {
    Values out;
    for (std::size_t i = 0; i < g_.outputs().size(); ++i) {
      const ValueId v = g_.outputs()[i];
      if (!split_outputs[i]) {
        out.push_back(whole(v));
        continue;
      }
      for (const Value& p : parts(v)) out.push_back(p);
    }
    return builder_->finish(out);
  }

 private:
  const Shape& shape(ValueId v) const { return g_.type(v).shape; }
  Item& item(ValueId v) { return items_[v.index]; }

  void declare(ValueId v, bool split) {
    if (!split) {
      item(v).whole = builder_->input(g_.type(v));
      return;
    }
    Type t = g_.type(v);
    const std::int64_t axis = *axis_of(t.shape), n = t.shape[at(axis)];
    t.shape = without(t.shape, axis);
    for (std::int64_t i = 0; i < n; ++i) item(v).parts.push_back(builder_->input(t));
    item(v).split = true;
  }

  Value whole(ValueId v) {
    Item& i = item(v);
    if (!i.whole) i.whole = stack(i.parts, *axis_of(shape(v)));
    return *i.whole;
  }

  const Values& parts(ValueId v) {
    Item& i = item(v);
    const std::int64_t axis = *axis_of(shape(v));
    for (std::int64_t k = 0; i.parts.size() < at(shape(v)[at(axis)]); ++k)
      i.parts.push_back(squeeze(slice_axis(*i.whole, axis, k, 1), axis));
    return i.parts;
  }

  void join(ValueId v, Values parts) {
    item(v).parts = std::move(parts);
    item(v).split = true;
  }

  void add(const Node& n) {
    if (n.outputs.size() == 1 && split_node(n, n.outputs[0])) return;
    if (split_scan(n)) return;
    Values in;
    for (ValueId v : n.inputs) in.push_back(whole(v));
    const Values out = builder_->record(*n.op, in, n.attrs, n.loc);
    for (std::size_t i = 0; i < out.size(); ++i) item(n.outputs[i]).whole = out[i];
  }

  bool any_split(const Node& n) const {
    return std::any_of(n.inputs.begin(), n.inputs.end(),
                       [&](ValueId v) { return is_split(v); });
  }

  // True when the node was written on parts.
  bool split_node(const Node& n, ValueId out) {
    const Lowering& l = lowered_.lowering(n);
    const auto axis = axis_of(shape(out));
    if (const auto* c = std::get_if<lowering::Concatenate>(&l))
      return axis && split_concatenate(n, out, *axis, c->axis);
    if (const auto* b = std::get_if<lowering::Broadcast>(&l))
      return axis && split_broadcast(n, out, *axis, b->in_axes);
    if (n.inputs.empty() || !any_split(n)) return false;
    if (std::holds_alternative<lowering::Elementwise>(l))
      return axis && split_elementwise(n, out);
    if (std::holds_alternative<lowering::Reshape>(l))
      return axis && split_reshape(n, out, *axis);
    if (const auto* t = std::get_if<lowering::Transpose>(&l))
      return axis && split_transpose(n, out, *axis, t->permutation);
    if (const auto* s = std::get_if<lowering::Slice>(&l)) return split_slice(n, out, *s);
    if (is_sum(l)) return split_sum(n, out, std::get<lowering::Reduce>(l).axes);
    return false;
  }

  bool split_concatenate(const Node& n, ValueId out, std::int64_t axis,
                         std::int64_t along) {
    Values joined;
    if (along == axis) {
      for (ValueId v : n.inputs) {
        const std::int64_t size = shape(v)[at(along)];
        if (size > 1 && axis_of(shape(v)) != axis) return false;
        if (size == 1) {
          joined.push_back(squeeze(whole(v), along));
          continue;
        }
        for (const Value& p : parts(v)) joined.push_back(p);
      }
      join(out, std::move(joined));
      return true;
    }
    const bool fits = std::all_of(n.inputs.begin(), n.inputs.end(),
                                  [&](ValueId v) { return axis_of(shape(v)) == axis; });
    if (!fits || along > axis || !any_split(n)) return false;
    for (std::int64_t k = 0; k < shape(out)[at(axis)]; ++k) {
      Values side;
      for (ValueId v : n.inputs) side.push_back(parts(v)[at(k)]);
      joined.push_back(concat(side, along));
    }
    join(out, std::move(joined));
    return true;
  }

  bool split_broadcast(const Node& n, ValueId out, std::int64_t axis,
                       const Ints& in_axes) {
    const ValueId v = n.inputs[0];
    std::optional<std::int64_t> from;  // the input's axis that becomes `axis`
    for (std::size_t i = 0; i < in_axes.size(); ++i)
      if (in_axes[i] == axis) from = static_cast<std::int64_t>(i);
    const bool copied = from && shape(v)[at(*from)] > 1;
    if (copied && (!is_split(v) || axis_of(shape(v)) != from)) return false;
    Shape aligned(shape(out).size(), 1);
    for (std::size_t i = 0; i < in_axes.size(); ++i)
      if (in_axes[i] != axis) aligned[at(in_axes[i])] = shape(v)[i];
    const Shape small = without(aligned, axis), full = without(shape(out), axis);
    const auto stretch = [&](const Value& x) {
      return broadcast_to(reshape(x, small), full);
    };
    if (!copied) {
      if (!is_split(v)) item(out).whole = copied_whole(n);
      const Value part = stretch(whole(v));
      item(out).parts.assign(at(shape(out)[at(axis)]), part);
      item(out).split = is_split(v);
      return true;
    }
    Values joined;
    for (const Value& p : parts(v)) joined.push_back(stretch(p));
    join(out, std::move(joined));
    return true;
  }

  Value copied_whole(const Node& n) {
    const Values in = {whole(n.inputs[0])};
    return builder_->record(*n.op, in, n.attrs, n.loc)[0];
  }

  bool split_elementwise(const Node& n, ValueId out) {
    for (ValueId v : n.inputs)
      if (shape(v) != shape(out)) return false;
    Values joined;
    const std::int64_t size = shape(out)[at(*axis_of(shape(out)))];
    for (std::int64_t k = 0; k < size; ++k) {
      Values in;
      for (ValueId v : n.inputs) in.push_back(parts(v)[at(k)]);
      joined.push_back(builder_->record(*n.op, in, n.attrs, n.loc)[0]);
    }
    join(out, std::move(joined));
    return true;
  }

  bool split_reshape(const Node& n, ValueId out, std::int64_t axis) {
    const ValueId v = n.inputs[0];
    const auto from = axis_of(shape(v));
    if (!from || shape(v)[at(*from)] != shape(out)[at(axis)]) return false;
    Values joined;
    for (const Value& p : parts(v))
      joined.push_back(reshape(p, without(shape(out), axis)));
    join(out, std::move(joined));
    return true;
  }

  bool split_transpose(const Node& n, ValueId out, std::int64_t axis,
                       const Ints& permutation) {
    const ValueId v = n.inputs[0];
    const std::int64_t from = permutation[at(axis)];
    if (axis_of(shape(v)) != from) return false;
    Ints order;
    for (std::int64_t a : without(permutation, axis))
      order.push_back(a > from ? a - 1 : a);
    Values joined;
    for (const Value& p : parts(v)) joined.push_back(transpose(p, order));
    join(out, std::move(joined));
    return true;
  }

  bool split_slice(const Node& n, ValueId out, const lowering::Slice& s) {
    const ValueId v = n.inputs[0];
    const std::int64_t axis = *axis_of(shape(v)), count = shape(out)[at(axis)];
    if (count < 1 || (count > 1 && axis_of(shape(out)) != axis)) return false;
    const Ints start = without(s.start, axis), step = without(s.step, axis);
    const Shape size = without(shape(out), axis);
    Values joined;
    for (std::int64_t k = 0; k < count; ++k)
      joined.push_back(slice(parts(v)[at(s.start[at(axis)] + k * s.step[at(axis)])],
                             start, size, step));
    if (count == 1)
      item(out).whole = expand_dims(joined[0], axis);
    else
      join(out, std::move(joined));
    return true;
  }

  bool split_sum(const Node& n, ValueId out, const Ints& axes) {
    const ValueId v = n.inputs[0];
    if (!is_float(g_.type(v).dtype)) return false;
    const std::int64_t axis = *axis_of(shape(v));
    bool along = false;
    Ints others;
    for (std::int64_t a : axes) {
      if (a == axis)
        along = true;
      else
        others.push_back(a > axis ? a - 1 : a);
    }
    if (!along && axis_of(shape(out)) != placed(axis, axes)) return false;
    Values joined;
    for (const Value& p : parts(v))
      joined.push_back(others.empty() ? p : sum(p, {.axes = others}));
    if (!along) {
      join(out, std::move(joined));
      return true;
    }
    Value total = joined[0];
    for (std::size_t k = 1; k < joined.size(); ++k) total = total + joined[k];
    item(out).whole = total;
    return true;
  }

  // Where a kept axis goes when others are summed over.
  static std::int64_t placed(std::int64_t axis, const Ints& summed) {
    return axis - std::count_if(summed.begin(), summed.end(),
                                [&](std::int64_t a) { return a < axis; });
  }

  // ---- loops --------------------------------------------------------------------------

  // Which inputs of a body to split: those whose parts are there; of carries those that
  // stay split from turn to turn.
  std::vector<bool> wanted_inputs(const Node& n, const ScanView& scan) const {
    std::vector<bool> wanted;
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      const bool carry = i >= scan.num_consts && i < scan.num_consts + scan.num_carry;
      const bool fits =
          axis_of(scan.body->type(scan.body->inputs()[i]).shape).has_value();
      wanted.push_back(fits && (carry || is_split(n.inputs[i])));
    }
    return wanted;
  }

  bool split_scan(const Node& n) {
    const auto scan = as_scan(n);
    if (!scan) return false;
    const auto outs = scan->body->outputs();
    std::vector<bool> wanted = wanted_inputs(n, *scan), given(outs.size());
    std::optional<Splitter> body;
    for (bool stable = false; !stable;) {
      stable = true;
      body.emplace(*scan->body);
      body->run(wanted);
      for (std::size_t o = 0; o < outs.size(); ++o) given[o] = body->is_split(outs[o]);
      for (std::size_t k = 0; k < scan->num_carry; ++k) {
        if (wanted[scan->num_consts + k] && !given[k]) {
          wanted[scan->num_consts + k] = false;
          stable = false;
        }
        given[k] = wanted[scan->num_consts + k];
      }
    }
    emit_scan(n, *scan, wanted, given, body->finish(given));
    return true;
  }

  void emit_scan(const Node& n, const ScanView& scan, const std::vector<bool>& in_split,
                 const std::vector<bool>& out_split, Graph body) {
    Values in;
    std::size_t consts = 0, carry = 0;
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      const std::size_t before = in.size();
      if (in_split[i])
        for (const Value& p : parts(n.inputs[i])) in.push_back(p);
      else
        in.push_back(whole(n.inputs[i]));
      if (i < scan.num_consts)
        consts += in.size() - before;
      else if (i < scan.num_consts + scan.num_carry)
        carry += in.size() - before;
    }
    const Values out = builder_->record(
        *n.op, in, scan_attrs_with_body(n, std::move(body), consts, carry), n.loc);
    std::size_t next = 0;
    for (std::size_t o = 0; o < n.outputs.size(); ++o) {
      const ValueId v = n.outputs[o];
      if (!out_split[o]) {
        item(v).whole = out[next++];
        continue;
      }
      const std::int64_t size = shape(v)[at(*axis_of(shape(v)))];
      join(v, Values(out.begin() + static_cast<std::ptrdiff_t>(next),
                     out.begin() + static_cast<std::ptrdiff_t>(next) + size));
      next += at(size);
    }
  }

  const Graph& g_;
  LoweredGraph lowered_;
  std::shared_ptr<Builder> builder_ = Builder::create();
  std::vector<Item> items_;
};

}  // namespace

Graph split_states(const Graph& g) {
  Splitter s(g);
  s.run(std::vector<bool>(g.inputs().size(), false));
  return s.finish(std::vector<bool>(g.outputs().size(), false));
}

}  // namespace braintrace
