// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/loss_program.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/algo/old_states.h"
#include "braintrace/ir/subgraph.h"
#include "braintrace/ops/batch.h"

namespace braintrace {
namespace {

// Inputs stand in front in a finished program, in the order they were declared, whatever
// was computed in between.
std::vector<ValueId> finished_inputs(const Graph& g, const std::vector<ValueId>& ids) {
  std::vector<ValueId> declared = ids;
  std::sort(declared.begin(), declared.end());
  BT_INVARIANT(declared.size() == g.inputs().size());
  std::vector<ValueId> out;
  for (ValueId v : ids) {
    const auto at = std::lower_bound(declared.begin(), declared.end(), v);
    out.push_back(g.inputs()[static_cast<std::size_t>(at - declared.begin())]);
  }
  return out;
}

std::string leaf_path(const StepState& s, std::size_t leaf) {
  const std::string& key = s.state->spec(leaf).key;
  return to_slashes(key.empty() ? s.path : s.path.child(key));
}

}  // namespace

struct LossTracer::Splice {
  Values perturbations;
  std::vector<std::pair<ValueId, Value>> reads;
  std::vector<bool> has_lane, has_time;
  Values new_states;  // of the hidden states
  std::optional<Value> modulator;
};

LossTracer::LossTracer(const ETraceGraph& graph, std::vector<ValueId> reads,
                       SpliceOptions options)
    : graph_(graph), reads_(std::move(reads)), options_(options) {
  const ModuleInfo info = graph.module_info.add_jaxpr_outs(reads_);
  step_ = options_.perturb ? add_hidden_perturbation_from_minfo(info).program
                           : info.program();
  if (options_.detach_while) step_ = detached_whiles(step_);
  // Behind outputs and exits only what was asked for.
  const StepModel& step = graph.module_info.step;
  const auto outputs = info.program().outputs();
  std::vector<ValueId> kept;
  std::size_t first = step.num_outputs;
  for (const StepState& s : step.states) first += s.out.size();
  for (std::size_t i = 0; i < first; ++i) kept.push_back(step_.outputs()[i]);
  for (ValueId v : reads_) {
    const auto at = std::find(outputs.begin(), outputs.end(), v) - outputs.begin();
    BT_INVARIANT(at < static_cast<std::ptrdiff_t>(outputs.size()));
    kept.push_back(step_.outputs()[static_cast<std::size_t>(at)]);
  }
  step_ = subgraph(step_, step_.inputs(), kept);
}

LossTracer::~LossTracer() = default;

void LossTracer::check_args(const Values& args) const {
  const Graph& program = graph_.module_info.program();
  const std::size_t n = graph_.module_info.step.num_args;
  BT_REQUIRE(args.size() == n,
             fmt::format("learner: the model was compiled with {} inputs, got {}", n,
                         args.size()));
  for (std::size_t i = 0; i < n; ++i) {
    Type got = args[i].type();
    const Type& want = program.type(program.inputs()[i]);
    const bool leading = options_.window || options_.lanes;
    if (leading && got.rank() > 0) got.shape.erase(got.shape.begin());
    BT_REQUIRE(got == want,
               fmt::format("learner: input {} must be {}{}, got {}", i, to_string(want),
                           options_.window  ? " behind a leading time axis"
                           : options_.lanes ? " behind a leading lane axis"
                                            : "",
                           to_string(args[i].type())));
  }
}

Values LossTracer::entry_leaves(TraceScope& scope) const {
  Values out;
  for (const StepState& s : graph_.module_info.step.states)
    for (std::size_t k = 0; k < s.in.size(); ++k) out.push_back(scope.read(*s.state, k));
  return out;
}

void LossTracer::store_exits(TraceScope& scope, const Values& exits) const {
  std::size_t at = 0;
  for (const StepState& s : graph_.module_info.step.states)
    for (std::size_t k = 0; k < s.out.size(); ++k, ++at)
      if (s.written || is_hidden(s.kind)) scope.write(*s.state, k, exits[at]);
}

Values LossTracer::splice(const Values& args, const std::optional<Value>& modulator) {
  BT_REQUIRE(scope_ && TraceScope::current() == scope_,
             "learner: the loss function must call the learner itself, not inside "
             "another trace");
  BT_REQUIRE(!done_,
             "learner: the loss function called the learner twice; a loss spans exactly "
             "one update");
  Values given = args;
  for (std::size_t i = 0; i < given.size() && i < graph_.module_info.step.num_args; ++i) {
    const DType want =
        graph_.module_info.program().type(graph_.module_info.program().inputs()[i]).dtype;
    if (given[i].dtype() != want && is_float(want) && is_float(given[i].dtype()))
      given[i] = astype(given[i], want);
  }
  check_args(given);
  done_ = std::make_unique<Splice>();
  done_->modulator = modulator;
  const Values leaves = entry_leaves(*scope_);
  const Values out = options_.window ? windowed(given, leaves) : one_step(given, leaves);
  const auto num_outputs =
      static_cast<std::ptrdiff_t>(graph_.module_info.step.num_outputs);
  store_exits(*scope_, Values(out.begin() + num_outputs, out.end()));
  if (options_.old_states) keep_new_states(out);
  return Values(out.begin(), out.begin() + num_outputs);
}

void LossTracer::keep_new_states(const Values& out) {
  std::map<const State*, Value> exits;
  std::size_t at = graph_.module_info.step.num_outputs;
  for (const StepState& s : graph_.module_info.step.states) {
    exits.emplace(s.state, out[at]);
    at += s.out.size();
  }
  for (const HiddenVar& h : graph_.module_info.hidden)
    done_->new_states.push_back(exits.at(h.state));
}

// [outs | exits] of one step, or of one step per lane.
Values LossTracer::one_step(const Values& args, const Values& leaves) {
  Values in = args;
  in.insert(in.end(), leaves.begin(), leaves.end());
  const auto lanes = options_.lanes;
  if (options_.perturb)
    for (const HiddenVar& h : graph_.module_info.hidden) {
      Type t = graph_.module_info.program().type(h.out);
      if (lanes) t.shape.insert(t.shape.begin(), *lanes);
      done_->perturbations.push_back(scope_->builder()->input(t));
      in.push_back(done_->perturbations.back());
    }
  BatchResult r;
  if (lanes) {
    std::vector<BatchAxis> axes;
    for (std::size_t i = 0; i < in.size(); ++i)
      axes.push_back(in[i].type() == step_.type(step_.inputs()[i]) ? BatchAxis{}
                                                                   : BatchAxis{0});
    r = batch_graph(step_, in, axes);
  } else {
    r.values = inline_graph(step_, in);
    r.axes.resize(r.values.size());
  }
  const std::size_t first = r.values.size() - reads_.size();
  Values out;
  for (std::size_t i = 0; i < first; ++i) {
    const bool state = i >= graph_.module_info.step.num_outputs;
    const bool shared =
        state && !r.axes[i] &&
        leaves[i - graph_.module_info.step.num_outputs].type() == r.values[i].type();
    out.push_back(lanes && !shared ? batch_in_front(r.values[i], r.axes[i], *lanes)
                                   : r.values[i]);
  }
  for (std::size_t i = 0; i < reads_.size(); ++i) {
    const bool lane = r.axes[first + i].has_value();
    const Value v = lane ? batch_in_front(r.values[first + i], r.axes[first + i], *lanes)
                         : r.values[first + i];
    done_->reads.emplace_back(reads_[i], v);
    done_->has_lane.push_back(lane);
    done_->has_time.push_back(false);
  }
  return out;
}

// The step scanned over the leading axis of its arguments: outs stacked, final exits.
Values LossTracer::windowed(const Values& args, const Values& leaves) {
  const StepModel& step = graph_.module_info.step;
  std::vector<bool> carried, changing;
  std::vector<ValueId> moving(
      step_.inputs().begin(),
      step_.inputs().begin() + static_cast<std::ptrdiff_t>(step.num_args));
  std::size_t at = step.num_args;
  for (const StepState& s : step.states)
    for (std::size_t k = 0; k < s.in.size(); ++k, ++at) {
      carried.push_back(s.kind != StateKind::param);
      if (carried.back()) moving.push_back(step_.inputs()[at]);
    }
  const std::vector<bool> moves = depends_on(step_, moving);
  const std::size_t first = step_.outputs().size() - reads_.size();
  for (std::size_t i = 0; i < reads_.size(); ++i)
    changing.push_back(moves[step_.outputs()[first + i].index]);

  Values init;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (carried[i]) init.push_back(leaves[i]);
  Values fixed(reads_.size());
  const auto body = [&](const Values& in) {
    Values step_in(in.begin() + static_cast<std::ptrdiff_t>(init.size()), in.end());
    std::size_t c = 0;
    for (std::size_t i = 0; i < leaves.size(); ++i)
      step_in.push_back(carried[i] ? in[c++] : leaves[i]);
    const Values out = inline_graph(step_, step_in);
    Values result;
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (carried[i]) result.push_back(out[step.num_outputs + i]);
    result.insert(result.end(), out.begin(),
                  out.begin() + static_cast<std::ptrdiff_t>(step.num_outputs));
    for (std::size_t i = 0; i < reads_.size(); ++i)
      if (changing[i]) result.push_back(out[first + i]);
    return result;
  };
  const ScanResult r = scan(body, init, args);

  Values out(r.ys.begin(), r.ys.begin() + static_cast<std::ptrdiff_t>(step.num_outputs));
  std::size_t c = 0, y = step.num_outputs;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    out.push_back(carried[i] ? r.carry[c++] : leaves[i]);
  // What does not change in the window is computed once, outside of it.
  Values once_in;
  for (const Value& a : args) once_in.push_back(squeeze(slice_axis(a, 0, 0, 1), 0));
  once_in.insert(once_in.end(), leaves.begin(), leaves.end());
  const Values once = inline_graph(step_, once_in);
  for (std::size_t i = 0; i < reads_.size(); ++i) {
    done_->reads.emplace_back(reads_[i], changing[i] ? r.ys[y++] : once[first + i]);
    done_->has_lane.push_back(false);
    done_->has_time.push_back(changing[i]);
  }
  return out;
}

LossProgram LossTracer::run(const std::vector<Type>& types, const TracedFn& fn,
                            std::string_view caller) {
  const auto builder = Builder::create();
  TraceScope scope(builder);
  scope_ = &scope;
  done_.reset();
  Values args;
  for (const Type& t : types) args.push_back(builder->input(t));
  LossResult result;
  try {
    result = fn(args);
  } catch (...) {
    scope_ = nullptr;
    throw;
  }
  scope_ = nullptr;
  BT_REQUIRE(done_, fmt::format("{}: the function must call the learner exactly once, it "
                                "did not call it",
                                caller));
  if (result.loss) {
    const Type t = result.loss->type();
    const std::int64_t rank = options_.window ? 1 : 0;
    BT_REQUIRE(
        is_float(t.dtype) && t.rank() == rank,
        fmt::format("{}: the loss must be a float {}, got {}", caller,
                    rank == 0 ? "scalar" : "vector of one entry per step", to_string(t)));
  }
  return finish(scope, args, result);
}

LossProgram LossTracer::finish(TraceScope& scope, const Values& args,
                               const LossResult& result) {
  LossProgram p{
      .graph = {}, .num_args = args.size(), .has_loss = result.loss.has_value()};
  p.num_results = result.results.size();
  Values outputs;
  if (result.loss) outputs.push_back(*result.loss);
  outputs.insert(outputs.end(), result.results.begin(), result.results.end());
  std::vector<ValueId> order;
  for (const Value& v : args) order.push_back(v.id());
  std::map<const State*, const StepState*> known;
  for (const StepState& s : graph_.module_info.step.states) known[s.state] = &s;
  for (const TracedState& t : scope.states()) {
    const auto it = known.find(t.state);
    const StepState other{
        .path = Path({t.state->name()}), .state = t.state, .kind = t.state->kind()};
    const StepState& s = it == known.end() ? other : *it->second;
    for (std::size_t k = 0; k < t.inputs.size(); ++k) {
      ProgramLeaf leaf{t.state, k, leaf_path(s, k), s.kind == StateKind::param};
      if (t.written) {
        leaf.exit = outputs.size();
        outputs.push_back(t.current[k]);
      }
      order.push_back(t.inputs[k].id());
      p.leaves.push_back(std::move(leaf));
    }
  }
  for (const Value& v : done_->perturbations) {
    order.push_back(v.id());
    p.perturbations.push_back(v.type());
  }
  for (std::size_t i = 0; i < done_->reads.size(); ++i) {
    p.reads.push_back(
        {done_->reads[i].first, outputs.size(), done_->has_lane[i], done_->has_time[i]});
    outputs.push_back(done_->reads[i].second);
  }
  if (done_->modulator) {
    p.modulator = outputs.size();
    outputs.push_back(*done_->modulator);
  }
  for (const Value& v : done_->new_states) {
    p.new_states.push_back(outputs.size());
    outputs.push_back(v);
  }
  const Graph g = scope.builder()->finish(outputs);
  p.graph = subgraph(g, finished_inputs(g, order), g.outputs());
  drop_unread_old_states(p);
  return p;
}

}  // namespace braintrace
