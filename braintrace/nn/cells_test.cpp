// SPDX-License-Identifier: Apache-2.0
// What all recurrent cells share: derivatives, batches, order of traced ops, errors. The
// recorded numbers are in golden_test.cpp.
#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/nn/cfn.h"
#include "braintrace/nn/gru.h"
#include "braintrace/nn/lru.h"
#include "braintrace/nn/lstm.h"
#include "braintrace/nn/mgu.h"
#include "braintrace/nn/mini_gru.h"
#include "braintrace/nn/mini_lstm.h"
#include "braintrace/nn/minimal_rnn.h"
#include "braintrace/nn/readout.h"
#include "braintrace/nn/urlstm.h"
#include "braintrace/nn/vanilla_rnn.h"
#include "braintrace/ops/ops.h"
#include "braintrace/testing/check_module.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace::nn::cells_test {
namespace {

using testing::check_module;
using testing::uniform;

// Two steps, so that gradients also flow through the states; then the same with a batch.
void check_cell(Module& m) {
  check_module(m, testing::steps_of(uniform({2, 2}, -1, 1)));
  check_module(m, testing::steps_of(uniform({2, 3, 2}, -1, 1)), {.batch_size = 3});
}

// Parameter paths of the traced ops, in program order.
std::vector<std::string> traced_order(Module& m) {
  init_all_states(m);
  const StepModel step = trace_step(m, {Type{DType::f32, {2}}});
  std::map<ValueId, std::string> paths;
  for (const StepState& s : step.states)
    for (const ValueId v : s.in) paths.emplace(v, to_slashes(s.path));
  std::vector<std::string> order;
  for (const Node& n : step.program.nodes()) {
    if (!n.op->etp) continue;
    for (const ValueId v : n.inputs)
      if (paths.count(v) &&
          (order.empty() || order.back() != paths[v] || n.inputs.size() == 1))
        order.push_back(paths[v]);
  }
  return order;
}

std::vector<std::string> touched_hidden(Module& m) {
  init_all_states(m);
  std::vector<std::string> names;
  for (const StepState& s : trace_step(m, {Type{DType::f32, {2}}}).states)
    if (is_hidden(s.kind)) names.push_back(to_slashes(s.path));
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("VanillaRNNCell has the right derivatives") {
  VanillaRNNCell m(2, 3, {.activation = "tanh"});
  check_cell(m);
}

TEST_CASE("GRUCell has the right derivatives") {
  GRUCell m(2, 3);
  check_cell(m);
}

TEST_CASE("CFNCell has the right derivatives") {
  CFNCell m(2, 3);
  check_cell(m);
}

TEST_CASE("MGUCell has the right derivatives") {
  MGUCell m(2, 3);
  check_cell(m);
}

TEST_CASE("LSTMCell has the right derivatives") {
  LSTMCell m(2, 3);
  check_cell(m);
}

TEST_CASE("URLSTMCell has the right derivatives") {
  URLSTMCell m(2, 3);
  check_cell(m);
}

TEST_CASE("MinimalRNNCell has the right derivatives") {
  MinimalRNNCell m(2, 3);
  check_cell(m);
}

TEST_CASE("MiniGRU has the right derivatives") {
  MiniGRU m(2, 3);
  check_cell(m);
}

TEST_CASE("MiniLSTM has the right derivatives") {
  MiniLSTM m(2, 3);
  check_cell(m);
}

TEST_CASE("LRUCell has the right derivatives") {
  LRUCell m(2, 3);
  check_cell(m);
}

TEST_CASE("LeakyRateReadout has the right derivatives") {
  LeakyRateReadout m(2, 3, {.tau = {3, 5, 9}});
  check_cell(m);
}

TEST_CASE("cells meet states and traced ops in the order of existing models") {
  LSTMCell lstm(2, 3);
  CHECK(touched_hidden(lstm) == Names{"h", "c"});
  CHECK(traced_order(lstm) == Names{"Wi/weight", "Wg/weight", "Wf/weight", "Wo/weight"});
  URLSTMCell urlstm(2, 3);
  CHECK(touched_hidden(urlstm) == Names{"h", "c"});
  CHECK(traced_order(urlstm) ==
        Names{"Wf/weight", "Wr/weight", "Wu/weight", "Wo/weight", "bias", "bias"});
  GRUCell gru(2, 3);
  CHECK(traced_order(gru) == Names{"Wz/weight", "Wr/weight", "Wh/weight"});
  CFNCell cfn(2, 3);
  CHECK(traced_order(cfn) == Names{"Wf/weight", "Wi/weight", "Wh/weight"});
  MinimalRNNCell minimal(2, 3);
  CHECK(traced_order(minimal) == Names{"phi/weight", "W_u/weight"});
  MiniGRU mini_gru(2, 3);
  CHECK(traced_order(mini_gru) == Names{"W_z/weight", "W_x/weight"});
  MiniLSTM mini_lstm(2, 3);
  CHECK(traced_order(mini_lstm) == Names{"W_f/weight", "W_i/weight", "W_x/weight"});
  LRUCell lru(2, 3);
  CHECK(touched_hidden(lru) == Names{"h_re", "h_im"});
  CHECK(traced_order(lru) == Names{"nu_log", "theta_log", "gamma_log", "B_re/weight",
                                   "B_im/weight", "C_re/weight", "C_im/weight", "D"});
}

TEST_CASE("LRUCell starts with gamma = sqrt(1 - |lambda|^2)") {
  LRUCell m(2, 50, {.r_min = 0.4, .r_max = 0.9});
  init_all_states(m, {.dtype = DType::f64});
  for (std::int64_t i = 0; i < 50; ++i) {
    const double radius = std::exp(-std::exp(m.nu_log.stored().at(i)));
    const double gamma = std::exp(m.gamma_log.stored().at(i));
    CHECK(radius > 0.4 - tol::f64);
    CHECK(radius < 0.9 + tol::f64);
    CHECK(std::abs(gamma * gamma + radius * radius - 1) < tol::f64);
  }
}

TEST_CASE("MinimalRNNCell takes another phi") {
  auto phi = std::make_shared<Linear>(2, 3, LinearOptions{.b_init = nullptr});
  MinimalRNNCell m(2, 3, {.phi = phi});
  init_all_states(m);
  CHECK(state_dict(m).count("phi/weight/weight") == 1);
  CHECK(state_dict(m).count("phi/weight/bias") == 0);
}

TEST_CASE("LeakySpikeReadout integrates, resets and spikes") {
  LeakySpikeReadout m(1, 1, {.tau = 1 / std::log(2.0), .w_init = init::constant(1)});
  init_all_states(m, {.dtype = DType::f64});
  const Array x = array({3}, DType::f64);
  CHECK(m(x).array().item() == 1);  // V = 1.5
  CHECK(m.V.stored().item() == doctest::Approx(1.5));
  CHECK(m(x).array().item() == 1);  // (1.5 - 1)/2 + 1.5
  CHECK(m.V.stored().item() == doctest::Approx(1.75));
  LeakySpikeReadout hard(
      1, 1, {.tau = 1 / std::log(2.0), .w_init = init::constant(1), .spk_reset = "hard"});
  init_all_states(hard, {.dtype = DType::f64});
  hard(x);
  hard(x);
  CHECK(hard.V.stored().item() == doctest::Approx(1.5));
}

TEST_CASE("LeakySpikeReadout learns through the surrogate of its spike") {
  LeakySpikeReadout m(1, 1, {.V_th = 2, .w_init = init::constant(1)});
  init_all_states(m, {.dtype = DType::f64});
  const Array xs = array({1, 1}, {3}, DType::f64);
  const testing::BpttResult r = testing::bptt(
      m, testing::steps_of(xs), [](std::size_t, const Values& y) { return sum(y[0]); });
  const double gain = 1 - std::exp(-0.2), V = gain * 3;
  const Value slope = Surrogate("ReluGrad").derivative(scalar((V - 2) / 2, DType::f64));
  CHECK(r.grads.at("W").item() == doctest::Approx(slope.array().item() / 2 * gain * 3));
  CHECK(slope.array().item() > 0);
}

TEST_CASE("cells refuse bad sizes and inputs") {
  CHECK_THROWS_WITH_AS(GRUCell(0, 3), "GRUCell: in_size must be >= 1, got 0", UserError);
  CHECK_THROWS_WITH_AS(LSTMCell(2, -1), "LSTMCell: out_size must be >= 1, got -1",
                       UserError);
  CHECK_THROWS_WITH_AS(LRUCell(2, 3, {.r_min = 0.9, .r_max = 0.5}),
                       "LRUCell: needs 0 <= r_min <= r_max <= 1, got 0.9 and 0.5",
                       UserError);
  CHECK_THROWS_WITH_AS(LeakyRateReadout(2, 3, {.dt = 0}),
                       doctest::Contains("LeakyRateReadout"), UserError);
  CHECK_THROWS_WITH_AS(LeakySpikeReadout(2, 3, {.spk_reset = "none"}),
                       doctest::Contains("LeakySpikeReadout"), UserError);
  GRUCell m(2, 3);
  init_all_states(m);
  CHECK_THROWS_WITH_AS(m(zeros({4})),
                       "GRUCell: the last axis of x must have 2 entries, got x [4]",
                       UserError);
}

}  // namespace braintrace::nn::cells_test
