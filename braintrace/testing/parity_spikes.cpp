// SPDX-License-Identifier: Apache-2.0
// Spike trains of recorded runs.
#include <cmath>
#include <set>

#include <fmt/core.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/nn/neuron.h"
#include "braintrace/testing/parity_impl.h"

namespace braintrace::testing::internal {
namespace {

// A neuron several paths lead to is one.
void collect_neurons(const Module& m, std::set<nn::Neuron*>& out) {
  for (const auto& [key, member] : m.members()) {
    Module* const* child = std::get_if<Module*>(&member);
    if (!child) continue;
    if (auto* neuron = dynamic_cast<nn::Neuron*>(*child)) out.insert(neuron);
    collect_neurons(**child, out);
  }
}

// Says which neurons spike in given states; lanes count as a batch.
class SpikeReader {
 public:
  SpikeReader(const GoldenCase& c, DType dtype)
      : model_(nn::build_model(c.text)), dtype_(dtype) {
    init_all_states(*model_, {.batch_size = c.batch, .dtype = dtype});
    load(c, *model_, dtype);
    collect_neurons(*model_, neurons_);
  }

  bool has_neurons() const { return !neurons_.empty(); }

  std::vector<double> spikes(const StateDict& states) const {
    StateDict values;
    for (const auto& [path, a] : states) values[path] = in_dtype(a, dtype_);
    load_state_dict(*model_, values);
    std::vector<double> out;
    for (nn::Neuron* neuron : neurons_)
      for (const double s : neuron->get_spike().array().to_doubles()) out.push_back(s);
    return out;
  }

 private:
  std::unique_ptr<Module> model_;
  DType dtype_;
  std::set<nn::Neuron*> neurons_;
};

StateDict recorded_row(const GoldenCase& c, std::int64_t r) {
  StateDict out;
  for (const auto& [path, all] : c.expected.hidden_per_step) {
    BT_REQUIRE(all.rank() > 0 && r < all.shape()[0],
               fmt::format("hidden_per_step {}: has no row {}", path, r));
    out[path] = row(all, r).contiguous();
  }
  return out;
}

// Counts are whole, so a recorded rate of nine digits names one.
void check_rate(const GoldenCase& c, double count, double places) {
  const double recorded = std::round(*c.expected.spike_rate * places);
  BT_REQUIRE(count == recorded, fmt::format("spike_rate: {} of {} spike, recorded is {}",
                                            count, places, *c.expected.spike_rate));
}

}  // namespace

void compare_spikes(const GoldenCase& c, const std::vector<StateDict>& states,
                    DType dtype) {
  if (!c.expected.spike_rate) return;
  const SpikeReader reader(c, dtype);
  BT_REQUIRE(reader.has_neurons(), "spike_rate: the model has no neurons");
  const std::int64_t window = c.chunk_size.value_or(1);
  double count = 0, places = 0;
  for (std::int64_t t = window - 1; t < c.steps; t += window) {
    const auto ours = reader.spikes(states[static_cast<std::size_t>(t)]);
    if (!c.expected.hidden_per_step.empty())
      BT_REQUIRE(ours == reader.spikes(recorded_row(c, t / window)),
                 fmt::format("spike trains differ after step {}", t));
    for (const double s : ours) count += s;
    places += static_cast<double>(ours.size());
  }
  // Between the ends of windows, states are not recorded.
  if (window == 1) check_rate(c, count, places);
}

}  // namespace braintrace::testing::internal
