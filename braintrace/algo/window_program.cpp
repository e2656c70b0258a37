// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/window_program.h"

#include <algorithm>

#include "braintrace/algo/while_terms.h"
#include "braintrace/algo/window_impl.h"
#include "braintrace/ops/calculus.h"

namespace braintrace {
namespace {

class WindowAssembler {
 public:
  WindowAssembler(const CompiledRule& rule, const LossProgram& step,
                  const WindowRequest& request)
      : rule_(rule),
        step_(step),
        request_(request),
        split_(split_step(rule, step, request.weights)),
        values_(rule, request.steps) {
    values_.inputs = split_.local.inputs;
    values_.fresh = request.fresh && is_all_credit();
  }

  StepProgram run() {
    declare_inputs();
    advance();
    local();
    meet_traces();
    return finish();
  }

 private:
  Type stacked_type(Type t) const {
    t.shape.insert(t.shape.begin(), request_.steps);
    return t;
  }

  void declare_inputs() {
    const std::vector<Type> types = step_.graph.input_types();
    for (std::size_t i = 0; i < step_.num_args; ++i)
      args_.push_back(builder_->input(stacked_type(types[i])));
    for (std::size_t k = 0; k < step_.leaves.size(); ++k)
      leaves_.push_back(builder_->input(types[step_.num_args + k]));
    for (const TraceSlot& t : rule_.traces())
      eps_.push_back(values_.fresh ? zeros_of(t.type) : builder_->input(t.type));
    values_.calls = builder_->input({rule_.scalar_dtype(), {}});
    values_.trace_steps = builder_->input({rule_.scalar_dtype(), {}});
    for (const RuleInput& in : split_.local.inputs)
      values_.extra.push_back(builder_->input(stacked_type(in.type)));
    weights_ = builder_->input(stacked_type(step_.graph.type(step_.graph.outputs()[0])));
  }

  // Runs the steps; keeps the states at entry and the results of products.
  void advance() {
    Values init;
    for (std::size_t k = 0; k < leaves_.size(); ++k)
      if (split_.carried[k]) init.push_back(leaves_[k]);
    const ScanResult r = scan(
        [&](const Values& in) {
          Values args(in.begin() + static_cast<std::ptrdiff_t>(init.size()), in.end());
          std::size_t c = 0;
          for (std::size_t k = 0; k < leaves_.size(); ++k)
            args.push_back(split_.carried[k] ? in[c++] : leaves_[k]);
          Values out = inline_graph(split_.advance, args);
          out.insert(out.begin() + static_cast<std::ptrdiff_t>(init.size()), in.begin(),
                     in.begin() + static_cast<std::ptrdiff_t>(init.size()));
          return out;
        },
        init, args_, {.length = request_.steps});
    exits_ = r.carry;
    entry_.assign(r.ys.begin(), r.ys.begin() + static_cast<std::ptrdiff_t>(init.size()));
    kept_.assign(r.ys.begin() + static_cast<std::ptrdiff_t>(init.size()), r.ys.end());
  }

  // [arguments | leaves | kept values]
  std::vector<Timed> step_inputs() const {
    std::vector<Timed> in;
    for (const Value& v : args_) in.push_back({v, true});
    std::size_t c = 0;
    for (std::size_t k = 0; k < leaves_.size(); ++k)
      in.push_back(split_.carried[k] ? Timed{entry_[c++], true}
                                     : Timed{leaves_[k], false});
    for (const Value& v : kept_) in.push_back({v, true});
    return in;
  }

  void local() {
    std::vector<Timed> in = step_inputs();
    in.push_back({weights_, true});
    in.push_back(values_.call_numbers());
    in.push_back(values_.step_numbers());
    for (const Value& v : values_.extra) in.push_back({v, true});
    const LocalProgram& p = split_.local;
    std::vector<Timed> out = values_.all_steps(p.graph, in);
    auto next = out.begin();
    loss_ = values_.stacked(*next++);
    for (std::size_t i = 0; i < step_.num_results; ++i)
      results_.push_back(values_.stacked(*next++));
    for (const std::string& leaf : p.newest)
      add_to(grads_, leaf, values_.summed(*next++));
    for (std::size_t g = 0; g < p.num_groups; ++g) values_.signals.push_back(*next++);
    for (std::size_t g = 0; g < p.num_groups; ++g)
      values_.d.push_back(p.has_D[g] ? std::optional<Timed>(*next++) : std::nullopt);
    for (std::size_t i = 0; i < p.num_adjoints; ++i) values_.adjoints.push_back(*next++);
    for (const ExposedRead& r : step_.reads) values_.reads[r.id] = *next++;
    if (!p.has_old) return;
    for (std::size_t g = 0; g < p.num_groups; ++g) values_.old_signals.push_back(*next++);
    values_.old_adjoints.assign(next, out.end());
  }

