// SPDX-License-Identifier: Apache-2.0
// Loops of an exported program that move, sum or multiply: one function per lowering.
#include <algorithm>

#include <fmt/format.h>

#include "braintrace/io/export_impl.h"

namespace braintrace::internal {
namespace {

Ints scaled(Ints a, const Ints& by) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] *= by[i];
  return a;
}

std::int64_t dot(const Ints& a, const Ints& b) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Size and stride of some axes of one operand.
struct Axes {
  Shape shape;
  Ints strides;
};
Axes axes_of(const Shape& shape, const Ints& which) {
  const Ints strides = row_major_strides(shape);
  Axes a;
  for (const std::int64_t axis : which) {
    a.shape.push_back(shape[static_cast<std::size_t>(axis)]);
    a.strides.push_back(strides[static_cast<std::size_t>(axis)]);
  }
  return a;
}
Ints other_axes(const Shape& shape, const Ints& a, const Ints& b) {
  Ints rest;
  for (std::int64_t i = 0; i < std::ssize(shape); ++i)
    if (!contains(a, i) && !contains(b, i)) rest.push_back(i);
  return rest;
}

using Variables = std::vector<std::string>;
Variables joined(Variables a, const Variables& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Ints joined(Ints a, const Ints& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// [outer, n, inner] of a shape at one axis.
struct Split {
  std::int64_t outer = 1, n = 1, inner = 1;
};
Split split_at(const Shape& s, std::int64_t axis) {
  const auto at = static_cast<std::size_t>(axis);
  const std::span<const std::int64_t> all(s);
  return {num_elements(all.first(at)), s[at], num_elements(all.subspan(at + 1))};
}

}  // namespace

void StepWriter::write(CodeWriter& w, const ExportKernel& k) {
  std::string names;
  for (const Node* n : k.nodes)
    names += (names.empty() ? "" : ", ") + std::string(n->op->name);
  w.open("{  // " + names);
  if (k.elementwise)
    write_elementwise(w, k);
  else
    std::visit([&](const auto& l) { write_node(w, *k.nodes[0], l); },
               lowering_of(graph_, *k.nodes[0]));
  w.close();
}

std::string StepWriter::element(ValueId v, const Place& place) {
  const View& view = schedule_.views[v.index];
  Place p = place;
  for (const StretchMap& map : view.maps) p = apply(map, p);
  if (!local_.empty() && local_[view.root.index])
    return fmt::format("v{}", view.root.index);
  const Array* a = schedule_.literals[view.root.index];
  if (a && is_splat(*a)) return literal_text(a->at(0), a->dtype());
  return fmt::format("{}[{}]", buffer(view.root), p.flat);
}

void StepWriter::write_copy(CodeWriter& w, ValueId v, const std::string& target) {
  const Shape flat = {graph_.type(v).size()};
  const Variables i = open_loops(w, flat, "i");
  w.line(fmt::format("{}[{}] = {};", target, i[0], element(v, i[0])));
  close_loops(w, flat);
}

void StepWriter::fill(CodeWriter& w, ValueId v, const std::string& value) {
  const Shape flat = {graph_.type(v).size()};
  const Variables i = open_loops(w, flat, "i");
  w.line(fmt::format("{}[{}] = {};", buffer(v), i[0], value));
  close_loops(w, flat);
}

std::string StepWriter::sum_text(DType d, const std::string& a, const std::string& b) {
  if (d != DType::i32) return fmt::format("{} + {}", a, b);
  return fmt::format("(int32_t)((uint32_t){} + (uint32_t){})", a, b);
}

std::string StepWriter::product_text(DType d, const std::string& a,
                                     const std::string& b) {
  if (d != DType::i32) return fmt::format("{} * {}", a, b);
  return fmt::format("(int32_t)((uint32_t){} * (uint32_t){})", a, b);
}

// out[out_offset + p . out_strides] = in[in_offset + p . in_strides] for p in shape.
void StepWriter::move_elements(CodeWriter& w, const Shape& shape, const Node& n,
                               std::size_t input, const Ints& in_strides,
                               std::int64_t in_offset, const Ints& out_strides,
                               std::int64_t out_offset) {
  const Variables i = open_loops(w, shape, "i");
  w.line(fmt::format("{}[{}] = {};", buffer(n.outputs[0]),
                     linear_text(i, out_strides, out_offset),
                     element(n.inputs[input], linear_text(i, in_strides, in_offset))));
  close_loops(w, shape);
}

void StepWriter::write_node(CodeWriter& w, const Node& n, const lowering::Transpose& l) {
  const Shape& out = graph_.type(n.outputs[0]).shape;
  const Axes in = axes_of(graph_.type(n.inputs[0]).shape, l.permutation);
  move_elements(w, out, n, 0, in.strides, 0, row_major_strides(out), 0);
}

void StepWriter::write_node(CodeWriter& w, const Node& n, const lowering::Slice& l) {
  const Shape& out = graph_.type(n.outputs[0]).shape;
  const Ints in = row_major_strides(graph_.type(n.inputs[0]).shape);
  move_elements(w, out, n, 0, scaled(in, l.step), dot(in, l.start),
                row_major_strides(out), 0);
}

void StepWriter::write_node(CodeWriter& w, const Node& n, const lowering::Pad& l) {
  const Type& type = graph_.type(n.outputs[0]);
  const Shape& in = graph_.type(n.inputs[0]).shape;
  const Ints out = row_major_strides(type.shape);
  Ints step = l.interior;
  for (std::int64_t& s : step) ++s;
  fill(w, n.outputs[0], literal_text(l.value, type.dtype));
  move_elements(w, in, n, 0, row_major_strides(in), 0, scaled(out, step),
                dot(out, l.low));
}

void StepWriter::write_node(CodeWriter& w, const Node& n,
                            const lowering::Concatenate& l) {
  const Ints out = row_major_strides(graph_.type(n.outputs[0]).shape);
  const auto axis = static_cast<std::size_t>(l.axis);
  std::int64_t at = 0;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    const Shape& in = graph_.type(n.inputs[i]).shape;
    move_elements(w, in, n, i, row_major_strides(in), 0, out, at * out[axis]);
    at += in[axis];
  }
}

