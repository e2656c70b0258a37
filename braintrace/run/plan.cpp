// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/plan.h"

#include <cstdlib>
#include <set>

#include <fmt/format.h>

#include "braintrace/array/block.h"
#include "braintrace/passes/optimize_for_run.h"
#include "braintrace/run/ftz.h"
#include "braintrace/run/plan_planner_impl.h"

namespace braintrace {
namespace plan {
namespace {

void add_arguments(Planner& planner, Program& p, std::span<const Type> types, Place place,
                   std::vector<View>& views) {
  for (std::size_t i = 0; i < types.size(); ++i) {
    views.push_back(planner.add_packed(place, types[i], 0));
    p.buffers.back().index = i;
  }
}

}  // namespace

Program make_program(const Graph& g,
                     std::span<const std::pair<std::size_t, std::size_t>> in_place) {
  Program p;
  Planner planner(p);
  std::vector<View> in, out;
  add_arguments(planner, p, g.input_types(), Place::input, in);
  add_arguments(planner, p, g.output_types(), Place::output, out);
  for (const auto& [i, o] : in_place) planner.add_partners(in[i].buffer, out[o].buffer);
  p.top = planner.plan(g, in, out, {});
  p.in_place_of.assign(out.size(), -1);
  for (const auto& [i, o] : in_place)
    if (planner.may_share(in[i].buffer, out[o].buffer))
      p.in_place_of[o] = static_cast<int>(i);
  planner.reuse_memory();
  lay_out_arena(p);
  return p;
}

}  // namespace plan

namespace {

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};

void check_pairs(const Graph& g, const PlanOptions& options) {
  std::set<std::size_t> in, out;
  for (const auto& [i, o] : options.in_place) {
    BT_REQUIRE(i < g.inputs().size() && o < g.outputs().size(),
               fmt::format("Plan: in_place names input {} and output {} of {} and {}", i,
                           o, g.inputs().size(), g.outputs().size()));
    BT_REQUIRE(in.insert(i).second && out.insert(o).second,
               fmt::format("Plan: in_place names input {} or output {} twice", i, o));
    const Type &a = g.type(g.inputs()[i]), &b = g.type(g.outputs()[o]);
    BT_REQUIRE_KIND(a == b, ErrorKind::type,
                    fmt::format("Plan: in_place pairs input {} of type {} with output {} "
                                "of type {}",
                                i, to_string(a), o, to_string(b)));
  }
}

}  // namespace

struct Plan::State {
  Graph graph;
  plan::Program program;
  plan::Frame frame;
  std::unique_ptr<std::byte, Free> arena;
  std::shared_ptr<ThreadPool> pool;
  std::vector<int> input_buffers, output_buffers;
  std::vector<int> paired_input;     // by output: the input it is paired with, or -1
  std::vector<Array> packed_inputs;  // copies of strided inputs
  std::vector<Array> spare_outputs;  // for outputs that the caller still holds
  std::vector<bool> moved;           // by output: it took over the memory of its input

  State(const Graph& g, const PlanOptions& options);
  void check_inputs(std::span<const Array> inputs) const;
  void bind_inputs(std::span<const Array* const> inputs);
  void bind_outputs(std::span<const Array* const> inputs, std::vector<Array>& outputs);
  bool take_output(std::span<const Array* const> inputs, std::size_t o, Array& out);
  std::vector<const Array*> places;  // of inputs given as a list
};

Plan::State::State(const Graph& g, const PlanOptions& options)
    : graph(optimize_for_run(g)),
      program(plan::make_program(graph, options.in_place)),
      pool(options.pool ? options.pool : make_pool(options.threads, "Plan")) {
  arena.reset(new_block(static_cast<std::size_t>(program.arena_bytes)));
  input_buffers.resize(graph.inputs().size());
  output_buffers.resize(graph.outputs().size());
  packed_inputs.resize(graph.inputs().size());
  spare_outputs.resize(graph.outputs().size());
  moved.resize(graph.outputs().size());
  paired_input.assign(graph.outputs().size(), -1);
  for (const auto& [i, o] : options.in_place) paired_input[o] = static_cast<int>(i);
  frame.pool = pool.get();
  frame.profile = options.profile;
  frame.base.resize(program.buffers.size());
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    plan::Buffer& buffer = program.buffers[b];
    if (buffer.place == plan::Place::arena) frame.base[b] = arena.get() + buffer.offset;
    if (buffer.place == plan::Place::constant)
      frame.base[b] = static_cast<std::byte*>(buffer.constant.mutable_raw());
    if (buffer.place == plan::Place::input)
      input_buffers[buffer.index] = static_cast<int>(b);
    if (buffer.place == plan::Place::output)
      output_buffers[buffer.index] = static_cast<int>(b);
  }
}

