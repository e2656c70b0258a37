// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/region_view.h"

#include <algorithm>
#include <memory>

#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

std::size_t count(const Node& n, std::string_view name) {
  return static_cast<std::size_t>(n.attrs.integer(name));
}

}  // namespace

std::optional<ScanView> as_scan(const Node& n) {
  if (n.op != &scan_op) return std::nullopt;
  return ScanView{n.attrs.graph("body").get(), n.attrs.integer("length"),
                  count(n, "num_consts"), count(n, "num_carry"), n.attrs.flag("reverse")};
}

std::optional<WhileView> as_while(const Node& n) {
  if (n.op != &while_op) return std::nullopt;
  return WhileView{n.attrs.graph("cond").get(), n.attrs.graph("body").get(),
                   count(n, "num_cond_consts"), count(n, "num_body_consts")};
}

std::optional<CondView> as_cond(const Node& n) {
  if (n.op != &cond_op) return std::nullopt;
  return CondView{n.attrs.graph("true_branch").get(),
                  n.attrs.graph("false_branch").get()};
}

std::vector<bool> read_values(const Graph& g) {
  std::vector<bool> read(g.num_values(), false);
  for (const Node& n : g.nodes()) {
    const auto scan = as_scan(n);
    const std::vector<bool> inside = scan ? read_inputs(*scan) : std::vector<bool>{};
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      if (inside.empty() || inside[i]) read[n.inputs[i].index] = true;
  }
  for (ValueId v : g.outputs()) read[v.index] = true;
  return read;
}

std::vector<bool> read_inputs(const ScanView& scan) {
  const std::vector<bool> read = read_values(*scan.body);
  std::vector<bool> out;
  for (ValueId v : scan.body->inputs()) out.push_back(read[v.index]);
  for (std::size_t k = 0; k < scan.num_carry; ++k) out[scan.num_consts + k] = true;
  return out;
}

Attrs scan_attrs_with_ys(const Node& scan, std::span<const ValueId> body_values) {
  const Graph& body = *scan.attrs.graph("body");
  GraphParts parts;
  for (std::uint32_t i = 0; i < body.num_values(); ++i)
    parts.types.push_back(body.type({i}));
  parts.inputs.assign(body.inputs().begin(), body.inputs().end());
  parts.nodes.assign(body.nodes().begin(), body.nodes().end());
  parts.outputs.assign(body.outputs().begin(), body.outputs().end());
  parts.outputs.insert(parts.outputs.end(), body_values.begin(), body_values.end());
  Attrs attrs = scan.attrs;
  attrs.set("body", std::make_shared<const Graph>(std::move(parts)));
  return attrs;
}

Attrs scan_attrs_with_body(const Node& scan, Graph body, std::size_t num_consts,
                           std::size_t num_carry) {
  Attrs attrs = scan.attrs;
  attrs.set("body", std::make_shared<const Graph>(std::move(body)));
  attrs.set("num_consts", static_cast<std::int64_t>(num_consts));
  attrs.set("num_carry", static_cast<std::int64_t>(num_carry));
  return attrs;
}

bool any_node(const Node& n, bool (*test)(const Node&)) {
  if (test(n)) return true;
  for (const auto& [name, value] : n.attrs.entries()) {
    const auto* sub = std::get_if<GraphPtr>(&value);
    if (!sub) continue;
    const auto nodes = (*sub)->nodes();
    if (std::any_of(nodes.begin(), nodes.end(),
                    [&](const Node& m) { return any_node(m, test); }))
      return true;
  }
  return false;
}

bool has_while(const Graph& g) {
  const auto is_while = [](const Node& n) { return as_while(n).has_value(); };
  const auto nodes = g.nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const Node& n) { return any_node(n, is_while); });
}

}  // namespace braintrace
