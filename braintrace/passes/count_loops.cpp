// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/count_loops.h"

#include <algorithm>

#include "braintrace/ir/evaluate.h"
#include "braintrace/ir/subgraph.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/region_view.h"
#include "braintrace/passes/rewrite.h"

namespace braintrace {
namespace {

constexpr std::int64_t kMostTurns = 4096;

// The value of a node without inputs: a constant.
std::optional<Array> constant(const Graph& g, std::span<const Node* const> producers,
                              ValueId v) {
  const Node* n = producers[v.index];
  if (!n || !n->inputs.empty() || n->outputs.size() != 1) return std::nullopt;
  return eval_graph(subgraph(g, {}, std::vector{v}), {})[0];
}

// A sub-graph of the loop, and the inputs of the node that become its consts.
struct Part {
  const Graph& graph;
  std::size_t first_const, num_consts;

  // By input: do these outputs depend on it?
  std::vector<bool> reads(std::span<const ValueId> outputs) const {
    std::vector<bool> out;
    for (ValueId in : graph.inputs()) {
      const std::vector<bool> depends = depends_on(graph, std::vector{in});
      out.push_back(std::any_of(outputs.begin(), outputs.end(),
                                [&](ValueId v) { return depends[v.index]; }));
    }
    return out;
  }
};

// The part of a loop that decides how often it turns.
class TurnCounter {
 public:
  TurnCounter(const Graph& g, std::span<const Node* const> producers, const Node& n,
              const WhileView& w)
      : g_(g),
        producers_(producers),
        n_(n),
        condition_{*w.condition, 0, w.num_condition_consts},
        body_{*w.body, w.num_condition_consts, w.num_body_consts},
        first_carry_(w.num_condition_consts + w.num_body_consts),
        decides_(n.outputs.size(), false) {}

  std::optional<std::int64_t> run() {
    find_deciding();
    if (!take_constants(condition_, condition_.graph.outputs(), condition_in_) ||
        !take_constants(body_, deciding_outputs(), body_in_))
      return std::nullopt;
    const Graph test = part(condition_, condition_.graph.outputs());
    const Graph turn = part(body_, deciding_outputs());
    for (std::int64_t count = 0; count <= kMostTurns; ++count) {
      if (eval_graph(test, condition_in_)[0].item() == 0) return count;
      const std::vector<Array> next = eval_graph(turn, body_in_);
      for (std::vector<Array>* in : {&condition_in_, &body_in_})
        std::copy(next.begin(), next.end(), in->end() - std::ssize(next));
    }
    return std::nullopt;
  }

 private:
  // Carried values the condition depends on, from turn to turn.
  void find_deciding() {
    mark(condition_, condition_.reads(condition_.graph.outputs()));
    for (std::size_t before = 0; before != deciding_outputs().size();) {
      before = deciding_outputs().size();
      mark(body_, body_.reads(deciding_outputs()));
    }
  }
  void mark(const Part& p, const std::vector<bool>& reads) {
    for (std::size_t c = 0; c < decides_.size(); ++c)
      decides_[c] = decides_[c] || reads[p.num_consts + c];
  }
  std::vector<ValueId> deciding_outputs() const {
    std::vector<ValueId> out;
    for (std::size_t c = 0; c < decides_.size(); ++c)
      if (decides_[c]) out.push_back(body_.graph.outputs()[c]);
    return out;
  }

  // Consts that are read, then carried values that decide. False: one is no constant.
  bool take_constants(const Part& p, std::span<const ValueId> outputs,
                      std::vector<Array>& in) const {
    const std::vector<bool> reads = p.reads(outputs);
    for (std::size_t i = 0; i < p.num_consts + decides_.size(); ++i) {
      const bool carried = i >= p.num_consts;
      if (carried ? !decides_[i - p.num_consts] : !reads[i]) continue;
      const ValueId from =
          n_.inputs[carried ? first_carry_ + i - p.num_consts : p.first_const + i];
      const std::optional<Array> value = constant(g_, producers_, from);
      if (!value) return false;
      in.push_back(*value);
    }
    return true;
  }
  Graph part(const Part& p, std::span<const ValueId> outputs) const {
    const std::vector<bool> reads = p.reads(outputs);
    std::vector<ValueId> in;
    for (std::size_t i = 0; i < reads.size(); ++i)
      if (i < p.num_consts ? reads[i] : decides_[i - p.num_consts])
        in.push_back(p.graph.inputs()[i]);
    return subgraph(p.graph, in, outputs);
  }
  const Graph& g_;
  std::span<const Node* const> producers_;
  const Node& n_;
  Part condition_, body_;
  std::size_t first_carry_;
  std::vector<bool> decides_;  // by carried value
  std::vector<Array> condition_in_, body_in_;
};

Values scan_of(const WhileView& w, std::int64_t turns, const Values& in) {
  const auto consts = in.begin() + static_cast<std::ptrdiff_t>(w.num_condition_consts);
  const auto carry = consts + static_cast<std::ptrdiff_t>(w.num_body_consts);
  if (turns == 0) return Values(carry, in.end());
  const Graph body = count_loops(*w.body);
  const ValuesFn turn = [&](const Values& carried) {
    Values all(consts, carry);
    all.insert(all.end(), carried.begin(), carried.end());
    return inline_graph(body, all);
  };
  return scan(turn, Values(carry, in.end()), {}, {.length = turns}).carry;
}

}  // namespace

Graph count_loops(const Graph& g) {
  std::vector<const Node*> producers(g.num_values(), nullptr);
  for (const Node& n : g.nodes())
    for (ValueId v : n.outputs) producers[v.index] = &n;
  RewriteRules rules{.sub_graph = count_loops};
  rules.old_node = [&](Builder&, std::size_t i, std::span<const Value> env) -> Rewrite {
    const Node& n = g.nodes()[i];
    const auto loop = as_while(n);
    const auto turns =
        loop ? TurnCounter(g, producers, n, *loop).run() : std::optional<std::int64_t>{};
    if (!turns) return std::nullopt;
    Values in;
    for (ValueId v : n.inputs) in.push_back(env[v.index]);
    return scan_of(*loop, *turns, in);
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
