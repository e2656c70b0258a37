// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/print.h"

#include <cmath>

#include <fmt/format.h>

namespace braintrace {
namespace {

std::string indent_text(int depth) {
  return std::string(static_cast<std::size_t>(depth) * 2, ' ');
}

std::string graph_text(const Graph& g, int depth);

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    out += c;
  }
  return out + "\"";
}

// Always recognisable as a real: "1.0", "1e+300", "nan", "-inf".
std::string real_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  std::string s = fmt::format("{}", v);
  return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

bool is_splat(const Array& a) {
  if (a.size() < 2) return false;
  return a == full(a.shape(), a.at(0), a.dtype());
}

std::string array_text(const Array& a) {
  if (!is_splat(a)) return to_string(a);
  const std::string one = to_string(full({1}, a.at(0), a.dtype()));
  const std::string element = one.substr(one.find('('));
  return fmt::format("{}{}(splat {}", to_string(a.dtype()), to_string(a.shape()),
                     element.substr(1));
}

std::string attr_text(const Attr& a, int depth) {
  switch (kind_of(a)) {
    case AttrKind::boolean:
      return std::get<bool>(a) ? "true" : "false";
    case AttrKind::integer:
      return fmt::format("{}", std::get<std::int64_t>(a));
    case AttrKind::real:
      return real_text(std::get<double>(a));
    case AttrKind::text:
      return quoted(std::get<std::string>(a));
    case AttrKind::ints:
      return to_string(std::get<Ints>(a));
    case AttrKind::dtype:
      return std::string(to_string(std::get<DType>(a)));
    case AttrKind::graph:
      return "{\n" + graph_text(*std::get<GraphPtr>(a), depth + 1) + indent_text(depth) +
             "}";
    case AttrKind::array:
      return array_text(std::get<Array>(a));
    case AttrKind::indices:
      return to_string(std::get<IndexList>(a));
  }
  return "";
}

std::string node_text(const Graph& g, const Node& n, int depth) {
  std::string text;
  for (std::size_t i = 0; i < n.outputs.size(); ++i)
    text += fmt::format("{}%{}:{}", i ? ", " : "", n.outputs[i].index,
                        to_string(g.type(n.outputs[i])));
  text += fmt::format(" = {}", n.op->name);
  if (!n.attrs.empty()) {
    text += " {";
    bool first = true;
    for (const auto& [name, value] : n.attrs.entries()) {
      text += fmt::format("{}{}={}", first ? "" : ", ", name, attr_text(value, depth));
      first = false;
    }
    text += "}";
  }
  for (ValueId v : n.inputs) text += fmt::format(" %{}", v.index);
  return text;
}

std::string graph_text(const Graph& g, int depth) {
  const std::string pad = indent_text(depth);
  std::string text = pad + "in";
  for (ValueId v : g.inputs())
    text += fmt::format(" %{}:{}", v.index, to_string(g.type(v)));
  text += "\n";
  for (const Node& n : g.nodes()) text += pad + node_text(g, n, depth) + "\n";
  text += pad + "out";
  for (ValueId v : g.outputs()) text += fmt::format(" %{}", v.index);
  return text + "\n";
}

}  // namespace

std::string print(const Graph& g) { return graph_text(g, 0); }

std::string print(const Attr& a) { return attr_text(a, 0); }

}  // namespace braintrace
