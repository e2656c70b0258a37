// SPDX-License-Identifier: Apache-2.0
// The linear family: derivatives, equations, errors.
#include "braintrace/nn/linear.h"

#include <doctest/doctest.h>

#include "braintrace/nn/connections.h"
#include "braintrace/nn/embedding.h"
#include "braintrace/nn/grouped_linear.h"
#include "braintrace/nn/lora.h"
#include "braintrace/nn/scaled_linear.h"
#include "braintrace/nn/signed_linear.h"
#include "braintrace/nn/sparse_linear.h"
#include "braintrace/testing/check_module.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace::nn::linear_test {
namespace {

using testing::check_close;
using testing::check_module;
using testing::uniform;

const Array unbatched = uniform({3}, -1, 1);
const Array batched = uniform({2, 3}, -1, 1);

void check_linear(Module& m) {
  check_module(m, unbatched);
  check_module(m, batched);
  check_module(m, uniform({2, 2, 3}, -1, 1));
}

}  // namespace

TEST_CASE("Linear is x W + b, with leaves under one parameter") {
  Linear m(2, 2);
  init_all_states(m, {.dtype = DType::f64});
  load_state_dict(m, {{"weight/weight", array({2, 2}, {1, 2, 3, 4}, DType::f64)},
                      {"weight/bias", array({10, 20}, DType::f64)}});
  CHECK(m(array({1, 2}, DType::f64)).array() == array({17, 30}, DType::f64));
}

TEST_CASE("Linear with several sizes uses one weight at every leading position") {
  Linear m({2, 3}, {2, 4}), flat(3, 4);
  init_all_states(m, {.dtype = DType::f64});
  init_all_states(flat, {.dtype = DType::f64});
  load_state_dict(flat, state_dict(m));
  CHECK(m.weight.spec(m.weight.leaf_index("weight")).shape == Shape{3, 4});
  const Array x = uniform({5, 2, 3}, -1, 1);
  CHECK(m(x).array() == flat(x).array());
  check_module(m, uniform({2, 3}, -1, 1));
  CHECK_THROWS_WITH_AS(m(zeros({3, 3})), "Linear: x must end with [2,3], got [3,3]",
                       UserError);
  CHECK_THROWS_WITH_AS(Linear({2, 3}, {3, 3}),
                       "Linear: in_size and out_size must be equal up to their last "
                       "entry, got [2,3] and [3,3]",
                       UserError);
  CHECK_THROWS_AS(Linear(Shape{}, Shape{}), UserError);
  CHECK_THROWS_WITH_AS(Linear({0, 3}, {0, 4}), "Linear: in_size must be >= 1, got 0",
                       UserError);
}

TEST_CASE("Linear has the right derivatives, with and without bias and mask") {
  Linear plain(3, 2), bare(3, 2, {.b_init = nullptr});
  Linear masked(3, 2, {.w_mask = array({3, 2}, {1, 0, 0, 1, 1, 1})});
  for (Module* m : std::initializer_list<Module*>{&plain, &bare, &masked})
    check_linear(*m);
}

TEST_CASE("a masked Linear does not see masked weights") {
  Linear m(2, 1, {.w_init = init::constant(1), .w_mask = array({2, 1}, {1, 0})});
  init_all_states(m);
  CHECK(m(array({3, 5})).array() == array({3}));
}

TEST_CASE("SignedWLinear keeps the sign of every weight") {
  SignedWLinear m(2, 2, {.w_sign = array({2, 1}, {1, -1})});
  init_all_states(m, {.dtype = DType::f64});
  load_state_dict(m, {{"weight", array({2, 2}, {-1, 2, 3, -4}, DType::f64)}});
  CHECK(m(array({1, 1}, DType::f64)).array() == array({-2, -2}, DType::f64));
  SignedWLinear checked(3, 2, {.w_sign = array({3, 1}, {1, -1, 1})});
  check_linear(checked);
}

TEST_CASE("ScaledWSLinear has the right derivatives") {
  ScaledWSLinear full(3, 2), no_gain(3, 2, {.ws_gain = false});
  ScaledWSLinear masked(3, 2, {.w_mask = array({3, 1}, {1, 0, 1})});
  for (Module* m : std::initializer_list<Module*>{&full, &no_gain, &masked})
    check_linear(*m);
}

TEST_CASE("SparseLinear equals the dense product of its pattern") {
  const SparseStructure s = csr_structure(3, 2, {0, 1, 3, 4}, {1, 0, 1, 0});
  SparseLinear m(s, {.b_init = init::constant(0.5)});
  check_linear(m);
  init_all_states(m, {.dtype = DType::f64});
  load_state_dict(m, {{"weight/weight", array({1, 2, 3, 4}, DType::f64)}});
  // Rows: [0 1], [2 3], [4 0].
  CHECK(m(array({1, 10, 100}, DType::f64)).array() == array({420.5, 31.5}, DType::f64));
}

