// SPDX-License-Identifier: Apache-2.0
#include "braintrace/model/step_model.h"

#include <doctest/doctest.h>

#include "braintrace/ir/print.h"
#include "braintrace/ops/ops.h"
#include "braintrace/run/interpreter.h"

namespace step_model_test {

using namespace braintrace;

namespace {

Array normal(RngKey key, const Shape& shape, DType dtype) {
  return random_normal(key, shape, dtype);
}

// h' = tanh(x W + h U); y = h'.
struct Cell : Module {
  ParamState W, U;
  HiddenState h;
  Cell() : W({2, 3}, normal), U({3, 3}, normal), h({3}) {
    add("W", W);
    add("U", U);
    add("h", h);
  }
  Value update(Value x) override {
    const Value in = dot(x, W.value());  // operands of + are read in no fixed order
    const Value old = h.value();
    h.set(tanh(in + dot(old, U.value())));
    return h.value();
  }
};

struct Two : Module {
  Cell first, second;
  ParamState spare;
  Two() : spare({1}, normal) {
    Module* layers[] = {&first};
    add("layers", std::span<Module* const>(layers));
    add("zz", first);  // shared: stands under its first path only
    add("spare", spare);
  }
  Value update(Value x) override { return first(x); }
};

}  // namespace

TEST_CASE("a traced step lists arguments, then states in order of first touch") {
  Cell cell;
  init_all_states(cell);
  const StepModel step = trace_step(cell, {zeros({2})});
  REQUIRE(step.states.size() == 3);
  CHECK(step.states[0].path == Path{"W"});
  CHECK(step.states[1].path == Path{"h"});
  CHECK(step.states[2].path == Path{"U"});
  CHECK(step.num_args == 1);
  CHECK(step.num_outputs == 1);
  CHECK(step.program.inputs().size() == 4);
  CHECK(step.program.outputs().size() == 4);
  CHECK(step.states[1].written);
  CHECK(!step.states[0].written);
  CHECK(step.states[0].in == step.states[0].out);
  CHECK(step.retrieved == std::vector<std::size_t>{2, 0, 1});  // U, W, h
}

TEST_CASE("the traced program and eager code give the same numbers") {
  Cell cell;
  init_all_states(cell, {.batch_size = 4, .seed = 7, .dtype = DType::f64});
  const Array x = random_normal(rng_key(1), {4, 2}, DType::f64);
  const StepModel step = trace_step(cell, {x});
  std::vector<Array> in = {x};
  for (const Array& a : read_states(step)) in.push_back(a);
  const std::vector<Array> out = interpret(step.program, in);
  const Value y = cell(x);
  CHECK(out[0] == y.array());
  CHECK(out[2] == cell.h.stored());
  CHECK(!(cell.h.stored() == zeros({4, 3}, DType::f64)));
}

TEST_CASE("tracing leaves stored values alone") {
  Cell cell;
  init_all_states(cell);
  const StateDict before = state_dict(cell);
  trace_step(cell, {zeros({2})});
  CHECK(state_dict(cell) == before);
}

TEST_CASE("paths: integer keys for lists, a shared module once, unused states reported") {
  Two two;
  init_all_states(two);
  const StepModel step = trace_step(two, {zeros({2})});
  CHECK(step.find(Path{"layers", 0, "h"}) != nullptr);
  CHECK(step.find(Path{"zz", "h"}) == nullptr);
  CHECK(step.unused == std::vector<Path>{Path{"spare"}});
  CHECK(describe_states(step).find("not used by the step: ('spare',)") !=
        std::string::npos);
}

TEST_CASE("a state outside the module is reported under an unknown path") {
  struct Capturing : Module {
    HiddenState* outside;
    Value update(Value x) override { return x + outside->value(); }
  } model;
  HiddenState h({2});
  h.initialize(rng_key(0), {});
  model.outside = &h;
  const StepModel step = trace_step(model, {zeros({2})});
  CHECK(step.captured == std::vector<Path>{Path{"_unknown_path_0"}});
}

TEST_CASE("a parameter written in the step is refused by name") {
  struct Writing : Module {
    ParamState w;
    Writing() : w({2}, normal) { add("w", w); }
    Value update(Value x) override {
      w.write(0, w.value() + x);
      return x;
    }
  } model;
  init_all_states(model);
  CHECK_THROWS_WITH_AS(trace_step(model, {zeros({2})}), doctest::Contains("('w',)"),
                       UserError);
}

TEST_CASE("a state that changes its type over a step is refused by name") {
  struct Shrinking : Module {
    HiddenState h;
    Shrinking() : h({2}) { add("h", h); }
    Value update(Value x) override {
      h.set(sum(x));
      return x;
    }
  } model;
  init_all_states(model);
  CHECK_THROWS_WITH_AS(trace_step(model, {zeros({2})}),
                       "state 'h' must stay f32[2] over a step, but is set to f32[]",
                       UserError);
}

TEST_CASE("a state written in a loop body is refused by name") {
  struct Looping : Module {
    HiddenState h;
    Looping() : h({2}) { add("h", h); }
    Value update(Value x) override {
      scan(
          [&](const Values& v) {
            h.set(v[0]);
            return Values{v[0] * 0.5};
          },
          {x}, {}, {.length = 3});
      return x;
    }
  } model;
  init_all_states(model);
  CHECK_THROWS_WITH_AS(trace_step(model, {zeros({2})}),
                       doctest::Contains("state 'h' is written inside the body"),
                       UserError);
}

TEST_CASE("parameters draw by path and seed, not by order of declaration") {
  Cell a, b;
  init_all_states(a, {.seed = 1});
  init_all_states(b, {.seed = 1});
  CHECK(a.W.stored() == b.W.stored());
  init_all_states(b);  // no seed: parameters stay
  CHECK(a.W.stored() == b.W.stored());
  init_all_states(b, {.seed = 2});
  CHECK(!(a.W.stored() == b.W.stored()));
}

TEST_CASE("changing the element type keeps a parameter's numbers") {
  Cell cell;
  init_all_states(cell, {.seed = 1});
  const Array w = cell.W.stored();
  init_all_states(cell, {.dtype = DType::f64});
  CHECK(cell.W.stored() == w.astype(DType::f64));
  CHECK(cell.h.stored().dtype() == DType::f64);
}

TEST_CASE("load_state_dict stores all or nothing") {
  Cell cell;
  init_all_states(cell);
  const StateDict before = state_dict(cell);
  CHECK_THROWS_WITH_AS(load_state_dict(cell, {{"W", ones({2, 3})}, {"x", ones({1})}}),
                       "load_state_dict: the model has no state 'x'", UserError);
  CHECK_THROWS_WITH_AS(load_state_dict(cell, {{"U", ones({3, 3})}, {"W", ones({2, 2})}}),
                       "load_state_dict: 'W' needs f32[2,3], got f32[2,2]", UserError);
  CHECK(state_dict(cell) == before);
  load_state_dict(cell, {{"W", ones({2, 3})}});
  CHECK(cell.W.stored() == ones({2, 3}));
}

TEST_CASE("an unknown state path names those there are") {
  Cell cell;
  CHECK_THROWS_WITH_AS(
      state_at(cell, Path{"V"}),
      "state_at: no state at ('V',); the model has ('U',), ('W',), ('h',)", UserError);
  CHECK(&state_at(cell, Path{"h"}) == &cell.h);
}

TEST_CASE("a name used twice in a module is refused") {
  struct Twice : Module {
    HiddenState a, b;
    Twice() : a({1}), b({1}) {
      add("h", a);
      add("h", b);
    }
  };
  CHECK_THROWS_WITH_AS(Twice(), doctest::Contains("('h',) is already used"), UserError);
}

}  // namespace step_model_test
