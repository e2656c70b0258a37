// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/local_reason.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/etrace/cut_set.h"
#include "braintrace/etrace/live_values.h"
#include "braintrace/etrace/weight_source.h"
#include "braintrace/ops/region_view.h"

namespace braintrace {
namespace {

class LocalReason {
 public:
  LocalReason(const ModuleInfo& info, const Path& path) : info_(info), path_(path) {}

  std::string text() const {
    const std::vector<ValueId>& leaves = info_.step.find(path_)->in;
    for (ValueId v : leaves)
      if (const std::string closed = closed_loop_behind(v); !closed.empty())
        return closed;
    for (ValueId v : leaves)
      for (const Use& u : info_.index->uses(v))
        if (reaches_hidden(u)) return by_way_of(u);
    return "it reaches no hidden state";
  }

 private:
  const Node& node(const Use& u) const { return info_.index->node(u.node); }

  std::string named(const Node& n) const {
    return node_name(info_.program(), n) + (n.loc ? " at " + to_string(n.loc) : "");
  }

  bool is_before_a_state(Use u) const {
    return passes_tangent(*info_.index, u) &&
           !info_.hidden_at_output(node(u).inputs[u.input]);
  }

  bool reaches_hidden(Use first) const {
    if (!is_before_a_state(first)) return false;
    for (ValueId v : node(first).outputs)
      for (ValueId r :
           reach_forward(*info_.index, v, [&](Use u) { return is_before_a_state(u); }))
        if (info_.hidden_at_output(r)) return true;
    return false;
  }

  // Does the op take this value, or what is made of it, as a weight?
  bool is_weight_of(const Node& n, std::size_t input) const {
    const NodeTypes types = types_of(info_.program(), n);
    for (const WeightInput& w : n.op->etp->weights({types.in, types.out, n.attrs}))
      if (static_cast<std::size_t>(w.input) == input) return true;
    return false;
  }

  // The first trainable op that the value meets, through other ops or at once.
  std::optional<Use> first_trainable(Use first) const {
    if (node(first).op->etp) return first;
    const auto plain = [&](Use u) {
      return is_before_a_state(u) && !is_structural_etp(node(u));
    };
    for (ValueId v : node(first).outputs)
      for (ValueId r : reach_forward(*info_.index, v, plain))
        for (const Use& u : info_.index->uses(r))
          if (node(u).op->etp && reaches_hidden(u)) return u;
    return std::nullopt;
  }

  std::string by_way_of(Use first) const {
    const std::optional<Use> op = first_trainable(first);
    if (op && is_weight_of(node(*op), op->input))
      return fmt::format(
          "what {} makes of it reaches hidden states only through ops that mix positions",
          named(node(*op)));
    if (info_.descended_nodes.contains(first.node))
      return fmt::format("no trainable op of the {} takes it to a hidden state",
                         named(node(first)));
    if (op && *op == first)
      return fmt::format("{} takes it as data, not as a weight", named(node(*op)));
    return fmt::format("it acts on hidden states through {}, which is no trainable op",
                       named(node(first)));
  }

  // Where something made of the parameter and of data enters a loop, branch or call that
  // stays closed; "" when nothing does.
  std::string closed_loop_behind(ValueId leaf) const {
    const auto plain = [&](Use u) {
      return is_before_a_state(u) && !is_structural_etp(node(u));
    };
    for (ValueId v : reach_forward(*info_.index, leaf, plain))
      for (const Use& u : info_.index->uses(v)) {
        const Node& n = node(u);
        if (!has(n.op->traits, Trait::region) || !any_node(n, is_etp)) continue;
        if (info_.descended_nodes.contains(u.node)) continue;
        return fmt::format(
            "what is made of it enters a {} that the compiler does not open", named(n));
      }
    return "";
  }

  const ModuleInfo& info_;
  const Path& path_;
};

}  // namespace

std::string why_local(const ModuleInfo& info, const Path& path) {
  return LocalReason(info, path).text();
}

}  // namespace braintrace