TEST_CASE("GroupedLinear has the right derivatives") {
  GroupedLinear m(2, 3, 2);
  check_module(m, uniform({2, 3}, -1, 1));
  check_module(m, uniform({4, 2, 3}, -1, 1));
}

TEST_CASE("LoRA adds its base module and scales by the rank") {
  LoRA m(3, 2, 2, {.base_module = std::make_shared<Linear>(3, 2)});
  check_linear(m);
  LoRA ones(3, 2, 1, {.kernel_init = init::constant(1)});
  init_all_states(ones);
  CHECK(ones(array({1, 2, 3})).array() == array({6}));
}

TEST_CASE("AllToAll joins every pair, with one weight or many, with or without self") {
  AllToAll many(3, 2, {.b_init = init::constant(1)}),
      square(3, 3, {.include_self = false});
  AllToAll one(3, 2, {.w_init = init::constant(2), .scalar_weight = true});
  AllToAll others(
      3, 3, {.w_init = init::constant(2), .scalar_weight = true, .include_self = false});
  for (Module* m : std::initializer_list<Module*>{&many, &square, &one, &others})
    check_linear(*m);
  init_all_states(one);
  CHECK(one(array({1, 2, 3}, DType::f64)).array() == array({12, 12}, DType::f64));
  CHECK(others(array({1, 2, 3}, DType::f64)).array() == array({10, 8, 6}, DType::f64));
}

TEST_CASE("OneToOne is entry by entry") {
  OneToOne m(3, {.b_init = init::constant(1)});
  check_linear(m);
}

TEST_CASE("Embedding looks rows up, any index shape, any row shape") {
  Embedding m(4, 3), matrix(4, Shape{2, 2});
  for (const Array& i : {Array::from<std::int32_t>({}, {2}),
                         Array::from<std::int32_t>({2, 2}, {0, 3, 3, 1})}) {
    check_module(m, i);
    check_module(matrix, i);
  }
  CHECK(matrix(Array::from<std::int32_t>({3}, {0, 1, 2})).shape() == Shape{3, 2, 2});
}

TEST_CASE("linear layers refuse bad arguments") {
  CHECK_THROWS_WITH_AS(Linear(0, 2), "Linear: in_size must be >= 1, got 0", UserError);
  CHECK_THROWS_WITH_AS(Linear(3, 2, {.w_mask = zeros({2, 2})}),
                       "Linear: w_mask must broadcast to [3,2], got [2,2]", UserError);
  CHECK_THROWS_WITH_AS(SignedWLinear(3, 2, {.w_sign = zeros({5})}),
                       "SignedWLinear: w_sign must broadcast to [3,2], got [5]",
                       UserError);
  CHECK_THROWS_WITH_AS(ScaledWSLinear(3, 2, {.eps = 0}),
                       "ScaledWSLinear: eps must be > 0 and finite, got 0", UserError);
  CHECK_THROWS_WITH_AS(SparseLinear({.in = 2, .out = 2, .rows = {2}, .cols = {0}}),
                       "SparseLinear: (2, 0) lies outside 2 x 2", UserError);
  CHECK_THROWS_WITH_AS(GroupedLinear(2, 3, 0),
                       "GroupedLinear: out_features must be >= 1, got 0", UserError);
  CHECK_THROWS_WITH_AS(LoRA(3, 0, 2), "LoRA: lora_rank must be >= 1, got 0", UserError);
  CHECK_THROWS_WITH_AS(AllToAll(3, 2, {.include_self = false}),
                       "AllToAll: include_self = false needs in_size == out_size, got 3 "
                       "and 2",
                       UserError);
  CHECK_THROWS_WITH_AS(OneToOne(0), "OneToOne: size must be >= 1, got 0", UserError);
}

TEST_CASE("linear layers refuse inputs of the wrong size") {
  Linear m(3, 2);
  GroupedLinear g(2, 3, 2);
  init_all_states(m);
  init_all_states(g);
  CHECK_THROWS_WITH_AS(m(zeros({2})),
                       "Linear: the last axis of x must have 3 entries, got x [2]",
                       UserError);
  CHECK_THROWS_WITH_AS(g(zeros({3, 3})),
                       "GroupedLinear: x must end with [2,3], got [3,3]", UserError);
}

TEST_CASE("Embedding refuses options it does not have, by name") {
  CHECK_THROWS_WITH_AS(Embedding(4, 3, {.padding_idx = 7}),
                       "Embedding: padding_idx must lie in [-4, 4), got 7", UserError);
  CHECK_THROWS_WITH_AS(
      Embedding(4, 3, {.padding_idx = 0, .max_norm = 1.0, .freeze = true}),
      "Embedding: these options are not available for traced tables: max_norm, freeze, "
      "padding_idx",
      UserError);
  Embedding m(4, 3);
  init_all_states(m);
  CHECK_THROWS_WITH_AS(m(zeros({2})), "Embedding: indices must be i32, got f32",
                       UserError);
  CHECK_THROWS_AS(m(Array::from<std::int32_t>({1}, {4})), UserError);
}

}  // namespace braintrace::nn::linear_test
