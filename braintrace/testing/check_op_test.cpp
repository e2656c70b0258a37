// SPDX-License-Identifier: Apache-2.0
// The harness must catch wrong ops: each case breaks one slot of a correct op.
#include "braintrace/testing/check_op.h"

#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/registry.h"

namespace check_op_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

void eval_sinh(const Kernel& k) {
  map_float(k, [](auto x) { return std::sinh(x); });
}
void eval_f32_broken(const Kernel& k) {
  const double off = k.out[0].dtype() == DType::f32 ? 1.01 : 1.0;
  map_float(k, [&](auto x) { return static_cast<decltype(x)>(std::sinh(x) * off); });
}
// Every output reads its left neighbour too.
void eval_neighbour(const Kernel& k) {
  map_float(k, [](auto x) { return x; });
  visit_dtype(k.out[0].dtype(), [&]<class T>(T) {
    T* y = k.out[0].mutable_data<T>();
    for (std::int64_t i = k.out[0].size() - 1; i > 0; --i) y[i] += y[i - 1];
  });
}

OpDef good_op() {
  return {.name = "user_sinh",
          .traits = Trait::elementwise | Trait::no_tangent,
          .infer = same_float,
          .eval = eval_sinh,
          .code = "sinh($0)"};
}

std::string run(const OpDef& op) {
  const OpDef* const table[] = {&op};
  return check_op({.op = "user_sinh",
                   .build = [&](const Values& in) { return emit(op, {in[0]}); },
                   .inputs = {uniform({2, 3}, -1, 1)},
                   .expect = {{{array({0.5}, DType::f64)},
                               {array({0.5210953054937474}, DType::f64)}}},
                   .differentiable = false,
                   .ops = table});
}

}  // namespace

TEST_CASE("check_op accepts a right op and names it in the log line") {
  CHECK(run(good_op()).find("user_sinh: f64[2,3]") == 0);
}

TEST_CASE("check_op refuses a program without the op") {
  CHECK_THROWS_WITH_AS(check_op({.op = "add",
                                 .build = [](const Values& in) { return in; },
                                 .inputs = {uniform({2}, 0, 1)}}),
                       doctest::Contains("add: the traced program does not hold the op"),
                       CheckFailure);
}

TEST_CASE("check_op catches an op that is wrong in f32") {
  OpDef op = good_op();
  op.eval = eval_f32_broken;
  CHECK_THROWS_WITH_AS(run(op), doctest::Contains("f32 against f64, output 0: at ["),
                       CheckFailure);
}

TEST_CASE("check_op catches a wrong hand-checked point") {
  OpDef op = good_op();
  op.eval = [](const Kernel& k) { map_float(k, [](auto x) { return x; }); };
  CHECK_THROWS_WITH_AS(run(op), doctest::Contains("hand-checked point 0"), CheckFailure);
}