  // ---- traces -------------------------------------------------------------------------

  bool is_all_credit() const {
    const auto parts = rule_.rule().parts();
    return !split_.deep &&
           std::all_of(parts.begin(), parts.end(), [](const LearningRule* p) {
             return p->window_form() == WindowForm::credit;
           });
  }

  bool has_fixed_values(const LearningRule& part) const {
    const std::vector<ValueId> fixed = part.fixed_in_windows();
    return std::none_of(fixed.begin(), fixed.end(),
                        [&](ValueId v) { return values_.reads.at(v).stacked; });
  }

  void meet_traces() {
    if (split_.deep)
      return send_deep_credit(values_, *split_.deep, step_inputs(), request_.carry, eps_,
                              grads_);
    const auto parts = rule_.rule().parts();
    const bool old = !values_.old_signals.empty();
    const bool fast = std::all_of(parts.begin(), parts.end(), [&](const LearningRule* p) {
      if (old && p->window_form() != WindowForm::credit) return false;
      return p->window_form() != WindowForm::per_step && has_fixed_values(*p);
    });
    if (!fast || has_while_terms(rule_.context()))
      return roll_step_by_step(values_, eps_, grads_);
    std::size_t at = 0;
    for (const LearningRule* part : parts) {
      const std::size_t count = part->traces().size();
      const auto begin = eps_.begin() + static_cast<std::ptrdiff_t>(at);
      std::vector<Value> eps(begin, begin + static_cast<std::ptrdiff_t>(count));
      if (part->window_form() == WindowForm::credit)
        send_credit(values_, *part, request_.carry, eps, grads_);
      else
        meet_data(values_, *part, eps, grads_);
      std::copy(eps.begin(), eps.end(), eps_.begin() + static_cast<std::ptrdiff_t>(at));
      at += count;
    }
  }

  StepProgram finish() {
    StepProgram p{.graph = {}, .num_args = step_.num_args, .has_loss = true};
    p.num_results = step_.num_results;
    p.leaves = step_.leaves;
    p.num_traces = values_.fresh ? 0 : eps_.size();
    p.num_traces_out = !request_.carry && is_all_credit() ? 0 : eps_.size();
    p.inputs = split_.local.inputs;
    p.steps = request_.steps;
    p.calls = request_.steps;
    std::vector<Value> outputs = {loss_};
    outputs.insert(outputs.end(), results_.begin(), results_.end());
    std::size_t c = 0;
    for (ProgramLeaf& leaf : p.leaves) {
      if (!leaf.exit) continue;
      leaf.exit = outputs.size();
      outputs.push_back(exits_[c++]);
    }
    if (p.num_traces_out > 0) outputs.insert(outputs.end(), eps_.begin(), eps_.end());
    for (std::size_t k = 0; k < p.leaves.size(); ++k) {
      const std::string& name = p.leaves[k].name;
      const auto& w = request_.weights;
      const bool named = w.empty() || std::find(w.begin(), w.end(), name) != w.end();
      if (!p.leaves[k].parameter || !is_float(leaves_[k].dtype()) || !named) continue;
      const auto it = grads_.find(name);
      const bool given = it != grads_.end() && !rule_.is_frozen(name);
      p.gradients.push_back(name);
      outputs.push_back(given ? it->second : zeros_of(leaves_[k].type()));
    }
    p.graph = builder_->finish(outputs);
    return p;
  }

  const CompiledRule& rule_;
  const LossProgram& step_;
  const WindowRequest& request_;
  SplitStep split_;
  std::shared_ptr<Builder> builder_ = Builder::create();
  WindowValues values_;
  std::vector<Value> args_, leaves_, eps_, entry_, kept_, exits_, results_;
  Value weights_, loss_;
  LeafGradients grads_;
};

}  // namespace

StepProgram assemble_window(const CompiledRule& rule, const LossProgram& step,
                            const WindowRequest& request) {
  BT_REQUIRE(request.steps >= 1, "assemble_window: a window has at least one step");
  return WindowAssembler(rule, step, request).run();
}

std::int64_t steps_per_window(std::int64_t length, std::int64_t most, bool even) {
  const std::int64_t steps = std::clamp(most, std::int64_t{1}, length);
  const std::int64_t windows = (length + steps - 1) / steps;
  for (std::int64_t n = windows; even && 3 * n <= 4 * windows; ++n)
    if (length % n == 0) return length / n;
  return steps;
}

}  // namespace braintrace
