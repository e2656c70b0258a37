// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/random_model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "braintrace/ir/print.h"
#include "braintrace/model/step_model.h"
#include "braintrace/testing/random_model_impl.h"

namespace braintrace::testing {
namespace {

constexpr std::size_t kPrefix = 4;  // "s00_": decides the alphabetical order

// Smaller where many are summed, so that wide models stay tame.
Array small_numbers(RngKey key, const Shape& shape, DType dtype) {
  const double rows = shape.empty() ? 1 : static_cast<double>(shape[0]);
  const double most = 0.8 * std::min(1.0, 2.3 / std::sqrt(rows));
  return random_uniform(key, shape, -most, most, dtype);
}

}  // namespace

RandomModel::RandomModel(std::uint64_t seed, const RandomModelOptions& options)
    : plan_(std::make_unique<Plan>()) {
  ModelPlanner(*this, seed, options).run();
}

RandomModel::~RandomModel() = default;

Value RandomModel::update(Value x) {
  Pool pool = {x};
  for (const Compute& f : plan_->steps) pool.push_back(f(pool));
  return pool[plan_->result];
}

void RandomModel::init() {
  InitOptions o{.dtype = DType::f64};
  if (plan_->batched) o.batch_size = plan_->lead[0];
  init_all_states(*this, o);
  for (State* s : plan_->captured)
    s->initialize(rng_key(5), {.batch_size = o.batch_size, .dtype = DType::f64});
}

std::vector<Array> RandomModel::args() const {
  Shape s = plan_->lead;
  s.push_back(plan_->width);
  return {random_uniform(rng_key(11), s, -1, 1, DType::f64)};
}

CompileOptions RandomModel::tuned(CompileOptions o) const {
  o.batched = plan_->batched;
  for (const auto& f : plan_->tuning) f(o);
  return o;
}

const std::set<std::string>& RandomModel::features() const { return plan_->features; }

const std::vector<std::pair<const State*, const State*>>& RandomModel::in_step_edges()
    const {
  return plan_->edges;
}

std::string RandomModel::label(const State& s) const {
  return s.name().substr(std::min(kPrefix, s.name().size()));
}

std::string RandomModel::text() {
  std::string out = "features:";
  for (const std::string& f : plan_->features) out += " " + f;
  const StepModel step = trace_step(*this, args());
  return out + "\n" + describe_states(step) + print(step.program);
}

// ---- planning -------------------------------------------------------------------------

ModelPlanner::ModelPlanner(RandomModel& model, std::uint64_t seed,
                           const RandomModelOptions& options)
    : model_(model), options_(options), key_(fold_in(rng_key(seed), "random model")) {}

std::int64_t ModelPlanner::below(std::int64_t n) {
  return static_cast<std::int64_t>(uniform_at(key_, counter_++) * static_cast<double>(n));
}

double ModelPlanner::real(double low, double high) {
  return low + (high - low) * uniform_at(key_, counter_++);
}

Slot ModelPlanner::push(std::int64_t width, Compute f) {
  plan().steps.push_back(std::move(f));
  slots_.push_back({plan().steps.size(), width});
  return slots_.back();
}

Slot ModelPlanner::any() {
  if (chance(0.35)) return slots_.back();
  const auto n = static_cast<std::int64_t>(slots_.size());
  const std::int64_t i = std::max(below(n), below(n));
  return slots_[static_cast<std::size_t>(i)];
}

std::int64_t ModelPlanner::odd_size() {
  constexpr std::array<std::int64_t, 12> kSizes = {1,  2,  3,  5,  7,  8,
                                                   16, 17, 24, 33, 40, 65};
  return kSizes[static_cast<std::size_t>(below(kSizes.size()))];
}

std::int64_t ModelPlanner::any_width() {
  if (chance(0.75)) return plan().width;
  return options_.odd_sizes ? odd_size() : 2 + below(4);
}

Slot ModelPlanner::of_width(std::int64_t width) {
  std::vector<Slot> fits;
  for (const Slot& s : slots_)
    if (s.width == width) fits.push_back(s);
  const auto n = static_cast<std::int64_t>(fits.size());
  if (n > 0 && chance(0.5)) return fits.back();
  if (n > 0) return fits[static_cast<std::size_t>(std::max(below(n), below(n)))];
  const Slot s = any();
  if (s.width > width) {
    mark("slice");
    return push(width, [=](const Pool& p) { return slice_axis(p[s.id], -1, 0, width); });
  }
  mark("stretch");
  return push(width, [=, this_shape = shape(width)](const Pool& p) {
    return broadcast_to(mean(p[s.id], {.axes = {-1}, .keepdims = true}), this_shape);
  });
}

Shape ModelPlanner::shape(std::int64_t width) const {
  Shape s = lead();
  s.push_back(width);
  return s;
}

Shape ModelPlanner::state_size(std::int64_t width) const {
  Shape s = shape(width);
  if (model_.plan_->batched) s.erase(s.begin());
  return s;
}

Array ModelPlanner::constant(const Shape& s) {
  return small_numbers(fold_in(key_, counter_++), s, DType::f64);
}

std::string ModelPlanner::named(const std::string& name) {
  const int i = names_++;
  const int order = options_.reversed_names ? 99 - i : i;
  return fmt::format("s{:02}_{}{}", order, name, i);
}

template <class T>
T* ModelPlanner::place(std::unique_ptr<T> s, const std::string& name) {
  T* state = s.get();
  const std::string full = named(name);
  const std::size_t where = static_cast<std::size_t>(below(6));
  if (where < plan().boxes.size())
    plan().boxes[where]->add(full, *state);
  else
    model_.add(full, *state);
  plan().states.push_back(std::move(s));
  return state;
}

void ModelPlanner::run() {
  plan_layout();
  plan_policies();
  plan_states();
  plan_updates(static_cast<int>(2 + below(8)));
  if (chance(0.4)) {
    mark("readout");
    const Slot s = any();
    push(2,
         [=, w = weight({s.width, 2})](const Pool& p) { return matmul(p[s.id], w(p)); });
  }
  if (chance(0.3)) read_old_state();
  plan().result = slots_.back().id;
  add_bystanders();
  // Loops of random models count to constants. Most are to be loops of unknown length.
  if (!chance(0.75)) return;
  mark("counted_loops_kept");
  tune([](CompileOptions& o) { o.counted_loops = CountedLoops::keep; });
}

// The result with something of a state from before the step, as it is or behind a weight.
void ModelPlanner::read_old_state() {
  mark("old_state_read");
  const Slot last = slots_.back();
  const Hidden& h =
      hidden_[static_cast<std::size_t>(below(static_cast<std::int64_t>(hidden_.size())))];
  const Slot old =
      h.old[static_cast<std::size_t>(below(static_cast<std::int64_t>(h.old.size())))];
  if (old.width == last.width && chance(0.5)) {
    push(last.width, [=](const Pool& p) { return p[last.id] + 0.6 * tanh(p[old.id]); });
    return;
  }
  push(last.width, [=, w = weight({old.width, last.width})](const Pool& p) {
    return p[last.id] + matmul(p[old.id], w(p));
  });
}

void ModelPlanner::plan_layout() {
  const std::int64_t kind = below(10);
  if (kind >= 6) plan().lead = {2};
  plan().batched = kind >= 8;
  mark(plan().batched ? "batch" : kind >= 6 ? "two_position_axes" : "one_position_axis");
  plan().width = options_.odd_sizes ? odd_size() : 3 + below(2);
  if (options_.odd_sizes && kind >= 6) plan().lead = {1 + below(5)};
  slots_.push_back({0, plan().width});
  if (chance(0.3)) {
    plan().boxes.push_back(std::make_unique<StateBox>());
    model_.add("cell", *plan().boxes.back());
    mark("sub_module");
  }
  if (chance(0.3)) {
    std::vector<Module*> layers;
    for (int i = 0; i < 2; ++i) {
      plan().boxes.push_back(std::make_unique<StateBox>());
      layers.push_back(plan().boxes.back().get());
    }
    model_.add("layers", layers);
    mark("integer_keys");
  }
}

// A few models are made for other options than the default ones.
void ModelPlanner::plan_policies() {
  switch (below(24)) {
    case 0:
    case 1:
    case 2:
      mark("sparse_n");
      tune([n = 1 + below(3)](CompileOptions& o) {
        o.include_recurrent_mixing = true;
        o.sparse_n = n;
      });
      break;
    case 3:
      mark("cond_opaque");
      tune([](CompileOptions& o) { o.control_flow.cond = "opaque"; });
      break;
    case 4:
    case 5:
      mark("etp_in_control_flow_excluded");
      tune([](CompileOptions& o) { o.control_flow.etp_in_control_flow = "exclude"; });
      break;
    case 6:
      mark("no_unrolling");
      tune([](CompileOptions& o) { o.control_flow.scan_unroll_limit = 0; });
      break;
    case 7:
      mark("no_descent");
      tune([](CompileOptions& o) { o.control_flow.scan_descent = "off"; });
      break;
    case 8:
      mark("while_refused");
      tune([](CompileOptions& o) { o.control_flow.while_hidden = "error"; });
      break;
    case 9:
    case 10:
      mark("weight_paths_local");
      tune([](CompileOptions& o) { o.weight_paths = WeightPaths::local; });
      break;
    default:
      break;
  }
}

void ModelPlanner::plan_states() {
  const std::int64_t n = 1 + below(4);
  for (std::int64_t i = 0; i < n; ++i) {
    Hidden h{.width = any_width()};
    if (chance(0.25)) {
      h.members = 2 + below(2);
      h.state = place(std::make_unique<HiddenGroupState>(state_size(h.width), h.members,
                                                         small_numbers),
                      "g");
      mark("group_state");
    } else {
      h.state =
          place(std::make_unique<HiddenState>(state_size(h.width), small_numbers), "h");
      mark("plain_state");
    }
    hidden_.push_back(h);
  }
  for (Hidden& h : hidden_)
    for (std::int64_t k = 0; k < h.members; ++k)
      h.old.push_back(push(h.width, [s = h.state, k, many = h.members > 1](const Pool&) {
        return many ? static_cast<HiddenGroupState*>(s)->get(k) : s->value();
      }));
}

void ModelPlanner::plan_updates(int ops) {
  static const std::vector<std::pair<std::span<const ModelRecipe>, double>> kinds = {
      {weight_recipes(), 0.45},
      {plain_recipes(), 0.72},
      {mixing_recipes(), 0.9},
      {loop_recipes(), 1.0}};
  auto one = [&] {
    const double u = real(0, 1);
    for (const auto& [recipes, limit] : kinds)
      if (u < limit)
        return recipes[static_cast<std::size_t>(
            below(static_cast<std::int64_t>(recipes.size())))](*this);
  };
  for (std::size_t i = 0; i < hidden_.size(); ++i) {
    const int share = ops / static_cast<int>(hidden_.size()) + (i == 0 ? 1 : 0);
    for (int k = 0; k < share; ++k) one();
    if (chance(0.08)) {
      mark("read_only_state");
      continue;
    }
    update(i);
  }
}

// The new value of one member: its own past, something of the step, and now and then the
// new value of an earlier state.
Slot ModelPlanner::next_value(std::size_t i, std::size_t member) {
  const Hidden& h = hidden_[i];
  const Slot old = h.old[member], in = of_width(h.width);
  const double leak = real(0.3, 0.95);
  const bool squash = chance(0.5);
  const bool keeps_past = chance(0.9);
  return push(h.width, [=](const Pool& p) {
    const Value v = keeps_past ? leak * p[old.id] + p[in.id] : p[in.id] + 0.0;
    return squash ? tanh(v) : 0.5 * v;
  });
}

void ModelPlanner::update(std::size_t i) {
  Hidden& h = hidden_[i];
  std::vector<Slot> next;
  for (std::size_t k = 0; k < h.old.size(); ++k) next.push_back(next_value(i, k));
  if (i > 0 && chance(0.5))
    for (std::size_t j = i; j-- > 0;) {
      const Hidden& other = hidden_[j];
      if (other.width != h.width || other.members != 1) continue;
      mark("in_step_edge");
      plan().edges.emplace_back(other.state, h.state);
      next[0] = push(h.width, [=, s = other.state, n = next[0]](const Pool& p) {
        return p[n.id] + 0.3 * s->value();
      });
      break;
    }
  if (h.members > 1) {
    push(h.width, [next, s = static_cast<HiddenGroupState*>(h.state)](const Pool& p) {
      std::vector<Value> members;
      for (const Slot& n : next) members.push_back(p[n.id]);
      s->set_all(members);
      return s->get(0);
    });
    return;
  }
  Compute f = [n = next[0]](const Pool& p) { return p[n.id]; };
  if (chance(0.2)) {
    const auto list = state_recipes();
    f = list[static_cast<std::size_t>(below(static_cast<std::int64_t>(list.size())))](
        *this, h.old[0]);
  }
  push(h.width, [f, s = h.state](const Pool& p) {
    s->set(f(p));
    return s->value();
  });
}

// States and parameters beside the step: unused, not registered, dynamic.
void ModelPlanner::add_bystanders() {
  if (chance(0.1)) {
    mark("unused_state");
    place(std::make_unique<HiddenState>(Shape{2}, small_numbers), "unused");
  }
  if (chance(0.1)) {
    mark("unused_parameter");
    place(std::make_unique<ParamState>(Shape{2}, small_numbers), "unused");
  }
  const Slot last{plan().result, slots_.back().width};
  if (chance(0.1)) {
    mark("captured_state");
    auto s = std::make_unique<ShortTermState>(state_size(last.width));
    s->set_name("s00_captured");
    plan().captured.push_back(s.get());
    plan().result = push(last.width, [last, s = s.get()](const Pool& p) {
                      return p[last.id] + s->value();
                    }).id;
    plan().states.push_back(std::move(s));
  }
  if (chance(0.15)) {
    mark("dynamic_state");
    ShortTermState* t =
        place(std::make_unique<ShortTermState>(state_size(last.width)), "t");
    push(last.width, [last, t](const Pool& p) {
      t->set(0.5 * t->value() + p[last.id]);
      return t->value();
    });
  }
}

ParamState* ModelPlanner::parameter(const Shape& s) {
  for (ParamState* p : parameters_)
    if (p->spec(0).shape == s && chance(0.25)) {
      mark("tied_weight");
      return p;
    }
  parameters_.push_back(place(std::make_unique<ParamState>(s, small_numbers), "w"));
  return parameters_.back();
}

}  // namespace braintrace::testing
