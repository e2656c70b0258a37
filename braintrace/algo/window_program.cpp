// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/window_program.h"

#include <algorithm>
#include <cmath>

#include "braintrace/algo/window_local.h"
#include "braintrace/ops/batch.h"
#include "braintrace/ops/calculus.h"

namespace braintrace {
namespace {

// A value of every step: stacked on axis 0, or the same for all.
struct Timed {
  Value value;
  bool stacked = false;
};

class WindowAssembler {
 public:
  WindowAssembler(const CompiledRule& rule, const LossProgram& step,
                  const WindowRequest& request)
      : rule_(rule),
        step_(step),
        request_(request),
        split_(split_step(rule, step, request.weights)) {}

  StepProgram run() {
    declare_inputs();
    advance();
    local();
    meet_traces();
    return finish();
  }

 private:
  std::int64_t steps() const { return request_.steps; }
  Type stacked_type(Type t) const {
    t.shape.insert(t.shape.begin(), steps());
    return t;
  }

  void declare_inputs() {
    const std::vector<Type> types = step_.graph.input_types();
    for (std::size_t i = 0; i < step_.num_args; ++i)
      args_.push_back(builder_->input(stacked_type(types[i])));
    for (std::size_t k = 0; k < step_.leaves.size(); ++k)
      leaves_.push_back(builder_->input(types[step_.num_args + k]));
    for (const TraceSlot& t : rule_.traces()) eps_.push_back(builder_->input(t.type));
    calls_ = builder_->input({rule_.scalar_dtype(), {}});
    trace_steps_ = builder_->input({rule_.scalar_dtype(), {}});
    for (const RuleInput& in : split_.local.inputs)
      extra_.push_back(builder_->input(stacked_type(in.type)));
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
        init, args_, {.length = steps()});
    exits_ = r.carry;
    entry_.assign(r.ys.begin(), r.ys.begin() + static_cast<std::ptrdiff_t>(init.size()));
    kept_.assign(r.ys.begin() + static_cast<std::ptrdiff_t>(init.size()), r.ys.end());
  }

  // A per-step program for all steps at once.
  std::vector<Timed> all_steps(const Graph& g, const std::vector<Timed>& in) const {
    Values values;
    std::vector<BatchAxis> axes;
    for (const Timed& t : in) {
      values.push_back(t.value);
      axes.push_back(t.stacked ? BatchAxis{0} : BatchAxis{});
    }
    const BatchResult r = batch_graph(g, values, axes);
    std::vector<Timed> out;
    for (std::size_t i = 0; i < r.values.size(); ++i)
      out.push_back(
          {r.axes[i] ? batch_in_front(r.values[i], r.axes[i], steps()) : r.values[i],
           r.axes[i].has_value()});
    return out;
  }

  Value summed(const Timed& t) const {
    return t.stacked ? sum(t.value, {.axes = {0}})
                     : t.value * static_cast<double>(steps());
  }
  Value stacked(const Timed& t) const {
    return t.stacked ? t.value : batch_in_front(t.value, {}, steps());
  }
  Value first(const Timed& t) const {
    return t.stacked ? squeeze(slice_axis(t.value, 0, 0, 1), 0) : t.value;
  }
  // Trace steps before each step.
  Timed step_numbers() const {
    Array n = zeros({steps()}, DType::f64);
    for (std::int64_t i = 0; i < steps(); ++i)
      n.mutable_data<double>()[i] = static_cast<double>(i);
    return {Value(n.astype(rule_.scalar_dtype())) + trace_steps_, true};
  }
  Timed call_numbers() const {
    return {step_numbers().value - trace_steps_ + calls_, true};
  }