// An index outside its axis is moved into it and counted: the header cannot throw.
void StepWriter::write_node(CodeWriter& w, const Node& n, const lowering::Gather& l) {
  const Split s = split_at(graph_.type(n.inputs[0]).shape, l.axis);
  const std::int64_t picks = graph_.type(n.inputs[1]).size();
  helpers_["index"] = "";
  const Shape rows = {s.outer, picks}, inner = {s.inner};
  const Variables r = open_loops(w, rows, "r");
  w.line(fmt::format("const int at = {}index({}, {}, &self->index_errors);", prefix_,
                     element(n.inputs[1], r[1]), s.n));
  w.line("(void)at;");  // a constant operand is not indexed
  const Variables j = open_loops(w, inner, "j");
  const std::string from =
      linear_text(Variables{r[0], "at", j[0]}, {s.n * s.inner, s.inner, 1}, 0);
  w.line(fmt::format("{}[{}] = {};", buffer(n.outputs[0]),
                     linear_text(joined(r, j), {picks * s.inner, s.inner, 1}, 0),
                     element(n.inputs[0], from)));
  close_loops(w, inner);
  close_loops(w, rows);
}

void StepWriter::write_node(CodeWriter& w, const Node& n, const lowering::ScatterAdd& l) {
  const Type& type = graph_.type(n.outputs[0]);
  const Split s = split_at(type.shape, l.axis);
  const std::int64_t picks = graph_.type(n.inputs[1]).size();
  helpers_["index"] = "";
  write_copy(w, n.inputs[0], buffer(n.outputs[0]));
  const Shape rows = {s.outer, picks}, inner = {s.inner};
  const Variables r = open_loops(w, rows, "r");
  w.line(fmt::format("const int at = {}index({}, {}, &self->index_errors);", prefix_,
                     element(n.inputs[1], r[1]), s.n));
  w.line("(void)at;");  // a constant operand is not indexed
  const Variables j = open_loops(w, inner, "j");
  const std::string to = fmt::format(
      "{}[{}]", buffer(n.outputs[0]),
      linear_text(Variables{r[0], "at", j[0]}, {s.n * s.inner, s.inner, 1}, 0));
  const std::string update =
      element(n.inputs[2], linear_text(joined(r, j), {picks * s.inner, s.inner, 1}, 0));
  w.line(fmt::format("{} = {};", to, sum_text(type.dtype, to, update)));
  close_loops(w, inner);
  close_loops(w, rows);
}

