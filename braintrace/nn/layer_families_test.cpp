// SPDX-License-Identifier: Apache-2.0
// What holds for every member of a family of layers.
#include <functional>

#include <doctest/doctest.h>

#include "braintrace/nn/nn.h"
#include "braintrace/testing/check_module.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace::nn::layer_families_test {
namespace {

using testing::check_module;
using testing::distinct;
using testing::uniform;

std::string refusal(const std::function<void()>& make) {
  try {
    make();
  } catch (const UserError& e) {
    return e.what();
  }
  return "accepted";
}

template <class Cell>
void refuses_sizes(const std::string& name, const std::string& in = "in_size",
                   const std::string& out = "out_size") {
  CAPTURE(name);
  CHECK(refusal([] { Cell(0, 3); }) == name + ": " + in + " must be >= 1, got 0");
  CHECK(refusal([] { Cell(2, -1); }) == name + ": " + out + " must be >= 1, got -1");
  Cell cell(2, 3);
  init_all_states(cell);
  CHECK(refusal([&] { cell(zeros({4})); }).starts_with(name + ": "));
}

template <class Neuron, class Options>
void refuses_reset(const std::string& name, Options options) {
  CAPTURE(name);
  CHECK(refusal([&] { Neuron({2}, options); }) ==
        name + ": spk_reset must be 'soft' or 'hard', got 'softly'");
}

template <class Synapse>
void check_synapse(Synapse&& s) {
  check_module(s, testing::steps_of(uniform({4, 2}, 0.1, 1)));
}

}  // namespace

TEST_CASE("every cell refuses sizes below one and inputs of another size") {
  refuses_sizes<ValinaRNNCell>("VanillaRNNCell");
  refuses_sizes<GRUCell>("GRUCell");
  refuses_sizes<CFNCell>("CFNCell");
  refuses_sizes<MGUCell>("MGUCell");
  refuses_sizes<LSTMCell>("LSTMCell");
  refuses_sizes<URLSTMCell>("URLSTMCell");
  refuses_sizes<MinimalRNNCell>("MinimalRNNCell");
  refuses_sizes<MiniGRU>("MiniGRU");
  refuses_sizes<MiniLSTM>("MiniLSTM");
  refuses_sizes<LRUCell>("LRUCell", "d_model", "d_hidden");
}

TEST_CASE("every neuron refuses an unknown way to reset") {
  const LIFOptions membrane{.spk_reset = "softly"};
  refuses_reset<IF>("IF", IFOptions{.spk_reset = "softly"});
  refuses_reset<LIF>("LIF", membrane);
  refuses_reset<LIFRef>("LIFRef", LIFRefOptions{.membrane = membrane});
  refuses_reset<ALIF>("ALIF", ALIFOptions{.spk_reset = "softly"});
  refuses_reset<ExpIF>("ExpIF", ExpIFOptions{.spk_reset = "softly"});
  refuses_reset<AdExIF>("AdExIF", AdExIFOptions{.spk_reset = "softly"});
  refuses_reset<QuaIF>("QuaIF", QuaIFOptions{.spk_reset = "softly"});
  refuses_reset<AdQuaIF>("AdQuaIF", AdQuaIFOptions{.spk_reset = "softly"});
  refuses_reset<Izhikevich>("Izhikevich", IzhikevichOptions{.spk_reset = "softly"});
  refuses_reset<Gif>("Gif", GifOptions{.spk_reset = "softly"});
  refuses_reset<CubaLIF>("CubaLIF", CubaLIFOptions{.membrane = membrane});
  refuses_reset<CobaLIF>("CobaLIF", CobaLIFOptions{.membrane = membrane});
}

TEST_CASE("derivatives of every synapse agree with central differences") {
  check_synapse(Expon({2}));
  check_synapse(DualExpon({2}));
  check_synapse(Alpha({2}));
  check_synapse(STP({2}));
  check_synapse(STD({2}));
}

TEST_CASE("pooling in every number of axes has the right derivatives and refuses") {
  MaxPool3d max3(2);
  check_module(max3, distinct({2, 3, 2, 1}));
  AdaptiveMaxPool2d amax2(2);
  check_module(amax2, distinct({3, 2, 1}));
  AdaptiveMaxPool3d amax3(1);
  check_module(amax3, distinct({2, 2, 2, 1}));
  AdaptiveAvgPool3d aavg3(2);
  check_module(aavg3, uniform({2, 3, 2, 1}, -1, 1));
  CHECK(refusal([] { AvgPool2d(0); }) == "AvgPool2d: kernel_size must be >= 1, got 0");
  CHECK(refusal([] { AvgPool3d(-2); }) == "AvgPool3d: kernel_size must be >= 1, got -2");
  CHECK(refusal([] { MaxPool3d(0); }) == "MaxPool3d: kernel_size must be >= 1, got 0");
  CHECK(refusal([] {
          AdaptiveMaxPool2d pool(3);
          pool(zeros({2, 4, 1}));
        }).starts_with("AdaptiveMaxPool2d: "));
}

TEST_CASE("batch norms over images and volumes have the right derivatives") {
  BatchNorm2d two({2, 2, 3});
  check_module(two, uniform({2, 2, 2, 3}, -1, 1));
  BatchNorm3d three({1, 2, 2, 2});
  check_module(three, uniform({2, 1, 2, 2, 2}, -1, 1));
  CHECK(refusal([] { BatchNorm3d({3}); }).starts_with("BatchNorm3d: "));
}

TEST_CASE("a batch norm may have its features on another axis") {
  BatchNorm1d last({4, 3}), first({3, 4}, {.feature_axis = 0});
  check_module(first, uniform({2, 3, 4}, -1, 1));
  CHECK(first.running_mean.spec(0).shape == Shape{3, 1});
  for (Module* m : {static_cast<Module*>(&last), static_cast<Module*>(&first)})
    init_all_states(*m, {.dtype = DType::f64});
  const Array x = uniform({2, 4, 3}, -1, 1), turned = x.transposed({0, 2, 1});
  testing::check_close("features first", first(turned).array().transposed({0, 2, 1}),
                       last(x).array(), tol::f64);
  CHECK(refusal([] {
          BatchNorm1d({4, 3}, {.feature_axis = 2});
        }) == "BatchNorm1d: feature_axis must be an axis of in_size [4,3], got 2");
}

TEST_CASE("dropping channels of lines and volumes drops whole ones and refuses") {
  const auto check_whole = [](Module& m, const Shape& shape, std::int64_t channels) {
    init_all_states(m);
    const Array y = m(ones(shape)).array();
    for (std::int64_t i = channels; i < y.size(); ++i)
      REQUIRE(y.at(i) == y.at(i % channels));
  };
  Dropout1d line(0.5);
  check_whole(line, {6, 4}, 4);
  check_module(line, testing::steps_of(uniform({2, 3, 4}, 1, 2)));
  Dropout3d volume(0.5);
  check_whole(volume, {2, 2, 2, 4}, 4);
  check_module(volume, testing::steps_of(uniform({2, 2, 1, 2, 2}, 1, 2)));
  CHECK(refusal([] { Dropout1d(0); }).starts_with("Dropout1d: keep_prob must lie"));
  CHECK(refusal([] { Dropout3d(1.5); }).starts_with("Dropout3d: keep_prob must lie"));
}

}  // namespace braintrace::nn::layer_families_test
