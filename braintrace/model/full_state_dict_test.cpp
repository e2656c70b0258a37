// SPDX-License-Identifier: Apache-2.0
#include "braintrace/model/full_state_dict.h"

#include <doctest/doctest.h>

namespace full_state_dict_test {

using namespace braintrace;

namespace {

struct Layer : Module {
  ParamState w = ParamState({2}, constant_init(1));
  Layer() { add("w", w); }
};

struct Pair : Module {
  Layer first, second;
  Pair() {
    add("first", first);
    add("second", second);
    init_all_states(*this);
  }
};

// ('a/b', 'w') and ('a', 'b', 'w')
struct TwiceNamed : Module {
  struct Inner : Module {
    Layer b;
    Inner() { add("b", b); }
  } inner;
  Layer other;
  TwiceNamed() {
    add("a", inner);
    add("a/b", other);
  }
};

TEST_CASE("a full state dict must have a value for every state") {
  Pair m;
  CHECK_THROWS_WITH_AS(load_full_state_dict(m, {{"first/w", zeros({2})}}),
                       "load_state_dict: there is no value for 'second/w'", UserError);
  CHECK_THROWS_WITH_AS(
      load_full_state_dict(m, {{"first/w", zeros({2})}, {"third", zeros({2})}}),
      "load_state_dict: there is no value for 'second/w', and the model has no state "
      "'third'",
      UserError);
}

TEST_CASE("a full state dict is stored") {
  Pair m;
  load_full_state_dict(m, {{"first/w", zeros({2})}, {"second/w", zeros({2})}});
  CHECK(m.second.w.stored() == zeros({2}));
}

TEST_CASE("two states of one slash path are refused") {
  TwiceNamed m;
  CHECK_THROWS_WITH_AS(
      collect_states(m),
      "model: two states are called 'a/b/w'; rename one, such as ('a/b', 'w')",
      UserError);
}

}  // namespace
}  // namespace full_state_dict_test
