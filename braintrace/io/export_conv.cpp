// SPDX-License-Identifier: Apache-2.0
// The loops of an exported convolution.
#include <fmt/format.h>

#include "braintrace/io/export_impl.h"

namespace braintrace::internal {
namespace {

// Where the window element u of output position p meets x along one axis, before holes.
std::string meeting(const ConvGeometry& g, std::size_t a, const std::string& p,
                    const std::string& u) {
  const std::string variables[] = {p, u};
  return linear_text(variables, {g.strides[a], g.kernel_dilation[a]}, -g.pad_low[a]);
}

std::string inside(const ConvGeometry& g, std::size_t a, std::int64_t size) {
  std::string text =
      fmt::format("x{0} >= 0 && x{0} < {1}", a, (size - 1) * g.input_dilation[a] + 1);
  if (g.input_dilation[a] > 1)
    text += fmt::format(" && x{} % {} == 0", a, g.input_dilation[a]);
  return text;
}

}  // namespace

void StepWriter::write_node(CodeWriter& w, const Node& n, const lowering::Conv& l) {
  const ConvGeometry& g = l.geometry;
  const Type& type = graph_.type(n.outputs[0]);
  const Shape &xs = graph_.type(n.inputs[0]).shape, &ks = graph_.type(n.inputs[1]).shape;
  const auto spatial = static_cast<std::ptrdiff_t>(g.strides.size());
  const Shape in(xs.end() - 1 - spatial, xs.end() - 1), window(ks.begin(), ks.end() - 2);
  const Shape positions(type.shape.end() - 1 - spatial, type.shape.end() - 1);
  const std::int64_t channels = xs.back(), outputs = type.shape.back();
  const std::int64_t c = channels / g.groups, o = outputs / g.groups;
  const std::int64_t row = num_elements(positions) * outputs;
  const Shape lead = {row == 0 ? 0 : type.size() / row}, all = {outputs};
  const std::string y = buffer(n.outputs[0]);

  const auto b = open_loops(w, lead, "b"), p = open_loops(w, positions, "p");
  w.line(fmt::format("{}* const y = {} + ({}) * {} + ({}) * {};", c_type(type.dtype), y,
                     b[0], row, linear_text(p, row_major_strides(positions), 0),
                     outputs));
  const auto q = open_loops(w, all, "q");
  w.line(fmt::format(
      "y[{}] = {};", q[0],
      n.inputs.size() > 2 ? element(n.inputs[2], q[0]) : literal_text(0, type.dtype)));
  close_loops(w, all);

  const auto u = open_loops(w, window, "u");
  std::vector<std::string> tests, at = {b[0]};
  Ints strides = {num_elements(in) * channels};
  const Ints in_strides = row_major_strides(in);
  for (std::size_t a = 0; a < in.size(); ++a) {
    w.line(fmt::format("const int x{} = {};", a, meeting(g, a, p[a], u[a])));
    tests.push_back(inside(g, a, in[a]));
    at.push_back(g.input_dilation[a] > 1
                     ? fmt::format("(x{} / {})", a, g.input_dilation[a])
                     : fmt::format("x{}", a));
    strides.push_back(in_strides[a] * channels);
  }
  w.open(fmt::format("if ({}) {{", fmt::join(tests, " && ")));
  const Shape inner = {g.groups, c}, outer = {o};
  const auto i = open_loops(w, inner, "i");
  at.insert(at.end(), i.begin(), i.end());
  strides.insert(strides.end(), {c, 1});
  w.line(fmt::format("const {} x = {};", c_type(type.dtype),
                     element(n.inputs[0], linear_text(at, strides, 0))));
  const auto j = open_loops(w, outer, "j");
  std::vector<std::string> k = u;
  k.insert(k.end(), {i[1], i[0], j[0]});
  Ints k_strides = row_major_strides(window);
  for (std::int64_t& s : k_strides) s *= c * outputs;
  k_strides.insert(k_strides.end(), {outputs, o, 1});
  const std::string to[] = {i[0], j[0]};
  w.line(fmt::format("y[{}] += x * {};", linear_text(to, {o, 1}, 0),
                     element(n.inputs[1], linear_text(k, k_strides, 0))));
  close_loops(w, outer);
  close_loops(w, inner);
  w.close();
  close_loops(w, window);
  close_loops(w, positions);
  close_loops(w, lead);
}

}  // namespace braintrace::internal
