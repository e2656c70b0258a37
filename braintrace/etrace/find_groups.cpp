// SPDX-License-Identifier: Apache-2.0
// Finds which hidden states feed each other within one step.
#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "braintrace/etrace/control_flow.h"
#include "braintrace/etrace/cut_set.h"
#include "braintrace/etrace/hidden_group.h"
#include "braintrace/etrace/position_graph.h"
#include "braintrace/etrace/region_flow.h"

namespace braintrace {
namespace {

// Siblings in a list (integer keys) are different layers.
bool same_layer(const Path& a, const Path& b) {
  for (std::size_t i = 0; i < std::min(a.keys.size(), b.keys.size()); ++i) {
    if (a.keys[i] == b.keys[i]) continue;
    return !std::holds_alternative<std::int64_t>(a.keys[i]) &&
           !std::holds_alternative<std::int64_t>(b.keys[i]);
  }
  return true;
}

class GroupFinder {
 public:
  GroupFinder(const ModuleInfo& info, const CompileOptions& options, Diagnostics& d)
      : info_(info), options_(options), diagnostics_(d), parent_(info.hidden.size()) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    flow_ = flow_options(options);
  }

  std::vector<HiddenGroup> run() {
    if (options_.two_state_equations == TwoStateEquations::refuse) refuse_two_states();
    std::vector<bool> recurrent(info_.hidden.size(), false);
    for (std::size_t i = 0; i < info_.hidden.size(); ++i)
      for (std::size_t j : connected(i)) {
        recurrent[i] = recurrent[j] = true;
        join(i, j);
      }
    std::vector<HiddenGroup> groups;
    for (bool real : {true, false})
      for (std::size_t i = 0; i < info_.hidden.size(); ++i)
        if (root(i) == i && recurrent[i] == real && is_flat(i))
          groups.push_back(build(i, groups.size()));
    return groups;
  }

 private:
  // States that an opened loop updates get their groups from its body.
  bool is_flat(std::size_t i) const {
    return !info_.descended_hidden.contains(info_.hidden[i].path);
  }

  std::size_t root(std::size_t i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }
  // The earlier state becomes the root, so a root is a group's first member.
  void join(std::size_t a, std::size_t b) {
    a = root(a);
    b = root(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

  // Ends a transition before its states are counted: a trainable op, without recurrent
  // mixing also a product and a loop or branch whose body has one.
  bool is_boundary(const Node& n) const {
    if (is_structural_etp(n)) return true;
    if (options_.include_recurrent_mixing) return false;
    if (is_product(info_.program(), n)) return true;
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      if (info_.hidden_at_input(n.inputs[i]) && region_mixes(n, i)) return true;
    return false;
  }

  void refuse_two_states() const {
    const std::span<const Node> nodes = info_.program().nodes();
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      const Node& n = nodes[k];
      if (info_.descended_nodes.contains(k) || is_boundary(n)) continue;
      // One state read twice may be square(h), which the reference takes.
      std::set<ValueId> states;
      for (ValueId v : n.inputs)
        if (info_.hidden_at_input(v)) states.insert(v);
      BT_REQUIRE(
          states.size() <= 1,
          fmt::format("find_hidden_groups: {}{} reads {} hidden states; only one "
                      "hidden state in a single equation is supported, stack them in "
                      "a HiddenGroupState",
                      n.op->name, n.loc ? " at " + to_string(n.loc) : "", states.size()));
    }
  }

  // The reference does not look past a state's new value when the very equation that
  // reads the old one writes it.
  std::set<ValueId> blind_spots(const HiddenVar& h) const {
    std::set<ValueId> stop;
    if (options_.grouping == Grouping::reachable) return stop;
    const Influence all =
        influence_of(*info_.index, std::vector{h.in}, h.varshape, flow_);
    for (const Use& u : info_.index->uses(h.in)) {
      const Node& n = info_.index->node(u.node);
      const bool other = std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) {
        return v != h.in && all.reached.contains(v);
      });
      if (other) continue;
      for (ValueId v : n.outputs)
        if (info_.hidden_at_output(v)) stop.insert(v);
    }
    return stop;
  }

