// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/region_flow.h"

#include <algorithm>

#include "braintrace/ops/region_view.h"

namespace braintrace {
namespace {

// How a node's inputs and outputs stand to those of one of its bodies.
struct BodyView {
  const Graph* body;
  std::size_t first_input = 0;  // node input that is body input 0
  std::size_t num_inputs = 0;
  std::size_t skip_consts = 0;  // body inputs before the carries
  std::size_t num_carry = 0;    // body outputs 0.. feed body inputs skip_consts..
  std::size_t first_x = 0;      // body inputs from here on are slices of stacked values
  bool stacks = false;          // outputs behind the carries are stacked
};

std::vector<BodyView> bodies_of(const Node& n) {
  if (const auto s = as_scan(n)) {
    const std::size_t x = s->num_consts + s->num_carry;
    return {{s->body, 0, n.inputs.size(), s->num_consts, s->num_carry, x, true}};
  }
  if (const auto w = as_while(n)) {
    const std::size_t carry = n.outputs.size();
    const std::size_t size = w->num_body_consts + carry;
    return {
        {w->body, w->num_condition_consts, size, w->num_body_consts, carry, size, false}};
  }
  if (const auto c = as_cond(n)) {
    const std::size_t size = n.inputs.size() - 1;
    return {{c->if_true, 1, size, size, 0, size, false},
            {c->if_false, 1, size, size, 0, size, false}};
  }
  return {};
}

// A slice of a stacked value loses the stacking axis; nullopt when that was a position.
std::optional<Alignment> sliced(const Alignment& a) {
  if (a.flat || a.axes.empty() || a.axes[0] >= 0) return std::nullopt;
  return Alignment{false, {a.axes.begin() + 1, a.axes.end()}};
}

std::optional<Alignment> stacked(const Alignment& a) {
  if (a.flat) return std::nullopt;
  Alignment out = a;
  out.axes.insert(out.axes.begin(), -1);
  return out;
}

struct BodyFlow {
  bool mixes = false;
  std::map<ValueId, Alignment> reached;
};

// Follows the sources through the body until carries bring nothing new.
BodyFlow follow_body(const BodyView& view, std::map<ValueId, Alignment> sources,
                     const Shape& positions) {
  const GraphIndex index(*view.body);
  while (true) {
    Influence inf = influence_from(index, sources, positions, FlowOptions{});
    if (!inf.cuts.empty()) return {.mixes = true};
    bool grew = false;
    for (std::size_t k = 0; k < view.num_carry; ++k) {
      const auto it = inf.reached.find(view.body->outputs()[k]);
      if (it == inf.reached.end()) continue;
      const auto [at, fresh] =
          sources.emplace(view.body->inputs()[view.skip_consts + k], it->second);
      if (!fresh && at->second != it->second) return {.mixes = true};
      grew = grew || fresh;
    }
    if (!grew) return {.reached = std::move(inf.reached)};
  }
}

std::optional<Alignment> exit_alignment(const BodyView& view, const BodyFlow& flow,
                                        std::size_t output) {
  const auto it = flow.reached.find(view.body->outputs()[output]);
  if (it == flow.reached.end()) return std::nullopt;
  const bool is_y = view.stacks && output >= view.num_carry;
  return is_y ? stacked(it->second) : std::optional(it->second);
}

bool is_mixer(const Graph& g, const Node& n) {
  return is_structural_etp(n) || is_product(g, n);
}

// Forward reachability inside a body, with feedback through carries.
bool body_mixes(const BodyView& view, std::size_t body_input) {
  const Graph& g = *view.body;
  std::vector<bool> derived(g.num_values(), false);
  derived[g.inputs()[body_input].index] = true;
  for (bool grew = true; grew;) {
    grew = false;
    for (const Node& n : g.nodes())
      for (std::size_t i = 0; i < n.inputs.size(); ++i) {
        if (!derived[n.inputs[i].index]) continue;
        if (is_mixer(g, n) || region_mixes(n, i)) return true;
        for (ValueId v : n.outputs) derived[v.index] = true;
      }
    for (std::size_t k = 0; k < view.num_carry; ++k) {
      const std::size_t back = g.inputs()[view.skip_consts + k].index;
      if (!derived[g.outputs()[k].index] || derived[back]) continue;
      derived[back] = grew = true;
    }
  }
  return false;
}

bool holds(const BodyView& v, std::size_t input) {
  return input >= v.first_input && input < v.first_input + v.num_inputs;
}

}  // namespace

std::optional<Alignment> through_region(const Graph&, const Node& n, std::size_t input,
                                        std::size_t output, const Alignment& in,
                                        const Shape& positions) {
  std::optional<Alignment> result;
  for (const BodyView& view : bodies_of(n)) {
    if (!holds(view, input)) continue;
    const std::size_t k = input - view.first_input;
    const auto start = k >= view.first_x ? sliced(in) : std::optional(in);
    if (!start) return std::nullopt;
    const BodyFlow flow =
        follow_body(view, {{view.body->inputs()[k], *start}}, positions);
    if (flow.mixes) return std::nullopt;
    const auto out = exit_alignment(view, flow, output);
    if (!out) continue;
    if (result && *result != *out) return std::nullopt;
    result = out;
  }
  return result;
}

bool region_mixes(const Node& n, std::size_t input) {
  const std::vector<BodyView> bodies = bodies_of(n);
  return std::any_of(bodies.begin(), bodies.end(), [&](const BodyView& v) {
    return holds(v, input) && body_mixes(v, input - v.first_input);
  });
}

}  // namespace braintrace
