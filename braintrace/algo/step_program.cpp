// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/step_program.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "braintrace/algo/old_states.h"
#include "braintrace/ops/batch.h"
#include "braintrace/ops/calculus.h"

namespace braintrace {
namespace {

class Assembler {
 public:
  Assembler(const CompiledRule& rule, const LossProgram& loss, const StepRequest& request)
      : rule_(rule), loss_(loss), request_(request) {
    multi_ = rule.meets_at_entry();
  }

  StepProgram run() {
    declare_inputs();
    differentiate();
    take_modulator();
    if (request_.gradient && multi_) meet_entry();
    roll();
    return finish();
  }

 private:
  void declare_inputs() {
    const std::vector<Type> types = loss_.graph.input_types();
    for (std::size_t i = 0; i < loss_.first_perturbation(); ++i)
      in_.push_back(builder_->input(types[i]));
    for (const TraceSlot& t : rule_.traces()) {
      Type type = t.type;
      if (request_.lanes) type.shape.insert(type.shape.begin(), *request_.lanes);
      eps_.push_back(builder_->input(type));
    }
    calls_ = builder_->input({rule_.scalar_dtype(), {}});
    trace_steps_ = builder_->input({rule_.scalar_dtype(), {}});
    step_mode_ = request_.gradient && !multi_ ? RuleMode::single_step : RuleMode::evolve;
    step_rule_ = rule_.write(step_mode_, modulator_of_a_lane());
    for (const RuleInput& in : step_rule_.inputs) {
      if (comes_with_the_loss(in)) {
        extra_.push_back({});  // known after differentiate()
        continue;
      }
      Type type = in.type;
      if (in.name == kModulator) type = *rule_.modulator;
      if (request_.window > 0) type.shape.insert(type.shape.begin(), request_.window);
      extra_.push_back(builder_->input(type));
    }
    if (!request_.gradient) return;
    const Type loss = loss_.graph.type(loss_.graph.outputs()[0]);
    weight_ = builder_->input(loss);
    for (std::size_t k = 0; k < loss_.leaves.size(); ++k)
      if (has_signal(k)) signals_.push_back(builder_->input(in_[input_of(k)].type()));
  }

  bool comes_with_the_loss(const RuleInput& in) const {
    return loss_.modulator && in.name == kModulator;
  }

  // The modulator the rule's program of one lane gets, when there is one.
  std::optional<Type> modulator_of_a_lane() const {
    std::optional<Type> t = rule_.modulator;
    if (loss_.modulator) t = loss_.graph.type(loss_.graph.outputs()[*loss_.modulator]);
    if (t && request_.lanes && t->rank() > 0) t->shape.erase(t->shape.begin());
    return t;
  }

  void take_modulator() {
    for (std::size_t i = 0; i < extra_.size(); ++i)
      if (comes_with_the_loss(step_rule_.inputs[i])) extra_[i] = outs_[*loss_.modulator];
  }

  // May credit pass the ends of this program through leaf k?
  bool has_signal(std::size_t k) const {
    const ProgramLeaf& leaf = loss_.leaves[k];
    return request_.signals && leaf.exit && !leaf.parameter && is_float_leaf(k);
  }

  // Leaf k as an input of the program.
  std::size_t input_of(std::size_t k) const { return loss_.num_args + k; }
  bool is_float_leaf(std::size_t k) const { return is_float(in_[input_of(k)].dtype()); }
  bool wanted(std::size_t k) const {
    const ProgramLeaf& leaf = loss_.leaves[k];
    if (!leaf.parameter || !is_float_leaf(k)) return false;
    const auto& w = request_.weights;
    return w.empty() || std::find(w.begin(), w.end(), leaf.name) != w.end();
  }

