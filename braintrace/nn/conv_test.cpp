// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/conv.h"

#include <doctest/doctest.h>

#include "braintrace/ops/ops.h"
#include "braintrace/testing/check_module.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace::nn::conv_test {
namespace {

using testing::check_close;
using testing::check_module;
using testing::uniform;

}  // namespace

TEST_CASE("Conv1d, Conv2d and Conv3d have the right derivatives") {
  Conv1d one({4, 2}, 2, {.kernel_size = 3, .b_init = init::constant(0.5)});
  check_module(one, uniform({4, 2}, -1, 1));
  check_module(one, uniform({2, 4, 2}, -1, 1));
  Conv2d two({3, 4, 1}, 2, {.kernel_size = {2, 3}, .stride = {1, 2}, .padding = "VALID"});
  check_module(two, uniform({3, 4, 1}, -1, 1));
  Conv2d padded({2, 2, 1}, 1, {.kernel_size = 2, .padding = Ints{0, 1}});
  CHECK(padded.out_size() == Shape{1, 3, 1});
  check_module(padded, uniform({2, 2, 1}, -1, 1));
  Conv3d three({2, 3, 2, 1}, 1, {.kernel_size = 2, .padding = 1});
  check_module(three, uniform({2, 3, 2, 1}, -1, 1));
}

TEST_CASE("Conv with groups, dilation and mask has the right derivatives") {
  Conv1d grouped({5, 4}, 2, {.kernel_size = 2, .rhs_dilation = 2, .groups = 2});
  check_module(grouped, uniform({5, 4}, -1, 1));
  Conv1d masked({4, 1}, 2, {.kernel_size = 3, .w_mask = array({3, 1, 1}, {1, 0, 1})});
  check_module(masked, uniform({4, 1}, -1, 1));
}

TEST_CASE("a channel count alone means channels first and any size") {
  Conv2d m(1, 8, {.kernel_size = 3, .padding = "SAME"});
  init_all_states(m);
  CHECK(m(zeros({1, 5, 7})).shape() == Shape{8, 5, 7});
  CHECK(m(zeros({2, 1, 4, 4})).shape() == Shape{2, 8, 4, 4});
  CHECK(state_dict(m).at("weight/weight").shape() == Shape{3, 3, 1, 8});
}

TEST_CASE("channels first gives the numbers of channels last") {
  const ConvOptions options{.kernel_size = 3, .stride = 2, .b_init = init::constant(1)};
  ConvOptions swapped = options;
  swapped.channel_first = true;
  Conv2d last({4, 5, 2}, 3, options), first({2, 4, 5}, 3, swapped);
  init_all_states(last, {.dtype = DType::f64});
  init_all_states(first, {.dtype = DType::f64});
  first.weight.store(first.weight.leaf_index("weight"),
                     last.weight.stored(last.weight.leaf_index("weight")));
  const Array x = uniform({4, 5, 2}, -1, 1);
  const Value want = transpose(last(x), {2, 0, 1});
  check_close("y", first(transpose(x, {2, 0, 1})).array(), want.array(), tol::f64);
  CHECK(first.out_size() == Shape{3, 2, 3});
  CHECK(first.weight.spec(first.weight.leaf_index("bias")).shape == Shape{3, 1, 1});
}

TEST_CASE("over one axis two padding numbers are low and high, over two one per axis") {
  const auto length = [](Padding p) {
    return Conv1d({4, 1}, 1, {.kernel_size = 1, .padding = std::move(p)}).out_size()[0];
  };
  CHECK(length(Ints{1, 2}) == 7);
  CHECK(length(Ints{3}) == 10);
  Conv1d m({2, 1}, 1, {.kernel_size = 1, .padding = Ints{0, 2}});
  init_all_states(m, {.dtype = DType::f64});
  const Array y = m(ones({2, 1}, DType::f64)).array();
  CHECK(y.at(0) != 0);
  CHECK(y.at(3) == 0);
  CHECK(Conv2d({4, 4, 1}, 1, {.kernel_size = 1, .padding = Ints{1, 2}}).out_size() ==
        Shape{6, 8, 1});
  CHECK_THROWS_WITH_AS(length(Ints{1, 2, 3}),
                       "Conv1d: padding must be one (low, high) pair or 1, got 3",
                       UserError);
}

TEST_CASE("all leading axes are folded and unfolded") {
  Conv1d m({4, 1}, 2, {.kernel_size = 3});
  init_all_states(m, {.dtype = DType::f64});
  const Array x = uniform({2, 3, 4, 1}, -1, 1);
  const Array y = m(x).array();
  CHECK(y.shape() == Shape{2, 3, 4, 2});
  const Array lane = x.sliced({1, 2, 0, 0}, {1, 1, 4, 1}, {1, 1, 1, 1}).reshaped({4, 1});
  check_close("lane", y.sliced({1, 2, 0, 0}, {1, 1, 4, 2}, {1, 1, 1, 1}).reshaped({4, 2}),
              m(lane).array(), tol::f64);
}

TEST_CASE("Conv refuses bad arguments") {
  CHECK_THROWS_WITH_AS(Conv2d({4, 4}, 2, {}),
                       "Conv2d: in_size must hold 2 spatial sizes and the channels, got "
                       "[4,4]",
                       UserError);
  CHECK_THROWS_WITH_AS(
      Conv2d({4, 4, 3}, 4, {.groups = 2}),
      "Conv2d: groups must divide the channel counts, got 2 groups for 3 "
      "in and 4 out",
      UserError);
  CHECK_THROWS_WITH_AS(Conv1d(1, 2, {.kernel_size = 0}),
                       "Conv1d: kernel_size must be >= 1, got 0", UserError);
  CHECK_THROWS_WITH_AS(Conv2d(1, 2, {.stride = {1, 2, 3}}),
                       "Conv2d: stride must be one number or 2, got [1,2,3]", UserError);
  CHECK_THROWS_WITH_AS(Conv1d(1, 2, {.padding = "FULL"}),
                       "Conv1d: padding must be 'SAME', 'VALID' or numbers, got 'FULL'",
                       UserError);
  CHECK_THROWS_WITH_AS(Conv1d(1, 2, {.padding = -1}),
                       "Conv1d: padding must be >= 0, got (-1, -1)", UserError);
  Conv1d m({4, 1}, 2, {.kernel_size = 3});
  init_all_states(m);
  CHECK_THROWS_WITH_AS(m(zeros({5, 1})), "Conv1d: x must end with [4,1], got [5,1]",
                       UserError);
  Conv1d free(2, 1, {.kernel_size = 3});
  init_all_states(free);
  CHECK_THROWS_WITH_AS(
      free(zeros({1, 5})),
      "Conv1d: x must end with 2 channels and 1 spatial sizes, got [1,5]", UserError);
  CHECK_THROWS_WITH_AS(free.in_size(),
                       "Conv1d: the input size is not known, only its channels",
                       UserError);
}

}  // namespace braintrace::nn::conv_test