void StepWriter::write_node(CodeWriter& w, const Node& n, const lowering::Reduce& l) {
  const Type& in = graph_.type(n.inputs[0]);
  const Axes kept = axes_of(in.shape, other_axes(in.shape, l.axes, {}));
  const Axes gone = axes_of(in.shape, l.axes);
  const DType d = in.dtype;
  const std::string_view type = c_type(d);
  const Variables k = open_loops(w, kept.shape, "k");
  const bool extreme = l.kind == ReduceKind::max || l.kind == ReduceKind::min;
  if (!extreme)
    w.line(fmt::format("{} sum = {};", type,
                       literal_text(l.kind == ReduceKind::sum ? 0 : 1, d)));
  else if (num_elements(gone.shape) == 0)
    w.line(
        fmt::format("{} sum = {}INFINITY;", type, l.kind == ReduceKind::max ? "-" : ""));
  else
    w.line(fmt::format("{} sum = {};", type,
                       element(n.inputs[0], linear_text(k, kept.strides, 0))));
  const Variables j = open_loops(w, gone.shape, "j");
  w.line(fmt::format(
      "const {} x = {};", type,
      element(n.inputs[0],
              linear_text(joined(k, j), joined(kept.strides, gone.strides), 0))));
  if (extreme)
    w.line(fmt::format("if ({}x {} sum) sum = x;", is_float(d) ? "x != x || " : "",
                       l.kind == ReduceKind::max ? ">" : "<"));
  else
    w.line(fmt::format("sum = {};", l.kind == ReduceKind::sum
                                        ? sum_text(d, "sum", "x")
                                        : product_text(d, "sum", "x")));
  close_loops(w, gone.shape);
  w.line(fmt::format("{}[{}] = sum;", buffer(n.outputs[0]),
                     linear_text(k, row_major_strides(kept.shape), 0)));
  close_loops(w, kept.shape);
}

// The innermost loop runs along rows of the right operand where it has any, so that both
// it and the output are met in order.
void StepWriter::write_node(CodeWriter& w, const Node& n, const lowering::Gemm& l) {
  const Type& out = graph_.type(n.outputs[0]);
  const Shape &ls = graph_.type(n.inputs[0]).shape, &rs = graph_.type(n.inputs[1]).shape;
  const Axes lb = axes_of(ls, l.lhs_batch), rb = axes_of(rs, l.rhs_batch);
  const Axes lc = axes_of(ls, l.lhs_contract), rc = axes_of(rs, l.rhs_contract);
  const Axes lf = axes_of(ls, other_axes(ls, l.lhs_batch, l.lhs_contract));
  const Axes rf = axes_of(rs, other_axes(rs, l.rhs_batch, l.rhs_contract));
  const Ints strides = row_major_strides(joined(joined(lb.shape, lf.shape), rf.shape));
  const std::string y = buffer(n.outputs[0]);

  const Variables b = open_loops(w, lb.shape, "b"), m = open_loops(w, lf.shape, "m");
  const auto open_row = [&] { return open_loops(w, rf.shape, "n"); };
  const bool single = num_elements(rf.shape) == 1;  // then a local variable takes the sum
  const auto place = [&](const Variables& v) {
    return fmt::format("{}[{}]", y, linear_text(joined(joined(b, m), v), strides, 0));
  };
  const auto sum = [&](const Variables& v) { return single ? "sum" : place(v); };
  Variables r = open_row();
  // A bias runs along the last axis of the output, which is the right operand's.
  BT_INVARIANT(n.inputs.size() < 3 || !r.empty());
  const std::string start =
      n.inputs.size() > 2 ? element(n.inputs[2], r.back()) : literal_text(0, out.dtype);
  const std::string_view declared = single ? c_type(out.dtype) : "";
  w.line(fmt::format("{}{}{} = {};", declared, single ? " " : "", sum(r), start));
  close_loops(w, rf.shape);

  const Variables c = open_loops(w, lc.shape, "c");
  w.line(fmt::format(
      "const {} a = {};", c_type(out.dtype),
      element(n.inputs[0],
              linear_text(joined(joined(b, m), c),
                          joined(joined(lb.strides, lf.strides), lc.strides), 0))));
  r = open_row();
  const std::string right = element(
      n.inputs[1], linear_text(joined(joined(b, c), r),
                               joined(joined(rb.strides, rc.strides), rf.strides), 0));
  w.line(fmt::format("{} = {};", sum(r),
                     sum_text(out.dtype, sum(r), product_text(out.dtype, "a", right))));
  close_loops(w, rf.shape);
  close_loops(w, lc.shape);
  if (single) w.line(fmt::format("{} = sum;", place(r)));
  close_loops(w, lf.shape);
  close_loops(w, lb.shape);
}