  // Reverse mode from the loss to perturbations, entry states and parameters.
  void differentiate() {
    std::vector<Value> in = in_;
    for (const Type& t : loss_.perturbations) in.push_back(zeros_of(t));
    if (!request_.gradient) {
      outs_ = inline_graph(loss_.graph, in);
      return;
    }
    std::vector<bool> active(in.size(), false);
    for (std::size_t k = 0; k < loss_.leaves.size(); ++k)
      active[input_of(k)] =
          wants_newest(k) || has_signal(k) ||
          (multi_ && is_hidden(loss_.leaves[k].state->kind()) && is_float_leaf(k));
    for (std::size_t i = loss_.first_perturbation(); i < in.size(); ++i)
      active[i] = is_float(in[i].dtype());
    std::vector<Tangent> ct(loss_.graph.outputs().size());
    ct[0] = *weight_;
    for (std::size_t k = 0, i = 0; k < loss_.leaves.size(); ++k)
      if (has_signal(k)) ct[*loss_.leaves[k].exit] = signals_[i++];
    VjpResult r = vjp_values(loss_.graph, active, in, ct);
    outs_ = std::move(r.outs);
    for (std::size_t k = 0; k < loss_.leaves.size(); ++k) {
      if (!wants_newest(k)) continue;
      if (const Tangent& g = r.cotangents[input_of(k)])
        add_to(grads_, loss_.leaves[k].name, *g);
    }
    cotangents_ = std::move(r.cotangents);
    if (!loss_.new_states.empty())
      old_states_ = old_state_adjoints(
          loss_, loss_.graph, rule_.graph().module_info.hidden, in, outs_, *weight_);
    if (rule_.algorithm().config.learning_signal() == LearningSignal::bootstrapped)
      add_predicted_future(in, active);
  }

  // What the future is predicted to send to the states at exit reaches the parameters
  // that have no trace; the others find it in theirs.
  void add_predicted_future(const std::vector<Value>& in,
                            const std::vector<bool>& active) {
    BT_REQUIRE_KIND(rule_.synthesizer.has_value(), ErrorKind::runtime,
                    fmt::format("{}: no synthetic gradient was given; call "
                                "set_synthesizer() first",
                                rule_.algorithm().name));
    std::vector<Tangent> ct(loss_.graph.outputs().size());
    for (const HiddenGroup& g : rule_.graph().hidden_groups) {
      std::vector<std::size_t> outputs;
      std::vector<Value> exits;
      for (const Path& path : g.hidden_paths()) {
        const HiddenState* state = rule_.graph().module_info.hidden_at(path)->state;
        for (const ProgramLeaf& leaf : loss_.leaves)
          if (leaf.state == state && leaf.exit) {
            outputs.push_back(*leaf.exit);
            exits.push_back(outs_[*leaf.exit]);
          }
      }
      if (exits.size() != g.members.size()) continue;
      const std::vector<Value> sent = predicted(g, exits);
      for (std::size_t i = 0; i < outputs.size(); ++i) ct[outputs[i]] = sent[i];
    }
    const VjpResult r = vjp_values(loss_.graph, active, in, ct);
    const std::set<std::string> paths = related_paths();
    for (std::size_t k = 0; k < loss_.leaves.size(); ++k) {
      if (!wants_newest(k) || paths.contains(parameter_of(loss_.leaves[k]))) continue;
      if (const Tangent& g = r.cotangents[input_of(k)])
        add_to(grads_, loss_.leaves[k].name, *g);
    }
  }

  // What the future is predicted to send to the members of a group; lane by lane.
  std::vector<Value> predicted(const HiddenGroup& g, const std::vector<Value>& exits) {
    const auto estimate = [&](const std::vector<Value>& members) {
      return g.split_hidden(
          rule_.synthesizer->estimate(g.index, g.concat_hidden(members)));
    };
    if (!request_.lanes) return estimate(exits);
    const auto lane = Builder::create();
    std::vector<Value> members;
    for (const Value& v : exits) {
      const Shape& s = v.shape();
      members.push_back(lane->input({v.dtype(), {s.begin() + 1, s.end()}}));
    }
    const std::vector<BatchAxis> axes(exits.size(), BatchAxis{0});
    BatchResult r = batch_graph(lane->finish(estimate(members)), exits, axes);
    for (std::size_t i = 0; i < r.values.size(); ++i)
      r.values[i] = batch_in_front(r.values[i], r.axes[i], *request_.lanes);
    return r.values;
  }

  // Parameters, not leaves: credit is routed by parameter.
  std::set<std::string> related_paths() const {
    std::set<std::string> out;
    for (const HiddenParamOpRelation& r : rule_.graph().hidden_param_op_relations)
      for (const Trainable& t : r.trainables)
        for (const WeightVar& w : t.prologue.parameters) out.insert(to_slashes(w.path));
    return out;
  }
  static std::string parameter_of(const ProgramLeaf& leaf) {
    const std::string& key = leaf.state->spec(leaf.leaf).key;
    return key.empty() ? leaf.name
                       : leaf.name.substr(0, leaf.name.size() - key.size() - 1);
  }

