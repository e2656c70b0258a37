// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of one random model while it is planned. A recipe draws now and appends one
// function that computes one value later, whenever the step runs.
#include <functional>
#include <span>

#include "braintrace/array/rng.h"
#include "braintrace/ops/ops.h"
#include "braintrace/testing/random_model.h"

namespace braintrace::testing {

// The values of the running step, by number.
using Pool = std::vector<Value>;
using Compute = std::function<Value(const Pool&)>;

// A container of states at ('cell', ...) or ('layers', 0, ...).
class StateBox : public Module {
 public:
  using Module::add;
};

struct RandomModel::Plan {
  Shape lead;  // axes before the last, in every value
  std::int64_t width = 3;
  bool batched = false;
  std::vector<Compute> steps;
  std::size_t result = 0;
  std::vector<std::unique_ptr<State>> states;
  std::vector<State*> captured;  // used, but not registered
  std::vector<std::unique_ptr<StateBox>> boxes;
  std::set<std::string> features;
  std::vector<std::pair<const State*, const State*>> edges;
  std::vector<std::function<void(CompileOptions&)>> tuning;
};

// A value of the step: its number and the size of its last axis.
struct Slot {
  std::size_t id = 0;
  std::int64_t width = 0;
};

class ModelPlanner {
 public:
  ModelPlanner(RandomModel& model, std::uint64_t seed, const RandomModelOptions& options);
  void run();

  // ---- chance ----
  std::int64_t below(std::int64_t n);
  double real(double low, double high);
  bool chance(double p) { return real(0, 1) < p; }
  void mark(const std::string& feature) { plan().features.insert(feature); }
  void tune(std::function<void(CompileOptions&)> f) {
    plan().tuning.push_back(std::move(f));
  }

  // ---- values ----
  Slot push(std::int64_t width, Compute f);
  Slot any();  // newer ones more often
  Slot of_width(std::int64_t width);
  Slot input() const { return slots_.front(); }
  Shape shape(std::int64_t width) const;  // of a value with that last axis
  std::int64_t any_width();
  Array constant(const Shape& shape);  // random numbers

  // ---- weights ----
  ParamState* parameter(const Shape& shape);  // new, or one used before (tied)
  // A weight operand: a parameter behind a prologue, or now and then a constant.
  Compute weight(const Shape& shape);
  Compute prologue(const Shape& shape);  // always behind a prologue

  // ---- states ----
  RandomModel::Plan& plan() { return *model_.plan_; }
  Shape lead() const { return model_.plan_->lead; }

 private:
  struct Hidden {
    HiddenState* state = nullptr;
    std::int64_t width = 0, members = 1;
    std::vector<Slot> old;  // at step entry; empty: not read
  };
  template <class T>
  T* place(std::unique_ptr<T> s, const std::string& name);
  std::string named(const std::string& name);
  std::int64_t odd_size();
  Shape state_size(std::int64_t width) const;  // without batch
  void plan_layout();
  void plan_policies();
  void plan_states();
  void plan_updates(int ops);
  void update(std::size_t i);
  Slot next_value(std::size_t i, std::size_t member);
  void read_old_state();
  void add_bystanders();
  Compute dynamic_prologue(const Shape& shape);

  RandomModel& model_;
  RandomModelOptions options_;
  RngKey key_;
  std::uint64_t counter_ = 0;
  std::vector<Slot> slots_;
  std::vector<Hidden> hidden_;
  std::vector<ParamState*> parameters_;
  int names_ = 0;
};

using ModelRecipe = void (*)(ModelPlanner&);
std::span<const ModelRecipe> plain_recipes();  // element by element
std::span<const ModelRecipe>
mixing_recipes();  // reductions, rolls, norms, plain products
std::span<const ModelRecipe> weight_recipes();  // trainable ops
std::span<const ModelRecipe> loop_recipes();    // loops and branches

// How a loop or a branch makes the next value of a whole state: width -> function of the
// value at entry.
using StateRecipe = Compute (*)(ModelPlanner&, Slot old);
std::span<const StateRecipe> state_recipes();

}  // namespace braintrace::testing
