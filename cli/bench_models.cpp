// SPDX-License-Identifier: Apache-2.0
#include "bench_models.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "braintrace/base/error.h"
#include "braintrace/nn/nn.h"

namespace braintrace::cli {
namespace {

std::string cell_stack(const BenchRequest& r, const std::string& cell) {
  std::string layers;
  for (std::int64_t i = 0; i < r.layers; ++i)
    layers += fmt::format(
        R"({{"name": "rnn{}", "class": "{}", "args": {{"in_size": {}, "out_size": {}}}}}, )",
        r.layers == 1 ? "" : std::to_string(i + 1), cell, i == 0 ? r.n_in : r.n_rec,
        r.n_rec);
  return fmt::format(
      R"({{"model": {{"kind": "sequential", "layers": [{}{{"name": "out", "class": "Linear", "args": {{"in_size": {}, "out_size": {}}}}}]}}}})",
      layers, r.n_rec, r.n_out);
}

std::string spiking(const BenchRequest& r) {
  const std::string kind =
      r.layers == 1 ? fmt::format(R"("{}_net")", r.model)
                    : fmt::format(R"("{}_stack", "layers": {})", r.model, r.layers);
  return fmt::format(
      R"({{"model": {{"kind": {}, "n_in": {}, "n_rec": {}, "n_out": {}, "tau_mem": 20, "tau_syn": 10, "tau_out": 10, "V_th": 1}}}})",
      kind, r.n_in, r.n_rec, r.n_out);
}

// The layer of a spiking network, where it has several.
Path layer_path(const BenchRequest& r, std::int64_t layer) {
  return r.layers > 1 ? Path{fmt::format("layer{}", layer + 1)} : Path{};
}

}  // namespace

bool is_spiking(const BenchRequest& r) { return r.model == "lif" || r.model == "alif"; }

std::string bench_model(const BenchRequest& r) {
  if (r.model == "gru") return cell_stack(r, "GRUCell");
  if (r.model == "rnn") return cell_stack(r, "VanillaRNNCell");
  if (r.model == "lstm") return cell_stack(r, "LSTMCell");
  if (is_spiking(r)) return spiking(r);
  if (r.model == "conv")
    return fmt::format(
        R"({{"model": {{"kind": "conv_rnn", "size": {}, "n_rec": {}, "n_out": {}}}}})",
        r.n_in, r.n_rec, r.n_out);
  throw UserError(fmt::format(
      "bench: --model must be gru, rnn, lstm, lif, alif or conv, got '{}'", r.model));
}

Shape bench_input(const BenchRequest& r) {
  return r.model == "conv" ? Shape{1, r.n_in, r.n_in} : Shape{r.n_in};
}

Array bench_inputs(const BenchRequest& r, DType dtype) {
  Shape shape = bench_input(r);
  shape.insert(shape.begin(), {r.steps, r.batch});
  if (!is_spiking(r)) return random_normal(rng_key(1), shape, dtype);
  const Array u = random_uniform(rng_key(1), shape, 0, 1, DType::f64);
  Array spikes = zeros(shape, DType::f64);
  for (std::int64_t i = 0; i < u.size(); ++i)
    spikes.mutable_data<double>()[i] = u.data<double>()[i] < 0.1 ? 1 : 0;
  return spikes.astype(dtype);
}

Array bench_targets(const BenchRequest& r, DType dtype) {
  return random_normal(rng_key(2), {r.steps, r.batch, r.n_out}, dtype);
}

// Runs go on from the states of the ones before, so the rate that counts is the one a
// network settles at: it has half of it after 40 steps, and still grows after 200.
constexpr std::int64_t kSettling = 2000;

SpikeRate::SpikeRate(const BenchRequest& r, Module& model, LearnerOptions options,
                     const Array& xs)
    : request_(r), model_(model) {
  if (!is_spiking(r)) return;
  options.seed.reset();  // the parameters stay
  options.profile = false;
  for (std::int64_t t = 0; t < std::min(r.steps, kSettling); ++t)
    inputs_.push_back(row(xs, t).contiguous());
  forward_ = std::make_unique<Learner>(model, BPTT{}, std::vector{inputs_[0]}, options);
}

void SpikeRate::tune() {
  for (std::int64_t layer = 0; forward_ && layer < request_.layers; ++layer) tune(layer);
}

double SpikeRate::now() {
  double total = 0;
  for (std::int64_t layer = 0; forward_ && layer < request_.layers; ++layer)
    total += now(layer);
  return total / static_cast<double>(request_.layers);
}

void SpikeRate::tune(std::int64_t layer) {
  State& weight =
      state_at(model_, layer_path(request_, layer).child("lin").child("weight"));
  std::vector<Array> original;
  for (std::size_t k = 0; k < weight.num_leaves(); ++k)
    original.push_back(weight.stored(k));
  const auto rate_at = [&](double scale) {
    for (std::size_t k = 0; k < original.size(); ++k)
      weight.store(k, (Value(original[k]) * scale).array());
    init_all_states(model_, {.batch_size = request_.batch});
    for (std::int64_t t = 0; t < kSettling; ++t) step(t);
    return now(layer);
  };
  double low = 0.1, high = 200;
  for (int i = 0; i < 14; ++i) {
    const double scale = std::sqrt(low * high), rate = rate_at(scale);
    if (rate >= 0.15 && rate <= 0.175) return;
    (rate < 0.1625 ? low : high) = scale;
  }
}

double SpikeRate::now(std::int64_t layer) {
  constexpr std::int64_t kCounted = 40;
  const State& potential =
      state_at(model_, layer_path(request_, layer).child("neu").child("V"));
  double fired = 0, seen = 0;
  for (std::int64_t t = 0; t < kCounted; ++t) {
    step(t);
    const Array v = potential.stored();
    for (std::int64_t i = 0; i < v.size(); ++i) fired += v.at(i) >= 1 ? 1 : 0;
    seen += static_cast<double>(v.size());
  }
  return seen > 0 ? fired / seen : 0;
}

void SpikeRate::step(std::int64_t t) {
  forward_->step({inputs_[static_cast<std::size_t>(t) % inputs_.size()]});
}

}  // namespace braintrace::cli