  // Does reverse mode through this step (or window) give part of its gradient?
  bool wants_newest(std::size_t k) const {
    if (!wanted(k) || rule_.is_frozen(loss_.leaves[k].name)) return false;
    return multi_ || rule_.newest_by_reverse_mode(loss_.leaves[k].name);
  }

  Value adjoint_or_zero(std::size_t input, const Type& type) const {
    return materialize(cotangents_[input], type);
  }

  // Adjoints per hidden state: of the perturbations, or of the states at entry.
  std::vector<Value> adjoints(bool entry) const {
    std::vector<Value> out;
    const ModuleInfo& info = rule_.graph().module_info;
    for (std::size_t h = 0; h < info.hidden.size(); ++h) {
      if (!entry) {
        out.push_back(
            adjoint_or_zero(loss_.first_perturbation() + h, loss_.perturbations[h]));
        continue;
      }
      const auto it = std::find_if(
          loss_.leaves.begin(), loss_.leaves.end(),
          [&](const ProgramLeaf& l) { return l.state == info.hidden[h].state; });
      BT_INVARIANT(it != loss_.leaves.end());
      const std::size_t i = input_of(static_cast<std::size_t>(it - loss_.leaves.begin()));
      out.push_back(adjoint_or_zero(i, in_[i].type()));
    }
    return out;
  }

  // One rule program on values of this step: traces move, gradients are added.
  void apply(const RuleProgram& p, const std::vector<Value>& reads,
             const std::vector<Value>& adjoints, const std::vector<Value>& extra,
             const Value& trace_steps) {
    std::vector<Value> in = reads;
    in.insert(in.end(), adjoints.begin(), adjoints.end());
    in.insert(in.end(), eps_.begin(), eps_.end());
    in.push_back(calls_);
    in.push_back(trace_steps);
    in.insert(in.end(), extra.begin(), extra.end());
    BatchResult r;
    if (request_.lanes) {
      std::vector<BatchAxis> axes;
      for (std::size_t i = 0; i < in.size(); ++i)
        axes.push_back(in[i].type() == p.graph.type(p.graph.inputs()[i]) ? BatchAxis{}
                                                                         : BatchAxis{0});
      r = batch_graph(p.graph, in, axes);
    } else {
      r.values = inline_graph(p.graph, in);
      r.axes.resize(r.values.size());
    }
    for (std::size_t i = 0; i < p.num_traces; ++i)
      eps_[i] = request_.lanes ? batch_in_front(r.values[i], r.axes[i], *request_.lanes)
                               : r.values[i];
    for (std::size_t i = 0; i < p.leaves.size(); ++i) {
      const std::size_t k = p.num_traces + i;
      Value g = r.values[k];
      if (r.axes[k])
        g = sum(g, {.axes = {*r.axes[k]}});
      else if (request_.lanes)
        g = g * static_cast<double>(*request_.lanes);
      add_to(grads_, p.leaves[i], g);
    }
  }

  Value read(std::size_t i, const std::optional<Value>& t) const {
    const ExposedRead& r = loss_.reads[i];
    const Value& v = outs_[r.output];
    if (!r.has_time) return v;
    return t ? squeeze(take(v, reshape(*t, {1}), 0), 0)
             : squeeze(slice_axis(v, 0, 0, 1), 0);
  }

  // The adjoints at window entry meet the traces from before.
  void meet_entry() {
    const RuleProgram entry = rule_.write(RuleMode::entry);
    std::vector<Value> reads;
    for (std::size_t i = 0; i < loss_.reads.size(); ++i) reads.push_back(read(i, {}));
    std::vector<Value> extra;
    for (const Value& v : extra_)
      extra.push_back(request_.window > 0 ? squeeze(slice_axis(v, 0, 0, 1), 0) : v);
    apply(entry, reads, adjoints(true), extra, trace_steps_);
  }

  void roll() {
    if (request_.window == 0) {
      std::vector<Value> reads;
      for (std::size_t i = 0; i < loss_.reads.size(); ++i) reads.push_back(read(i, {}));
      if (!old_states_.empty())
        apply(rule_.write(RuleMode::old_states), reads, old_states_, extra_,
              trace_steps_);
      const bool signals = step_mode_ == RuleMode::single_step;
      apply(step_rule_, reads, signals ? adjoints(false) : std::vector<Value>{}, extra_,
            trace_steps_);
      return;
    }
    roll_window();
  }