namespace {

void write_connections(CodeWriter& w, const IndexList& rows, const IndexList& cols) {
  if (rows.empty()) return;
  w.line(fmt::format("static const int32_t rows[] = {{{}}};", fmt::join(rows, ", ")));
  w.line(fmt::format("static const int32_t cols[] = {{{}}};", fmt::join(cols, ", ")));
  w.line("(void)rows, (void)cols;");  // a constant operand is not indexed
}

}  // namespace

void StepWriter::write_node(CodeWriter& w, const Node& n,
                            const lowering::SparseOuter& l) {
  const Type &a = graph_.type(n.inputs[0]), &b = graph_.type(n.inputs[1]);
  const Type& out = graph_.type(n.outputs[0]);
  if (l.rows.empty()) return;
  const Shape lead = {num_elements(Shape(a.shape.begin(), a.shape.end() - 1))};
  const std::string y = buffer(n.outputs[0]);
  write_connections(w, l.rows, l.cols);
  const Variables p = open_loops(w, out.shape, "p");
  const std::string row = fmt::format("rows[{}]", p[0]),
                    col = fmt::format("cols[{}]", p[0]);
  w.line(fmt::format("{}[{}] = {};", y, p[0], literal_text(0, out.dtype)));
  const Variables k = open_loops(w, lead, "k");
  w.line(fmt::format(
      "{}[{}] += {} * {};", y, p[0],
      element(n.inputs[0], linear_text(Variables{k[0], row}, {a.shape.back(), 1}, 0)),
      element(n.inputs[1], linear_text(Variables{k[0], col}, {b.shape.back(), 1}, 0))));
  close_loops(w, lead);
  close_loops(w, out.shape);
}

void StepWriter::write_node(CodeWriter& w, const Node& n, const lowering::Sparse& l) {
  const Type &in = graph_.type(n.inputs[0]), &out = graph_.type(n.outputs[0]);
  const std::int64_t n_in = in.shape.back(), n_out = out.shape.back();
  const Shape lead(out.shape.begin(), out.shape.end() - 1);
  const Shape flat = {num_elements(lead)}, columns = {n_out};
  const Shape stored = {static_cast<std::int64_t>(l.rows.size())};
  const std::string y = buffer(n.outputs[0]);
  write_connections(w, l.rows, l.cols);
  const Variables b = open_loops(w, flat, "b");
  const Variables o = open_loops(w, columns, "o");
  w.line(fmt::format(
      "{}[{}] = {};", y, linear_text(joined(b, o), {n_out, 1}, 0),
      n.inputs.size() > 2 ? element(n.inputs[2], o[0]) : literal_text(0, out.dtype)));
  close_loops(w, columns);
  if (!l.rows.empty()) {
    const Variables p = open_loops(w, stored, "p");
    const std::string row = fmt::format("rows[{}]", p[0]),
                      col = fmt::format("cols[{}]", p[0]);
    w.line(fmt::format(
        "{}[{}] += {} * {};", y, linear_text(Variables{b[0], col}, {n_out, 1}, 0),
        element(n.inputs[0], linear_text(Variables{b[0], row}, {n_in, 1}, 0)),
        element(n.inputs[1], p[0])));
    close_loops(w, stored);
  }
  close_loops(w, flat);
}

}  // namespace braintrace::internal
