// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random step models for the compiler's tests: states, weights with prologues, mixing
// ops, branches and loops put together by chance. Values stay finite.
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "braintrace/etrace/options.h"
#include "braintrace/model/module.h"

namespace braintrace::testing {

struct RandomModelOptions {
  // States and parameters get names in the opposite alphabetical order; the step itself
  // is the same.
  bool reversed_names = false;
  // Sizes of axes from 1 to 65, so that kernels meet whole vectors, rests and single
  // elements; otherwise all are 2 to 5.
  bool odd_sizes = false;
};

// A pure function of the seed: 2 to 12 ops, 1 to 4 hidden states.
class RandomModel : public Module {
 public:
  explicit RandomModel(std::uint64_t seed, const RandomModelOptions& options = {});
  ~RandomModel() override;

  Value update(Value x) override;

  // Initialises all states (f64; with a batch axis when the model has one).
  void init();
  std::vector<Array> args() const;  // one example input
  // The options this model was made for, on top of the given ones.
  CompileOptions tuned(CompileOptions base) const;

  // What the model contains: "prologue_tanh", "long_scan", "in_step_edge", ...
  const std::set<std::string>& features() const;
  // Pairs of states where the second reads, element by element, the new value of the
  // first.
  const std::vector<std::pair<const State*, const State*>>& in_step_edges() const;
  // The state's name without the part that `reversed_names` changes.
  std::string label(const State& s) const;
  // Features, states and the traced program: for failure reports. Needs: init().
  std::string text();

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
  friend class ModelPlanner;
};

}  // namespace braintrace::testing