// The failure that run() reports when one slot of the good op is replaced.
std::string failure(void (*eval)(const Kernel&)) {
  OpDef op = good_op();
  op.eval = eval;
  try {
    run(op);
  } catch (const CheckFailure& e) {
    return e.what();
  }
  return "none";
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("check_op counts the edges it met and excuses the others") {
  const std::string line = run(good_op());
  for (const char* kind :
       {"  empty ", "  one ", "  views ", "  special ", "  integers ", "  refusals "}) {
    CAPTURE(kind);
    CHECK(says(line, kind));
    CHECK_FALSE(says(line, std::string(kind) + "-"));
  }
  CHECK(says(line, "  broadcast - (one input)"));
}

TEST_CASE("check_op catches an op that refuses empty arrays only in its calculus") {
  OpDef op = good_op();
  op.batch = [](const Site& s, std::span<const BatchAxis> axes) -> BatchResult {
    BT_REQUIRE(s.in[0].dim(*axes[0]) > 0, "user_sinh: no lanes");
    return {{emit1(s.op, {s.in[0]})}, {*axes[0]}};
  };
  CHECK_THROWS_WITH_AS(run(op), doctest::Contains("0 lanes runs, but"), CheckFailure);
}

TEST_CASE("check_op catches an op that swallows NaN") {
  const std::string text = failure([](const Kernel& k) {
    map_float(k, [](auto x) { return std::isnan(x) ? decltype(x)(0) : std::sinh(x); });
  });
  CHECK(says(text, "user_sinh: NaN in input 0 at [0,0] gives 0 in output 0 at [0,0]"));
}

TEST_CASE("check_op catches an op that accepts what it cannot compute") {
  OpDef op = good_op();
  op.infer = [](std::span<const Type> in, const Attrs&) -> std::vector<Type> {
    return {in[0]};
  };
  CHECK_THROWS_WITH_AS(run(op), doctest::Contains("user_sinh: input 0 as i32[2,3]: "),
                       CheckFailure);
}

TEST_CASE("check_op catches a refusal that does not say what was found") {
  OpDef op = good_op();
  op.infer = [](std::span<const Type> in, const Attrs& attrs) {
    BT_REQUIRE(is_float(in[0].dtype), "numbers wanted");
    return same_float(in, attrs);
  };
  CHECK_THROWS_WITH_AS(
      run(op),
      doctest::Contains("the refusal does not say what was found: user_sinh: numbers"),
      CheckFailure);
}

TEST_CASE("check_op catches a plan that differs from eval on special numbers") {
  OpDef op = good_op();
  op.traits = Trait::elementwise | Trait::no_tangent;
  op.eval = [](const Kernel& k) {
    map_float(k, [](auto x) { return std::isinf(x) ? -x : x; });
  };
  op.lower = micro<MicroOp::copy>;
  const OpDef* const table[] = {&op};
  CHECK_THROWS_WITH_AS(
      check_op({.op = "user_sinh",
                .build = [&](const Values& in) { return emit(op, {in[0]}); },
                .inputs = {uniform({2, 3}, -1, 1)},
                .differentiable = false,
                .ops = table}),
      doctest::Contains("user_sinh: special numbers, output 0: got f64[2,3]("),
      CheckFailure);
}

TEST_CASE("check_op catches an element-by-element op that does not broadcast") {
  OpDef op = *find_op(op_table(), "add");
  const OpDef* const table[] = {&op};
  CHECK_THROWS_WITH_AS(
      check_op({.op = "add",
                .build =
                    [&](const Values& in) {
                      return emit(op, {in[0], in[1]});
                    },
                .inputs = {uniform({2, 3}, -1, 1), uniform({2, 3}, -1, 1, 2)},
                .ops = table}),
      doctest::Contains("input 0 as [1,3] is refused: element-by-element ops broadcast"),
      CheckFailure);
}

TEST_CASE("check_op catches a position map that hides a dependence") {
  OpDef op = good_op();
  op.eval = eval_neighbour;
  const OpDef* const table[] = {&op};
  CHECK_THROWS_WITH_AS(
      check_op({.op = "user_sinh",
                .build = [&](const Values& in) { return emit(op, {in[0]}); },
                .inputs = {array({2, 3, 4}, DType::f64)},
                .differentiable = false,
                .check_batch = false,
                .ops = table}),
      doctest::Contains("input 0 at [0] changes output 0 at [1]"), CheckFailure);
}

TEST_CASE("check_op catches a batch rule that mixes lanes") {
  OpDef op = good_op();
  op.batch = [](const Site& s, std::span<const BatchAxis> axes) -> BatchResult {
    return {{flip(emit1(s.op, {s.in[0]}), {*axes[0]})}, {*axes[0]}};
  };
  CHECK_THROWS_WITH_AS(run(op),
                       doctest::Contains("batched inputs 0 (axis 0) against a loop"),
                       CheckFailure);
}

TEST_CASE("check_op catches a wrong derivative") {
  OpDef op = good_op();
  op.traits = Trait::elementwise;
  op.jvp = [](const Site& s, std::span<const Tangent> dx) {
    return scaled(dx[0], s.out[0]);  // sinh instead of cosh
  };
  const OpDef* const table[] = {&op};
  CHECK_THROWS_WITH_AS(
      check_op({.op = "user_sinh",
                .build = [&](const Values& in) { return emit(op, {in[0]}); },
                .inputs = {uniform({2}, 0, 1)},
                .ops = table}),
      doctest::Contains("jvp of input 0 against differences, float output 0: at ["),
      CheckFailure);
}

TEST_CASE("check_op catches a wrong transpose") {
  const OpDef op = {
      .name = "twice",
      .traits = Trait::elementwise | Trait::linear,
      .infer = same_float,
      .eval = [](const Kernel& k) { map_float(k, [](auto x) { return x + x; }); },
      .transpose =
          [](const Site&, std::span<const Tangent> ct) {
            return std::vector<Tangent>{ct[0]};
          }};
  const OpDef* const table[] = {&op};
  CHECK_THROWS_WITH_AS(
      check_op({.op = "twice",
                .build = [&](const Values& in) { return emit(op, {in[0]}); },
                .inputs = {uniform({2}, 0, 1)},
                .ops = table}),
      doctest::Contains("vjp of input 0: <ct, J v> ="), CheckFailure);
}

TEST_CASE("check_op catches a tangent where the case denies one") {
  CHECK_THROWS_WITH_AS(
      check_op({.op = "tanh",
                .build = [](const Values& in) -> Values { return {tanh(in[0])}; },
                .inputs = {uniform({2}, 0, 1)},
                .differentiable = false}),
      doctest::Contains("output 0 has a tangent"), CheckFailure);
}

TEST_CASE("check_op catches an eligibility rule that forgets the input") {
  const OpDef& matmul = *find_op(op_table(), "matmul");
  EtpRule rule = *matmul.etp;
  rule.instant = [](const Site& s, int slot, const Value& df) {
    return 2 * find_op(op_table(), "matmul")->etp->instant(s, slot, df);
  };
  OpDef op = matmul;
  op.etp = &rule;
  const OpDef* const table[] = {&op};
  CHECK_THROWS_WITH_AS(
      check_op({.op = "matmul",
                .build =
                    [&](const Values& in) {
                      return emit(op, {in[0], in[1]});
                    },
                .inputs = {uniform({2, 3}, -1, 1), uniform({3, 2}, -1, 1, 5)},
                .ops = table}),
      doctest::Contains("gradient of weight (input 1) through the trace"), CheckFailure);
}

TEST_CASE("distinct values keep their gap") {
  const std::vector<double> v = distinct({4, 5}, 0.25).to_doubles();
  for (std::size_t i = 0; i < v.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK(std::abs(v[i] - v[j]) >= 0.25 - 1e-12);
}

}  // namespace check_op_test