  void local() {
    std::vector<Timed> in;
    for (const Value& v : args_) in.push_back({v, true});
    std::size_t c = 0;
    for (std::size_t k = 0; k < leaves_.size(); ++k)
      in.push_back(split_.carried[k] ? Timed{entry_[c++], true}
                                     : Timed{leaves_[k], false});
    for (const Value& v : kept_) in.push_back({v, true});
    in.push_back({weights_, true});
    in.push_back(call_numbers());
    in.push_back(step_numbers());
    for (const Value& v : extra_) in.push_back({v, true});
    const LocalProgram& p = split_.local;
    std::vector<Timed> out = all_steps(p.graph, in);
    auto next = out.begin();
    loss_ = stacked(*next++);
    for (std::size_t i = 0; i < step_.num_results; ++i)
      results_.push_back(stacked(*next++));
    for (const std::string& leaf : p.newest) add_to(grads_, leaf, summed(*next++));
    for (std::size_t g = 0; g < p.num_groups; ++g) signals_.push_back(*next++);
    for (std::size_t g = 0; g < p.num_groups; ++g)
      d_.push_back(p.has_D[g] ? std::optional<Timed>(*next++) : std::nullopt);
    for (std::size_t i = 0; i < p.num_adjoints; ++i) adjoints_.push_back(*next++);
    for (const ExposedRead& r : step_.reads) reads_[r.id] = *next++;
  }

  // ---- traces -------------------------------------------------------------------------

  void meet_traces() {
    const auto parts = rule_.rule().parts();
    const bool fast = std::all_of(parts.begin(), parts.end(), [](const LearningRule* p) {
      return p->window_form() != WindowForm::per_step;
    });
    if (!fast) return roll_step_by_step();
    std::size_t at = 0;
    for (const LearningRule* part : parts) {
      const std::size_t count = part->traces().size();
      const auto begin = eps_.begin() + static_cast<std::ptrdiff_t>(at);
      std::vector<Value> eps(begin, begin + static_cast<std::ptrdiff_t>(count));
      if (part->window_form() == WindowForm::credit)
        send_credit(*part, eps);
      else
        meet_all(*part, eps);
      std::copy(eps.begin(), eps.end(), eps_.begin() + static_cast<std::ptrdiff_t>(at));
      at += count;
    }
  }

  // Any rule: its own program at every step, gradients added on the way.
  void roll_step_by_step() {
    const RuleProgram p = rule_.write(RuleMode::single_step);
    Values init = eps_, xs;
    for (std::size_t i = 0; i < p.leaves.size(); ++i)
      init.push_back(zeros_of(p.graph.type(p.graph.outputs()[p.num_traces + i])));
    for (ValueId v : p.reads)
      if (reads_.at(v).stacked) xs.push_back(reads_.at(v).value);
    for (const Timed& a : adjoints_) xs.push_back(stacked(a));
    xs.push_back(call_numbers().value);
    xs.push_back(step_numbers().value);
    xs.insert(xs.end(), extra_.begin(), extra_.end());
    const ScanResult r = scan(
        [&](const Values& in) {
          auto x = in.begin() + static_cast<std::ptrdiff_t>(init.size());
          Values args;
          for (ValueId v : p.reads)
            args.push_back(reads_.at(v).stacked ? *x++ : reads_.at(v).value);
          for (std::size_t i = 0; i < adjoints_.size(); ++i) args.push_back(*x++);
          args.insert(args.end(), in.begin(),
                      in.begin() + static_cast<std::ptrdiff_t>(p.num_traces));
          args.insert(args.end(), x, in.end());
          Values out = inline_graph(p.graph, args);
          for (std::size_t i = 0; i < p.leaves.size(); ++i)
            out[p.num_traces + i] = out[p.num_traces + i] + in[p.num_traces + i];
          return out;
        },
        init, xs, {.length = steps()});
    std::copy_n(r.carry.begin(), p.num_traces, eps_.begin());
    for (std::size_t i = 0; i < p.leaves.size(); ++i)
      add_to(grads_, p.leaves[i], r.carry[p.num_traces + i]);
  }