  // Traces over the steps of a window: a scan over the values that change in it.
  void roll_window() {
    std::vector<Value> xs;
    for (const ExposedRead& r : loss_.reads)
      if (r.has_time) xs.push_back(outs_[r.output]);
    xs.insert(xs.end(), extra_.begin(), extra_.end());
    std::vector<Value> init = eps_;
    init.push_back(trace_steps_);
    const ScanResult r = scan(
        [&](const Values& in) {
          const auto state = in.begin() + static_cast<std::ptrdiff_t>(eps_.size());
          Values args;
          auto next = state + 1;
          for (std::size_t i = 0; i < loss_.reads.size(); ++i)
            args.push_back(loss_.reads[i].has_time ? *next++
                                                   : outs_[loss_.reads[i].output]);
          args.insert(args.end(), in.begin(), state);
          args.push_back(calls_);
          args.push_back(*state);
          args.insert(args.end(), next, in.end());
          Values out = inline_graph(step_rule_.graph, args);
          out.push_back(*state + 1);
          return out;
        },
        init, xs, {.length = request_.window});
    eps_.assign(r.carry.begin(), r.carry.end() - 1);
  }

  StepProgram finish() {
    StepProgram p{.graph = {}, .num_args = loss_.num_args, .has_loss = loss_.has_loss};
    p.num_results = loss_.num_results;
    p.leaves = loss_.leaves;
    p.num_traces = p.num_traces_out = eps_.size();
    for (const RuleInput& in : step_rule_.inputs)
      if (!comes_with_the_loss(in)) p.inputs.push_back(in);
    p.steps = std::max<std::int64_t>(1, request_.window);
    std::vector<Value> outputs(
        outs_.begin(), outs_.begin() + static_cast<std::ptrdiff_t>(loss_.first_result() +
                                                                   loss_.num_results));
    for (ProgramLeaf& leaf : p.leaves) {
      if (!leaf.exit) continue;
      const Value v = outs_[*leaf.exit];
      leaf.exit = outputs.size();
      outputs.push_back(v);
    }
    outputs.insert(outputs.end(), eps_.begin(), eps_.end());
    for (std::size_t k = 0; request_.gradient && k < p.leaves.size(); ++k) {
      if (!wanted(k)) continue;
      const auto it = grads_.find(p.leaves[k].name);
      const bool given = it != grads_.end() && !rule_.is_frozen(it->first);
      p.gradients.push_back(p.leaves[k].name);
      outputs.push_back(given ? it->second : zeros_of(in_[input_of(k)].type()));
    }
    p.num_signals = signals_.size();
    for (std::size_t k = 0; k < loss_.leaves.size(); ++k)
      if (has_signal(k))
        outputs.push_back(adjoint_or_zero(input_of(k), in_[input_of(k)].type()));
    p.graph = builder_->finish(outputs);
    return p;
  }

  const CompiledRule& rule_;
  const LossProgram& loss_;
  const StepRequest& request_;
  bool multi_ = false;
  RuleMode step_mode_ = RuleMode::evolve;
  RuleProgram step_rule_;
  std::shared_ptr<Builder> builder_ = Builder::create();
  std::vector<Value> in_, eps_, extra_, outs_, signals_;
  Value calls_, trace_steps_;
  std::optional<Value> weight_;
  std::vector<Tangent> cotangents_;
  std::vector<Value> old_states_;  // adjoints per hidden state; empty: none are read
  LeafGradients grads_;
};

}  // namespace

SpliceOptions splice_options(const CompiledRule& rule, const StepRequest& request) {
  const bool single = !rule.meets_at_entry();
  return {.perturb = request.gradient && single,
          .window = request.window > 0,
          .detach_while = single,
          .old_states = request.gradient && rule.credits_old_states(),
          .lanes = request.lanes};
}

StepProgram assemble(const CompiledRule& rule, const LossProgram& loss,
                     const StepRequest& request) {
  BT_REQUIRE_KIND(request.window == 0 || !request.gradient || rule.meets_at_entry(),
                  ErrorKind::not_implemented,
                  fmt::format("{}: several steps under one gradient need vjp_method "
                              "multi-step",
                              rule.algorithm().name));
  return Assembler(rule, loss, request).run();
}

}  // namespace braintrace