void Plan::State::check_inputs(std::span<const Array> inputs) const {
  BT_REQUIRE(inputs.size() == graph.inputs().size(),
             fmt::format("Plan::run: the program has {} inputs, got {}",
                         graph.inputs().size(), inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Type& want = graph.type(graph.inputs()[i]);
    BT_REQUIRE_KIND(inputs[i].dtype() == want.dtype && inputs[i].shape() == want.shape,
                    ErrorKind::type,
                    fmt::format("Plan::run: input {} must be {}, got {}", i,
                                to_string(want), to_string(type_of(inputs[i]))));
  }
}

void Plan::State::bind_inputs(std::span<const Array* const> inputs) {
  BT_INVARIANT(inputs.size() == graph.inputs().size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Array* from = inputs[i];
    if (!from->is_contiguous()) from = &(packed_inputs[i] = from->contiguous());
    frame.base[static_cast<std::size_t>(input_buffers[i])] =
        static_cast<std::byte*>(const_cast<void*>(from->raw()));
  }
}

// Fresh memory for output o: what the caller passed, unless someone else can see it.
// True: none is needed, it goes where its input is.
bool Plan::State::take_output(std::span<const Array* const> inputs, std::size_t o,
                              Array& out) {
  const Type& t = graph.type(graph.outputs()[o]);
  const auto fits = [&](const Array& a) {
    return a.dtype() == t.dtype && a.shape() == t.shape && a.is_contiguous();
  };
  const int i = paired_input[o];
  bool usable = fits(out);
  if (i >= 0) {
    const Array& in = *inputs[static_cast<std::size_t>(i)];
    const bool same = usable && out.raw() == in.raw();
    const bool alone = in.use_count() == (same ? 2 : 1);
    if (program.in_place_of[o] == i && alone && in.is_contiguous()) return true;
    if (same) swap(out, spare_outputs[o]), usable = fits(out);
  }
  // Who lets go of one result only when he has the next gets two of them in turn.
  if (i < 0 && usable && !out.is_unique())
    swap(out, spare_outputs[o]), usable = fits(out);
  if (!usable || !out.is_unique()) out = Array::uninitialized(t.dtype, t.shape);
  return false;
}

void Plan::State::bind_outputs(std::span<const Array* const> inputs,
                               std::vector<Array>& outputs) {
  outputs.resize(graph.outputs().size());
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    moved[o] = take_output(inputs, o, outputs[o]);
    std::byte*& base = frame.base[static_cast<std::size_t>(output_buffers[o])];
    base = moved[o] ? frame.base[static_cast<std::size_t>(
                          input_buffers[static_cast<std::size_t>(paired_input[o])])]
                    : static_cast<std::byte*>(outputs[o].mutable_raw());
  }
}

Plan::Plan(const Graph& g, const PlanOptions& options) {
  check_pairs(g, options);
  state_ = std::make_unique<State>(g, options);
}
Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

void Plan::run(std::span<const Array> inputs, std::vector<Array>& outputs) {
  state_->check_inputs(inputs);
  std::vector<const Array*>& places = state_->places;
  places.resize(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) places[i] = &inputs[i];
  run_at(places, outputs);
  for (std::size_t o = 0; o < outputs.size(); ++o)
    if (state_->moved[o])
      outputs[o] = inputs[static_cast<std::size_t>(state_->paired_input[o])];
}

bool Plan::moved(std::size_t output) const { return state_->moved[output]; }

void Plan::run_at(std::span<const Array* const> inputs, std::vector<Array>& outputs) {
  state_->bind_inputs(inputs);
  state_->bind_outputs(inputs, outputs);
  const FtzScope flush;
  plan::run_block(state_->program.top, state_->frame);
}

std::string Plan::describe() const { return plan::describe(state_->program); }

std::int64_t Plan::arena_bytes() const { return state_->program.arena_bytes; }

}  // namespace braintrace