  // A program of one step written by `emit`, run for all steps at once.
  std::vector<Timed> for_all_steps(
      const std::vector<Timed>& more,
      const std::function<std::vector<Value>(StepTerms&, const Values&)>& emit) const {
    const auto b = Builder::create();
    std::vector<Timed> in;
    StepValues values;
    const auto declare = [&](const Timed& t) {
      Type type = t.value.type();
      if (t.stacked) type.shape.erase(type.shape.begin());
      in.push_back(t);
      return b->input(type);
    };
    for (const auto& [id, t] : reads_) values.emplace(id, declare(t));
    StepTerms terms(rule_.context(), std::move(values));
    terms.calls = declare(call_numbers());
    terms.trace_steps = declare(step_numbers());
    for (std::size_t i = 0; i < extra_.size(); ++i)
      terms.inputs.emplace(split_.local.inputs[i].name, declare({extra_[i], true}));
    Values given;
    for (const Timed& t : more) given.push_back(declare(t));
    const std::vector<Value> outputs = emit(terms, given);
    return all_steps(b->finish(outputs), in);
  }

  StepTerms first_terms() const {
    StepValues values;
    for (const auto& [id, t] : reads_) values.emplace(id, first(t));
    StepTerms terms(rule_.context(), std::move(values));
    terms.calls = calls_;
    terms.trace_steps = trace_steps_;
    return terms;
  }

  // The traces after each step: carried to the exit and, when kept, handed out as they
  // were before and after every step.
  enum class Keep { exit, all };
  ScanResult rolled(const LearningRule& part, const std::vector<Value>& eps,
                    Keep keep) const {
    Values xs;
    for (const auto& [id, t] : reads_)
      if (t.stacked) xs.push_back(t.value);
    xs.push_back(call_numbers().value);
    xs.push_back(step_numbers().value);
    xs.insert(xs.end(), extra_.begin(), extra_.end());
    return scan(
        [&](const Values& in) {
          auto x = in.begin() + static_cast<std::ptrdiff_t>(eps.size());
          StepValues values;
          for (const auto& [id, t] : reads_)
            values.emplace(id, t.stacked ? *x++ : t.value);
          StepTerms terms(rule_.context(), std::move(values));
          terms.calls = *x++;
          terms.trace_steps = *x++;
          for (const RuleInput& i : split_.local.inputs)
            terms.inputs.emplace(i.name, *x++);
          const Values before(in.begin(),
                              in.begin() + static_cast<std::ptrdiff_t>(eps.size()));
          const Values after = part.roll(terms, before);
          Values out = after;
          if (keep == Keep::exit) return out;
          out.insert(out.end(), before.begin(), before.end());
          out.insert(out.end(), after.begin(), after.end());
          return out;
        },
        eps, xs, {.length = steps()});
  }

  // Small traces: rolled step by step and kept, then met by all signals at once.
  void meet_all(const LearningRule& part, std::vector<Value>& eps) {
    const ScanResult r = rolled(part, eps, Keep::all);
    std::vector<Timed> more = signals_;
    for (const Value& v : r.ys) more.push_back({v, true});
    std::vector<std::string> leaves;
    const std::vector<Timed> grads =
        for_all_steps(more, [&](StepTerms& t, const Values& in) {
          const auto s = in.begin() + static_cast<std::ptrdiff_t>(signals_.size());
          const auto mid = s + static_cast<std::ptrdiff_t>(eps.size());
          Values after(mid, in.end());
          const GroupSignals signals(in.begin(), s);
          const LeafGradients g = rule_.adds_history_only()
                                      ? part.history(t, signals, Values(s, mid), after)
                                      : part.solve(t, signals, after);
          Values out;
          for (const auto& [leaf, v] : g) {
            leaves.push_back(leaf);
            out.push_back(v);
          }
          return out;
        });
    for (std::size_t i = 0; i < leaves.size(); ++i)
      add_to(grads_, leaves[i], summed(grads[i]));
    eps = r.carry;
  }

  // ---- credit -------------------------------------------------------------------------

  // From the last step to the first: q_t = sb_t + lambda_t, lambda_{t-1} = D_t^T q_t,
  // sb_t = s_t + kappa sb_{t+1}. Gives the credit each step's instantaneous term earns,
  // and what arrives at the entry.
  struct Credit {
    std::vector<Timed> earned;      // per group
    GroupSignals lambda, filtered;  // at entry
  };

