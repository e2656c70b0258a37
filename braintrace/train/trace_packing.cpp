// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/trace_packing.h"

#include <algorithm>
#include <limits>
#include <set>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/ops/ops.h"
#include "braintrace/passes/narrow_uniform.h"
#include "braintrace/passes/pipeline.h"
#include "braintrace/passes/split_states.h"

namespace braintrace {
namespace {

// A state is stored once along axes it repeats along when that takes at most one part in
// so many.
constexpr std::int64_t kWorthIt = 4;
// What split_states takes apart in programs.
constexpr std::int64_t kMostStates = 4;

std::int64_t bytes_of(const Type& t) {
  return t.size() * static_cast<std::int64_t>(size_of(t.dtype));
}

std::vector<Shape> shapes_of(const std::vector<Type>& types) {
  std::vector<Shape> out;
  for (const Type& t : types) out.push_back(t.shape);
  return out;
}

Shape one_state(Shape s) {
  s.back() = 1;
  return s;
}

// Only what moves with every step and nowhere else: its program tells the whole story.
// Programs must take its states apart, too.
bool may_repeat(const TraceSlot& t) {
  return t.kind == "bwg" && !t.initial && !t.type.shape.empty() &&
         t.type.shape.back() <= kMostStates;
}

// States that programs compute one by one: between them in memory, each would have to be
// picked out.
bool has_states_apart(const TraceSlot& t) {
  const std::int64_t states = t.type.shape.empty() ? 1 : t.type.shape.back();
  return (t.kind == "bwg" || t.kind == "kappa_filtered") && !t.initial && states > 1 &&
         states <= kMostStates;
}

// The rule's step with the states of some traces as inputs and outputs of their own.
class Roll {
 public:
  Roll(const CompiledRule& rule, const std::set<std::size_t>& traces) {
    const RuleProgram p = rule.write(RuleMode::evolve);
    const auto builder = Builder::create();
    const std::vector<Type> types = p.graph.input_types();
    const Graph& step = rule.graph().module_info.program();
    inputs_ = uniform_shapes(step, shapes_of(step.input_types()), p.reads);
    Values in;
    for (std::size_t i = 0; i < types.size(); ++i) {
      const std::size_t trace = i - p.reads.size();
      if (i < p.reads.size() || !traces.contains(trace)) {
        in.push_back(builder->input(types[i]));
        if (i >= p.reads.size()) inputs_.push_back(types[i].shape);
        continue;
      }
      Values states;
      for (std::int64_t s = 0; s < types[i].shape.back(); ++s) {
        places_.push_back({trace, s, inputs_.size()});
        inputs_.push_back(one_state(types[i].shape));
        states.push_back(builder->input({types[i].dtype, inputs_.back()}));
      }
      in.push_back(concat(states, -1));
    }
    const Values after = inline_graph(p.graph, in);
    Values out;
    for (const Place& s : places_)
      out.push_back(slice_axis(after[s.trace], -1, s.state, 1));
    PassRunner run;
    graph_ = lower(builder->finish(out), {}, run);
    for (int axis = 0; axis < 2; ++axis) graph_ = optimize(split_states(graph_), run);
  }

  struct Place {
    std::size_t trace;
    std::int64_t state;
    std::size_t input;
    Shape shape = {};  // size 1 along axes the state repeats along
  };
  // From "the same everywhere" to what each step leaves as it is.
  std::vector<Place> places() {
    for (const Place& p : places_) inputs_[p.input].assign(inputs_[p.input].size(), 1);
    for (bool stable = false; !stable;) {
      stable = true;
      const std::vector<Shape> out = uniform_shapes(graph_, inputs_, graph_.outputs());
      for (std::size_t i = 0; i < places_.size(); ++i) {
        Shape& assumed = inputs_[places_[i].input];
        for (std::size_t a = 0; a < assumed.size(); ++a) {
          stable = stable && out[i][a] <= assumed[a];
          assumed[a] = std::max(assumed[a], out[i][a]);
        }
      }
    }
    for (Place& p : places_) p.shape = inputs_[p.input];
    return places_;
  }

