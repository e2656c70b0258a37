// SPDX-License-Identifier: Apache-2.0
#include "braintrace/model/state.h"

#include <doctest/doctest.h>

#include "braintrace/ops/ops.h"

namespace state_test {

using namespace braintrace;

namespace {

Array ramp(RngKey, const Shape& shape, DType dtype) {
  Array a = zeros(shape, DType::f64);
  double* p = a.mutable_data<double>();
  for (std::int64_t i = 0; i < a.size(); ++i) p[i] = static_cast<double>(i);
  return a.astype(dtype);
}

}  // namespace

TEST_CASE("a state cannot be read before it has a value, and says what to do") {
  HiddenState h({3});
  h.set_name("h");
  CHECK_THROWS_WITH_AS(h.value(),
                       "state 'h' has no value yet: call init_all_states(model) first",
                       UserError);
}

TEST_CASE("hidden states gain a leading batch axis, parameters do not") {
  HiddenState h({3});
  ParamState w({3, 2}, ramp);
  h.initialize(rng_key(0), {.batch_size = 5});
  w.initialize(rng_key(0), {.batch_size = 5});
  CHECK(h.stored().shape() == Shape{5, 3});
  CHECK(w.stored().shape() == Shape{3, 2});
}

TEST_CASE("leaves of a parameter are sorted by key") {
  ParamState w({{"weight", {2, 2}, ramp}, {"bias", {2}, ramp}});
  CHECK(w.spec(0).key == "bias");
  CHECK(w.leaf_index("weight") == 1);
  CHECK_THROWS_WITH_AS(w.leaf_index("gain"), doctest::Contains("only 'bias', 'weight'"),
                       UserError);
}

TEST_CASE("a stored value keeps its shape; floats are converted") {
  HiddenState h({2});
  h.set_name("h");
  h.initialize(rng_key(0), {.dtype = DType::f64});
  h.set(array({1.0, 2.0}, DType::f32));
  CHECK(h.stored() == array({1.0, 2.0}, DType::f64));
  CHECK_THROWS_WITH_AS(h.set(array({1.0})), "state 'h': shape must stay [2], got [1]",
                       UserError);
  CHECK_THROWS_AS(h.set(array({1, 2}, DType::i32)), UserError);
}

TEST_CASE("a group state stacks its members on the last axis") {
  HiddenGroupState g({3}, 2, ramp);
  g.initialize(rng_key(0), {.dtype = DType::f64});
  CHECK(g.varshape() == Shape{3});
  CHECK(g.num_state() == 2);
  CHECK(g.get(1).array() == array({1, 3, 5}, DType::f64));
  g.set_all({array({1, 1, 1}, DType::f64), array({2, 2, 2}, DType::f64)});
  CHECK(g.stored() == array({3, 2}, {1, 2, 1, 2, 1, 2}, DType::f64));
}

TEST_CASE("a tree state addresses its members by name") {
  HiddenTreeState t({2}, {"V", "a"}, ramp);
  t.set_name("n");
  t.initialize(rng_key(0), {.dtype = DType::f64});
  CHECK(t.get("a").array() == array({1, 3}, DType::f64));
  t.set_members({{"a", array({5, 5}, DType::f64)}, {"V", array({4, 4}, DType::f64)}});
  CHECK(t.stored() == array({2, 2}, {4, 5, 4, 5}, DType::f64));
  CHECK_THROWS_WITH_AS(t.set_members({{"a", array({5, 5}, DType::f64)}}),
                       "HiddenTreeState 'n': member 'V' is missing", UserError);
  CHECK_THROWS_WITH_AS(t.get("w"), "HiddenTreeState 'n' has no member 'w', only V, a",
                       UserError);
}

TEST_CASE(
    "a random state gives a new key at every draw and the same stream at every start") {
  RngState r;
  r.initialize(rng_key(3), {});
  const Array first = r.next().array(), second = r.next().array();
  CHECK(!(first == second));
  r.initialize(rng_key(3), {});
  CHECK(r.next().array() == first);
}

}  // namespace state_test