  Credit credit(double kappa) {
    const std::size_t n = signals_.size();
    const bool own = !rule_.adds_history_only();  // the published rule: s meets eps_t
    Values init, xs;
    for (const Timed& s : signals_) {
      Type t = s.value.type();
      if (s.stacked) t.shape.erase(t.shape.begin());
      init.push_back(zeros_of(t));
    }
    const Values zero = init;
    if (kappa > 0) init.insert(init.end(), zero.begin(), zero.end());
    for (const Timed& s : signals_) xs.push_back(stacked(s));
    for (const auto& d : d_)
      if (d && d->stacked) xs.push_back(d->value);
    const ScanResult r = scan(
        [&](const Values& in) {
          const auto s = in.begin() + static_cast<std::ptrdiff_t>(init.size());
          auto d = s + static_cast<std::ptrdiff_t>(n);
          Values lambda, filtered, earned;
          for (std::size_t g = 0; g < n; ++g) {
            const Value direct = s[static_cast<std::ptrdiff_t>(g)];
            Value sb = direct;
            if (kappa > 0) sb = sb + in[n + g] * kappa;
            const Value q = sb + in[g];
            earned.push_back(own ? q : kappa > 0 ? q - direct : in[g]);
            filtered.push_back(sb);
            const Value block = !d_[g] ? Value() : d_[g]->stacked ? *d++ : d_[g]->value;
            lambda.push_back(d_[g] ? times_blocks_transposed(block, q) : zero[g]);
          }
          Values out = lambda;
          if (kappa > 0) out.insert(out.end(), filtered.begin(), filtered.end());
          out.insert(out.end(), earned.begin(), earned.end());
          return out;
        },
        init, xs, {.length = steps(), .reverse = true});
    Credit c;
    for (const Value& v : r.ys) c.earned.push_back({v, true});
    c.lambda.assign(r.carry.begin(), r.carry.begin() + static_cast<std::ptrdiff_t>(n));
    for (std::size_t g = 0; kappa > 0 && g < n; ++g)
      c.filtered.push_back(r.carry[n + g] * kappa);
    return c;
  }

  void send_credit(const LearningRule& part, std::vector<Value>& eps) {
    const Credit c = credit(part.filter());
    const std::vector<Timed> operands = for_all_steps(
        c.earned, [&](StepTerms& t, const Values& r) { return part.credit(t, r); });
    std::vector<Value> sums;
    for (const Timed& t : operands) sums.push_back(summed(t));
    StepTerms t = first_terms();
    add_to(grads_, part.pull_back(t, sums));
    add_to(grads_, part.entry(t, c.lambda, c.filtered, eps));
    if (request_.carry && part.rolls_to_exit())
      eps = rolled(part, eps, Keep::exit).carry;
    else if (request_.carry)
      carry(part, eps);
    else
      for (Value& e : eps) e = zeros_of(e.type());
  }

  // P_t = D_{W-1} ... D_{t+1} for every step, and their filtered twins
  // Q_t = kappa^{W-1-t} + Q_{t+1} D_{t+1}; the carries end at entry.
  void carry(const LearningRule& part, std::vector<Value>& eps) {
    const double kappa = part.filter();
    std::vector<Timed> to_exit;
    ToExit at_entry;
    at_entry.plain.resize(d_.size());
    at_entry.filtered.resize(d_.size());
    at_entry.kept = std::pow(kappa, static_cast<double>(steps()));
    std::vector<Timed> blocks;  // per group: plain, then filtered
    for (std::size_t g = 0; g < d_.size(); ++g) products(g, kappa, blocks, at_entry);
    std::vector<Timed> arrived =
        for_all_steps(blocks, [&](StepTerms& t, const Values& in) {
          ToExit m;
          for (std::size_t g = 0; g < d_.size(); ++g) {
            m.plain.emplace_back(in[2 * g]);
            m.filtered.emplace_back(in[2 * g + 1]);
          }
          return part.arrived(t, m);
        });
    StepTerms t = first_terms();
    const std::vector<Value> moved = part.moved(t, at_entry, eps);
    for (std::size_t i = 0; i < eps.size(); ++i) {
      Value next = moved[i] + summed(arrived[i]);
      eps[i] = next.dtype() == eps[i].dtype() ? next : astype(next, eps[i].dtype());
    }
  }