 private:
  Graph graph_;
  std::vector<Shape> inputs_;
  std::vector<Place> places_;
};

using Stored = TracePacking::Stored;

// A trace whose states may repeat as `places` says.
std::vector<Stored> stored_states(std::size_t trace, const TraceSlot& slot,
                                  const Type& type, bool lanes,
                                  const std::vector<Roll::Place>& places) {
  std::vector<Stored> apart;
  bool repeats = false;
  const Type whole{type.dtype, type.rank() > 0 ? one_state(type.shape) : Shape{}};
  for (const Roll::Place& p : places) {
    if (p.trace != trace) continue;
    Type small{type.dtype, p.shape};
    if (lanes) small.shape.insert(small.shape.begin(), type.shape[0]);
    const bool worth_it = kWorthIt * small.size() <= whole.size();
    apart.push_back({trace, {p.state}, worth_it ? small : whole});
    repeats = repeats || worth_it;
  }
  if (!repeats && !has_states_apart(slot)) return {{trace, {}, type}};
  if (apart.empty())
    for (std::int64_t s = 0; s < type.shape.back(); ++s)
      apart.push_back({trace, {s}, whole});
  return apart;
}

}  // namespace

TracePacking::TracePacking(const CompiledRule& rule, std::optional<std::int64_t> lanes) {
  for (const TraceSlot& t : rule.traces()) {
    Type type = t.type;
    if (lanes) type.shape.insert(type.shape.begin(), *lanes);
    stored_.push_back({traces_.size(), {}, type});
    traces_.push_back(type);
  }
}

TracePacking TracePacking::apart(const CompiledRule& rule,
                                 std::optional<std::int64_t> lanes) {
  return compact(rule, lanes, std::numeric_limits<std::int64_t>::max());
}

TracePacking TracePacking::compact(const CompiledRule& rule,
                                   std::optional<std::int64_t> lanes,
                                   std::int64_t min_bytes) {
  TracePacking packing(rule, lanes);
  std::set<std::size_t> large;
  for (std::size_t i = 0; i < packing.traces_.size(); ++i)
    if (may_repeat(rule.traces()[i]) && bytes_of(packing.traces_[i]) >= min_bytes)
      large.insert(i);
  const std::vector<Roll::Place> places =
      large.empty() ? std::vector<Roll::Place>{} : Roll(rule, large).places();
  packing.stored_.clear();
  for (std::size_t i = 0; i < packing.traces_.size(); ++i) {
    const Type& type = packing.traces_[i];
    for (Stored& s : stored_states(i, rule.traces()[i], type, lanes.has_value(), places))
      packing.stored_.push_back(std::move(s));
  }
  packing.plain_ = std::all_of(packing.stored_.begin(), packing.stored_.end(),
                               [](const Stored& s) { return s.states.empty(); });
  return packing;
}

std::vector<Value> TracePacking::unpacked(const std::vector<Value>& stored) const {
  std::vector<std::vector<Value>> states(traces_.size());
  std::vector<Value> out(traces_.size());
  for (std::size_t k = 0; k < stored_.size(); ++k) {
    const Stored& s = stored_[k];
    if (s.states.empty()) out[s.trace] = stored[k];
    states[s.trace].resize(static_cast<std::size_t>(traces_[s.trace].shape.back()));
    for (std::size_t j = 0; j < s.states.size(); ++j)
      states[s.trace][static_cast<std::size_t>(s.states[j])] =
          broadcast_to(slice_axis(stored[k], -1, static_cast<std::int64_t>(j), 1),
                       one_state(traces_[s.trace].shape));
  }
  for (const Stored& s : stored_)
    if (!s.states.empty()) out[s.trace] = concat(states[s.trace], -1);
  return out;
}

std::vector<Value> TracePacking::packed(const std::vector<Value>& traces) const {
  std::vector<Value> out;
  for (const Stored& s : stored_) {
    if (s.states.empty()) {
      out.push_back(traces[s.trace]);
      continue;
    }
    Values states;
    for (const std::int64_t a : s.states)
      states.push_back(slice_axis(traces[s.trace], -1, a, 1));
    const Value all = concat(states, -1);
    out.push_back(slice(all, Ints(s.type.shape.size(), 0), s.type.shape));
  }
  return out;
}

namespace {

template <class Write>
std::vector<Array> evaluated(const std::vector<Array>& in, const Write& write) {
  const auto builder = Builder::create();
  Values values;
  std::vector<Array> packed;
  for (const Array& a : in) {
    packed.push_back(a.contiguous());
    values.push_back(builder->input(type_of(a)));
  }
  return eval_graph(builder->finish(write(values)), packed);
}

}  // namespace

std::vector<Array> TracePacking::unpacked(const std::vector<Array>& stored) const {
  if (plain_) return stored;
  return evaluated(stored, [&](const Values& v) { return unpacked(v); });
}

std::vector<Array> TracePacking::packed(const std::vector<Array>& traces) const {
  if (plain_) return traces;
  return evaluated(traces, [&](const Values& v) { return packed(v); });
}

StepProgram TracePacking::packed(const StepProgram& p) const {
  StepProgram out = p;
  if (plain_) return out;
  const auto builder = Builder::create();
  const std::vector<Type> types = p.graph.input_types();
  Values in, stored;
  for (std::size_t i = 0; i < p.first_trace(); ++i)
    in.push_back(builder->input(types[i]));
  if (p.num_traces > 0) {
    for (const Stored& s : stored_) stored.push_back(builder->input(s.type));
    const Values traces = unpacked(stored);
    in.insert(in.end(), traces.begin(), traces.end());
    out.num_traces = stored.size();
  }
  for (std::size_t i = in.size(); i < types.size(); ++i)
    in.push_back(builder->input(types[i]));
  const Values values = inline_graph(p.graph, in);
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(p.first_trace_out());
  const auto last = first + static_cast<std::ptrdiff_t>(p.num_traces_out);
  Values results(values.begin(), first);
  if (p.num_traces_out > 0) {
    const Values after = packed(Values(first, last));
    results.insert(results.end(), after.begin(), after.end());
    out.num_traces_out = after.size();
  }
  results.insert(results.end(), last, values.end());
  out.graph = builder->finish(results);
  return out;
}

}  // namespace braintrace
