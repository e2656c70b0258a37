// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/window_local.h"

#include <algorithm>
#include <set>

#include "braintrace/algo/old_states.h"
#include "braintrace/ir/subgraph.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/ops/region_view.h"

namespace braintrace {
namespace {

// Worth keeping rather than computing twice: products, loops, anything with weights.
bool is_costly(const Graph& g, const Node& n) {
  return n.op->etp || is_product(g, n) || as_scan(n) || as_while(n) || as_cond(n);
}

// Results of costly nodes that the outputs need.
std::vector<ValueId> kept_values(const Graph& g, std::span<const ValueId> outputs) {
  std::set<ValueId> needed(outputs.begin(), outputs.end());
  std::vector<ValueId> kept;
  for (std::size_t i = g.nodes().size(); i-- > 0;) {
    const Node& n = g.nodes()[i];
    const bool wanted = std::any_of(n.outputs.begin(), n.outputs.end(),
                                    [&](ValueId v) { return needed.contains(v); });
    if (!wanted) continue;
    needed.insert(n.inputs.begin(), n.inputs.end());
    if (is_costly(g, n)) kept.insert(kept.end(), n.outputs.begin(), n.outputs.end());
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

std::vector<Value> with_zero_perturbations(const LossProgram& step,
                                           std::vector<Value> in) {
  for (const Type& t : step.perturbations) in.push_back(zeros_of(t));
  return in;
}

class Splitter {
 public:
  Splitter(const CompiledRule& rule, const LossProgram& step,
           const std::vector<std::string>& weights)
      : rule_(rule), step_(step), weights_(weights) {
    for (const ProgramLeaf& leaf : step.leaves) {
      split_.carried.push_back(leaf.exit.has_value());
      if (leaf.exit) exits_.push_back(step.graph.outputs()[*leaf.exit]);
    }
    kept_ = kept_values(step.graph, exits_);
    std::vector<ValueId> outputs(step.graph.outputs().begin(),
                                 step.graph.outputs().end());
    outputs.insert(outputs.end(), kept_.begin(), kept_.end());
    extended_ = subgraph(step.graph, step.graph.inputs(), outputs);
    split_.num_kept = kept_.size();
  }

  SplitStep run() {
    write_advance();
    write_local();
    if (rule_.options().history == History::deep) write_deep();
    return std::move(split_);
  }

 private:
  std::vector<Value> declare(Builder& b) const {
    const std::vector<Type> types = step_.graph.input_types();
    std::vector<Value> in;
    for (std::size_t i = 0; i < step_.first_perturbation(); ++i)
      in.push_back(b.input(types[i]));
    return in;
  }

  void write_advance() {
    const auto builder = Builder::create();
    const std::vector<Value> out =
        inline_graph(extended_, with_zero_perturbations(step_, declare(*builder)));
    std::vector<Value> result;
    for (const ProgramLeaf& leaf : step_.leaves)
      if (leaf.exit) result.push_back(out[*leaf.exit]);
    const std::size_t first = step_.graph.outputs().size();
    result.insert(result.end(), out.begin() + static_cast<std::ptrdiff_t>(first),
                  out.end());
    const Graph g = builder->finish(result);
    split_.advance = subgraph(g, g.inputs(), g.outputs());
  }

  bool wants_newest(const ProgramLeaf& leaf, const Type& type) {
    const bool named = weights_.empty() || std::find(weights_.begin(), weights_.end(),
                                                     leaf.name) != weights_.end();
    return leaf.parameter && is_float(type.dtype) && named &&
           rule_.newest_by_reverse_mode(leaf.name);
  }

  void write_local() {
    LocalProgram& p = split_.local;
    const auto builder = Builder::create();
    const std::vector<Value> in = declare(*builder);
    const Type loss_type = step_.graph.type(step_.graph.outputs()[0]);
    const Value weight = builder->input(loss_type);
    const Value calls = builder->input({rule_.scalar_dtype(), {}});
    const Value trace_steps = builder->input({rule_.scalar_dtype(), {}});
    p.inputs = rule_.inputs(RuleMode::single_step);
    std::vector<Value> extra;
    for (const RuleInput& r : p.inputs) extra.push_back(builder->input(r.type));

    std::vector<bool> active(extended_.inputs().size(), false);
    for (std::size_t k = 0; k < step_.leaves.size(); ++k)
      active[step_.num_args + k] =
          wants_newest(step_.leaves[k], in[step_.num_args + k].type());
    for (std::size_t i = step_.first_perturbation(); i < active.size(); ++i)
      active[i] = is_float(extended_.input_types()[i].dtype);
    std::vector<Tangent> ct(extended_.outputs().size());
    ct[0] = weight;
    const VjpResult r =
        vjp_values(extended_, active, with_zero_perturbations(step_, in), ct);

    std::vector<Value> outputs(
        r.outs.begin(),
        r.outs.begin() + static_cast<std::ptrdiff_t>(1 + step_.num_results));
    for (std::size_t k = 0; k < step_.leaves.size(); ++k) {
      const std::size_t i = step_.num_args + k;
      if (!active[i]) continue;
      p.newest.push_back(step_.leaves[k].name);
      outputs.push_back(materialize(r.cotangents[i], in[i].type()));
    }
    StepTerms terms(rule_.context(), reads_of(r.outs));
    terms.calls = calls;
    terms.trace_steps = trace_steps;
    for (std::size_t i = 0; i < extra.size(); ++i)
      terms.inputs.emplace(p.inputs[i].name, extra[i]);
    const std::vector<Value> adjoints = adjoints_of(r.cotangents);
    for (const Value& s : rule_.signals(terms, adjoints, RuleMode::single_step))
      outputs.push_back(s);
    for (const HiddenGroup& g : rule_.context().groups()) {
      const std::optional<Value> d = g.descent ? std::nullopt : terms.D(g.index);
      p.has_D.push_back(d.has_value());
      if (d) outputs.push_back(*d);
    }
    p.num_groups = p.has_D.size();
    p.num_adjoints = adjoints.size();
    outputs.insert(outputs.end(), adjoints.begin(), adjoints.end());
    for (const ExposedRead& read : step_.reads) outputs.push_back(r.outs[read.output]);
    p.has_old = !step_.new_states.empty();
    if (p.has_old) {
      const std::vector<Value> old =
          old_state_adjoints(step_, extended_, rule_.graph().module_info.hidden,
                             with_zero_perturbations(step_, in), r.outs, weight);
      for (const Value& s : rule_.signals(terms, old, RuleMode::old_states))
        outputs.push_back(s);
      outputs.insert(outputs.end(), old.begin(), old.end());
    }
    p.graph = cut(builder->finish(outputs), in.size(), kept_of(r.outs));
  }

  void write_deep() {
    DeepProgram p;
    const auto builder = Builder::create();
    const std::vector<Value> in = declare(*builder);
    std::vector<bool> active(extended_.inputs().size(), false);
    std::vector<Tangent> ct(extended_.outputs().size());
    const auto& hidden = rule_.graph().module_info.hidden;
    for (std::size_t h = 0; h < hidden.size(); ++h) {
      const Type& type = step_.perturbations[h];
      const Value lambda = builder->input(type);
      active[step_.first_perturbation() + h] = is_float(type.dtype);
      for (const ProgramLeaf& leaf : step_.leaves)
        if (leaf.state == hidden[h].state && leaf.exit && is_float(type.dtype))
          ct[*leaf.exit] = lambda;
    }
    for (std::size_t k = 0; k < step_.leaves.size(); ++k)
      active[step_.num_args + k] =
          wants_newest(step_.leaves[k], in[step_.num_args + k].type());
    const VjpResult r =
        vjp_values(extended_, active, with_zero_perturbations(step_, in), ct);
    StepTerms terms(rule_.context(), reads_of(r.outs));
    std::vector<Value> signals =
        rule_.signals(terms, adjoints_of(r.cotangents), RuleMode::single_step);
    std::vector<Value> gradients;
    for (std::size_t k = 0; k < step_.leaves.size(); ++k) {
      const Tangent& g = r.cotangents[step_.num_args + k];
      if (!active[step_.num_args + k] || !g) continue;
      p.leaves.push_back(step_.leaves[k].name);
      gradients.push_back(*g);
    }
    std::vector<Value> outputs = signals;
    outputs.insert(outputs.end(), gradients.begin(), gradients.end());
    const Graph g = cut(builder->finish(outputs), in.size(), kept_of(r.outs));
    p.back = subgraph(g, g.inputs(), g.outputs().first(signals.size()));
    p.past = subgraph(g, g.inputs(), g.outputs().subspan(signals.size()));
    split_.deep = std::move(p);
  }

  StepValues reads_of(const std::vector<Value>& outs) const {
    StepValues values;
    for (const ExposedRead& read : step_.reads)
      values.emplace(read.id, outs[read.output]);
    return values;
  }
  std::vector<Value> adjoints_of(const std::vector<Tangent>& cotangents) const {
    std::vector<Value> out;
    for (std::size_t h = 0; h < step_.perturbations.size(); ++h)
      out.push_back(materialize(cotangents[step_.first_perturbation() + h],
                                step_.perturbations[h]));
    return out;
  }
  std::vector<Value> kept_of(const std::vector<Value>& outs) const {
    return {outs.end() - static_cast<std::ptrdiff_t>(kept_.size()), outs.end()};
  }

  // The products become inputs: they were computed on the way.
  static Graph cut(const Graph& g, std::size_t num_in, const std::vector<Value>& kept) {
    std::vector<ValueId> inputs(g.inputs().begin(),
                                g.inputs().begin() + static_cast<std::ptrdiff_t>(num_in));
    for (const Value& v : kept) inputs.push_back(v.id());
    inputs.insert(inputs.end(), g.inputs().begin() + static_cast<std::ptrdiff_t>(num_in),
                  g.inputs().end());
    return subgraph(g, inputs, g.outputs());
  }

  const CompiledRule& rule_;
  const LossProgram& step_;
  const std::vector<std::string>& weights_;
  std::vector<ValueId> exits_, kept_;
  Graph extended_;
  SplitStep split_;
};

}  // namespace

SplitStep split_step(const CompiledRule& rule, const LossProgram& step,
                     const std::vector<std::string>& weights) {
  return Splitter(rule, step, weights).run();
}

}  // namespace braintrace
