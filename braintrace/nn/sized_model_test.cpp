// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/sized_model.h"

#include <doctest/doctest.h>

#include "braintrace/base/error.h"
#include "braintrace/nn/model_registry.h"

namespace sized_model_test {

using namespace braintrace;

TEST_CASE("every short name builds a model of the sizes asked for") {
  for (const std::string& name : nn::sized_model_names()) {
    const auto model =
        nn::build_model(nn::sized_model(name, {.n_in = 3, .n_rec = 5, .n_out = 2}));
    init_all_states(*model, {.batch_size = 4});
    CAPTURE(name);
    CHECK(model->update(zeros({4, 3})).shape() == Shape{4, 2});
  }
}

TEST_CASE("layers are stacked where a net has them, else refused") {
  const nn::ModelSizes sizes{.n_in = 3, .n_rec = 5, .n_out = 2, .layers = 3};
  const auto model = nn::build_model(nn::sized_model("gru", sizes));
  init_all_states(*model);
  CHECK(state_at(*model, Path{"rnn3", "h"}).stored().shape() == Shape{5});
  for (const char* name : {"lif", "alif"}) {
    const auto spiking = nn::build_model(nn::sized_model(name, sizes));
    init_all_states(*spiking, {.batch_size = 4});
    CHECK(state_at(*spiking, Path{"layer3", "neu", "V"}).stored().shape() == Shape{4, 5});
    CHECK(spiking->update(zeros({4, 3})).shape() == Shape{4, 2});
  }
  CHECK_THROWS_WITH_AS(nn::sized_model("gif_net", sizes),
                       doctest::Contains("'gif_net' has one layer, got 3"), UserError);
}

TEST_CASE("kinds of the registry take the sizes too") {
  const auto model =
      nn::build_model(nn::sized_model("single_rnn", {.n_in = 3, .n_rec = 5, .n_out = 2}));
  init_all_states(*model);
  CHECK(model->update(zeros({3})).shape() == Shape{2});
  CHECK_THROWS_WITH_AS(nn::sized_model("conv_rnn", {.n_in = 3, .n_rec = 5, .n_out = 2}),
                       doctest::Contains("takes images (1, size, size)"), UserError);
}

}  // namespace sized_model_test
