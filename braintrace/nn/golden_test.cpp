// SPDX-License-Identifier: Apache-2.0
// Cells, norms and convolutions against recorded float64 numbers.
#include <memory>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "braintrace/nn/cfn.h"
#include "braintrace/nn/conv.h"
#include "braintrace/nn/gru.h"
#include "braintrace/nn/lru.h"
#include "braintrace/nn/lstm.h"
#include "braintrace/nn/mgu.h"
#include "braintrace/nn/mini_gru.h"
#include "braintrace/nn/mini_lstm.h"
#include "braintrace/nn/minimal_rnn.h"
#include "braintrace/nn/norm.h"
#include "braintrace/nn/readout.h"
#include "braintrace/nn/scaled_linear.h"
#include "braintrace/nn/urlstm.h"
#include "braintrace/nn/vanilla_rnn.h"
#include "braintrace/ops/ops.h"
#include "braintrace/testing/bptt.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/recorded_json.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace::nn::golden_test {
namespace {

using nlohmann::json;

const json& golden() {
  static const json file = testing::read_json(BT_TESTS_DIR "/data/ops_nn_golden.json");
  return file;
}

void collect(const json& j, std::vector<double>& out) {
  if (!j.is_array()) return out.push_back(j.get<double>());
  for (const json& part : j) collect(part, out);
}

// Nested lists of numbers.
Array array_of(const json& j) {
  Shape shape;
  for (const json* level = &j; level->is_array(); level = &level->front())
    shape.push_back(static_cast<std::int64_t>(level->size()));
  std::vector<double> values;
  collect(j, values);
  return array(shape, values, DType::f64);
}

std::string slashes(std::string path) {
  for (char& c : path)
    if (c == '.') c = '/';
  return path;
}

// {"W.weight": {"bias": ..}} and {"bias": ..} by slash path.
StateDict leaves_of(const json& params) {
  StateDict out;
  for (const auto& [path, value] : params.items()) {
    if (value.is_array()) {
      out.emplace(slashes(path), array_of(value));
      continue;
    }
    for (const auto& [key, leaf] : value.items())
      out.emplace(slashes(path) + "/" + key, array_of(leaf));
  }
  return out;
}

struct Case {
  const char* name;
  std::function<std::unique_ptr<Module>()> make;
};

template <class Cell, class... Args>
Case cell(const char* name, Args... args) {
  return {name, [=] { return std::make_unique<Cell>(2, 3, args...); }};
}

std::vector<Case> cells() {
  return {
      cell<VanillaRNNCell>("ValinaRNNCell"),
      cell<VanillaRNNCell>("ValinaRNNCell_tanh",
                           VanillaRNNCellOptions{.activation = "tanh"}),
      cell<GRUCell>("GRUCell"),
      cell<CFNCell>("CFNCell"),
      cell<MGUCell>("MGUCell"),
      cell<LSTMCell>("LSTMCell"),
      cell<URLSTMCell>("URLSTMCell"),
      cell<MinimalRNNCell>("MinimalRNNCell"),
      cell<MiniGRU>("MiniGRU"),
      cell<MiniLSTM>("MiniLSTM"),
      cell<LRUCell>("LRUCell"),
      cell<LeakyRateReadout>("LeakyRateReadout"),
  };
}

Value sum_of_squares(std::size_t, const Values& y) { return sum(square(y[0])); }

double tolerance_of(DType dtype) {
  return dtype == DType::f64 ? tol::f64_golden : tol::golden;
}

void check_cell(const Case& c, DType dtype) {
  const double tolerance = tolerance_of(dtype);
  const json& want = golden()["cells"][c.name];
  const std::unique_ptr<Module> m = c.make();
  init_all_states(*m, {.dtype = dtype});
  load_state_dict(*m, leaves_of(want["params"]));
  const Array xs = array_of(want["x"]).astype(dtype);
  const testing::BpttResult got =
      testing::bptt(*m, testing::steps_of(xs), sum_of_squares);
  for (std::size_t t = 0; t < got.outputs.size(); ++t) {
    testing::check_close("y", got.outputs[t][0].astype(DType::f64),
                         array_of(want["y"][t]), tolerance);
    for (const auto& [name, a] : got.states[t])
      testing::check_close(name, a.astype(DType::f64), array_of(want["states"][t][name]),
                           tolerance);
    CHECK(got.states[t].size() == want["states"][t].size());
  }
  const StateDict grads = leaves_of(want["grad_sum_y2"]);
  CHECK(got.grads.size() == grads.size());
  for (const auto& [path, a] : grads)
    testing::check_close(path, got.grads.at(path).astype(DType::f64), a, tolerance);
}

}  // namespace

TEST_CASE("cells reproduce recorded outputs, states and BPTT gradients in f64") {
  for (const Case& c : cells()) check_cell(c, DType::f64);
}

TEST_CASE("cells reproduce recorded outputs, states and BPTT gradients in f32") {
  for (const Case& c : cells()) check_cell(c, DType::f32);
}

TEST_CASE("every recorded cell is checked") {
  CHECK(cells().size() == golden()["cells"].size());
}

TEST_CASE("norms reproduce recorded numbers in f64 and f32") {
  const json& want = golden()["norm"];
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Array x = array_of(want["x"]).astype(dtype);
    LayerNorm layer({4});
    RMSNorm rms(4);
    GroupNorm group(4, {.num_groups = 2});
    for (Module* m : std::initializer_list<Module*>{&layer, &rms, &group})
      init_all_states(*m, {.dtype = dtype});
    const auto check = [&](const char* name, const Value& got) {
      CHECK(got.dtype() == dtype);
      testing::check_close(name, got.array().astype(DType::f64), array_of(want[name]),
                           tolerance_of(dtype));
    };
    check("LayerNorm", layer(x));
    check("RMSNorm", rms(x));
    check("GroupNorm2", group(x));
    check("weight_standardization", standardize_weight(x));
    check("standardize", standardize(x));
  }
}

namespace {

void check_conv(const char* name, ConvOptions options, DType dtype) {
  const json& want = golden()["conv2d"];
  const Array x = array_of(want["x"]).astype(dtype), kernel = array_of(want["kernel"]);
  options.kernel_size = {kernel.shape()[0], kernel.shape()[1]};
  options.b_init = init::zero();
  Conv2d conv({x.shape()[1], x.shape()[2], x.shape()[3]}, kernel.shape().back(), options);
  init_all_states(conv, {.dtype = dtype});
  load_state_dict(conv,
                  {{"weight/weight", kernel}, {"weight/bias", array_of(want["bias"])}});
  const Array y = conv(x).array();
  testing::check_close(name, y.astype(DType::f64), array_of(want[name]),
                       tolerance_of(dtype));
  CHECK(conv.out_size() == Shape(y.shape().begin() + 1, y.shape().end()));
}

}  // namespace

TEST_CASE("Conv2d reproduces recorded numbers in f64 and f32") {
  for (const DType dtype : {DType::f64, DType::f32}) {
    check_conv("SAME_s1", {}, dtype);
    check_conv("SAME_s2", {.stride = 2}, dtype);
    check_conv("VALID_s1", {.padding = "VALID"}, dtype);
    check_conv("dil2_VALID", {.padding = "VALID", .rhs_dilation = 2}, dtype);
  }
}

}  // namespace braintrace::nn::golden_test