  void products(std::size_t g, double kappa, std::vector<Timed>& blocks, ToExit& entry) {
    const HiddenGroup& group = rule_.context().groups()[g];
    const std::int64_t m = rule_.context().width(group.index);
    Shape shape = group.varshape();
    shape.insert(shape.end(), {m, m});
    Array eye = zeros({m, m}, DType::f64);
    for (std::int64_t i = 0; i < m; ++i) eye.mutable_data<double>()[i * (m + 1)] = 1;
    const DType dtype = signals_[g].value.dtype();
    const Value one = Value(eye.astype(dtype).broadcast_to(shape).contiguous());
    const Value none = zeros_of(one.type());
    Values xs;
    if (d_[g] && d_[g]->stacked) xs.push_back(d_[g]->value);
    // carry: what the step after this one leads to (plain, filtered), kappa^(W-1-t)
    const ScanResult r = scan(
        [&](const Values& in) {
          const Value p = in[0], q = in[1] + one * in[2];
          Values out = {none, none, in[2] * kappa, p, q};
          if (d_[g]) {
            const Value d = d_[g]->stacked ? in[3] : d_[g]->value;
            out[0] = blocks_times_blocks(p, d);
            out[1] = blocks_times_blocks(q, d);
          }
          return out;
        },
        {one, none, Value(scalar(1, dtype))}, xs, {.length = steps(), .reverse = true});
    blocks.push_back({r.ys[0], true});
    blocks.push_back({r.ys[1], true});
    entry.plain[g] = r.carry[0];
    entry.filtered[g] = r.carry[1];
  }

  StepProgram finish() {
    StepProgram p{.graph = {}, .num_args = step_.num_args, .has_loss = true};
    p.num_results = step_.num_results;
    p.leaves = step_.leaves;
    p.num_traces = eps_.size();
    p.inputs = split_.local.inputs;
    p.steps = steps();
    p.calls = steps();
    std::vector<Value> outputs = {loss_};
    outputs.insert(outputs.end(), results_.begin(), results_.end());
    std::size_t c = 0;
    for (ProgramLeaf& leaf : p.leaves) {
      if (!leaf.exit) continue;
      leaf.exit = outputs.size();
      outputs.push_back(exits_[c++]);
    }
    outputs.insert(outputs.end(), eps_.begin(), eps_.end());
    for (std::size_t k = 0; k < p.leaves.size(); ++k) {
      const std::string& name = p.leaves[k].name;
      const auto& w = request_.weights;
      const bool named = w.empty() || std::find(w.begin(), w.end(), name) != w.end();
      if (!p.leaves[k].parameter || !is_float(leaves_[k].dtype()) || !named) continue;
      const auto it = grads_.find(name);
      p.gradients.push_back(name);
      outputs.push_back(it != grads_.end() ? it->second : zeros_of(leaves_[k].type()));
    }
    p.graph = builder_->finish(outputs);
    return p;
  }

  const CompiledRule& rule_;
  const LossProgram& step_;
  const WindowRequest& request_;
  SplitStep split_;
  std::shared_ptr<Builder> builder_ = Builder::create();
  std::vector<Value> args_, leaves_, eps_, extra_, entry_, kept_, exits_, results_;
  Value calls_, trace_steps_, weights_, loss_;
  std::vector<Timed> signals_, adjoints_;
  std::vector<std::optional<Timed>> d_;
  std::map<ValueId, Timed> reads_;
  LeafGradients grads_;
};

}  // namespace

StepProgram assemble_window(const CompiledRule& rule, const LossProgram& step,
                            const WindowRequest& request) {
  BT_REQUIRE(request.steps >= 1, "assemble_window: a window has at least one step");
  return WindowAssembler(rule, step, request).run();
}

}  // namespace braintrace