  std::vector<std::size_t> connected(std::size_t i) const {
    const HiddenVar& h = info_.hidden[i];
    const std::set<ValueId> blind = blind_spots(h);
    const Influence inf = influence_of(*info_.index, std::vector{h.in}, h.varshape, flow_,
                                       [&](ValueId v) { return blind.contains(v); });
    std::vector<std::size_t> out;
    for (std::size_t j = 0; j < info_.hidden.size(); ++j) {
      const HiddenVar& other = info_.hidden[j];
      const auto it = inf.reached.find(other.out);
      if (it == inf.reached.end() || other.varshape != h.varshape) continue;
      if (!is_flat(i) || !is_flat(j)) continue;
      const bool kept =
          options_.grouping == Grouping::reference
              ? same_layer(other.path, h.path)
              : options_.include_recurrent_mixing ||
                    stands_on(it->second, info_.program().type(other.out).shape,
                              h.varshape);
      if (kept) out.push_back(j);
    }
    return out;
  }

  HiddenGroup build(std::size_t first, std::size_t index) {
    HiddenGroup g{.index = static_cast<std::int64_t>(index)};
    for (std::size_t i = first; i < info_.hidden.size(); ++i)
      if (root(i) == first) g.members.push_back(info_.hidden[i]);
    g.is_diagonal_recurrence = !options_.include_recurrent_mixing;
    g.check_consistent_varshape();
    add_transition(g);
    note_mixing_regions(g);
    if (options_.sparse_n)
      g.snap = group_snap_pattern(g, options_, diagnostics_,
                                  stretched_constants(*info_.index, g));
    if (g.members.size() > 1)
      diagnostics_.note({.kind = DiagnosticKind::hidden_group_merged,
                         .level = DiagnosticLevel::info,
                         .message = fmt::format("hidden group {} merges {}", index,
                                                path_list(g.hidden_paths())),
                         .hidden_paths = g.hidden_paths(),
                         .context = {{"group_index", fmt::format("{}", index)}}});
    return g;
  }

  void add_transition(HiddenGroup& g) const {
    const std::vector<ValueId> in = g.hidden_invars(), out = g.hidden_outvars();
    const Influence inf = influence_of(*info_.index, in, g.varshape(), flow_);
    const std::vector<std::size_t> nodes = nodes_between(*info_.index, inf, out);
    g.has_recurrence = !nodes.empty();
    SubProgram sub = extract(*info_.index, nodes, in, out,
                             [&](Use u) { return inf.kept.contains(u); });
    g.transition_program = std::move(sub.graph);
    g.transition_constants = std::move(sub.constants);
    g.cuts = inf.cuts;
  }

  // A loop or branch left in the program whose body mixes the state: outside the
  // transition.
  void note_mixing_regions(const HiddenGroup& g) const {
    std::set<std::size_t> seen;
    for (const Use& u : g.cuts) {
      const Node& n = info_.index->node(u.node);
      if (!region_mixes(n, u.input) || !seen.insert(u.node).second) continue;
      diagnostics_.note({.kind = DiagnosticKind::control_flow_recurrent_mixing,
                         .level = DiagnosticLevel::warning,
                         .message = fmt::format(
                             "the body of a {}{} mixes the positions of {}; it is left "
                             "out of the transition",
                             n.op->name, n.loc ? " at " + to_string(n.loc) : "",
                             path_list(g.hidden_paths())),
                         .primitive = std::string(n.op->name),
                         .hidden_paths = g.hidden_paths()});
    }
  }

  const ModuleInfo& info_;
  const CompileOptions& options_;
  Diagnostics& diagnostics_;
  std::vector<std::size_t> parent_;
  FlowOptions flow_;
};

}  // namespace

std::vector<HiddenGroup> find_hidden_groups_from_minfo(const ModuleInfo& info,
                                                       const CompileOptions& options,
                                                       Diagnostics& diagnostics) {
  check_control_flow(info, options, diagnostics);
  return GroupFinder(info, options, diagnostics).run();
}

std::vector<HiddenGroup> find_hidden_groups_from_module(Module& model,
                                                        const std::vector<Array>& args,
                                                        const CompileOptions& options) {
  Diagnostics unused;
  return find_hidden_groups_from_minfo(extract_module_info(model, args, options), options,
                                       unused);
}

}  // namespace braintrace
