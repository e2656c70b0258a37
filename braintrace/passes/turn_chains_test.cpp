// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/turn_chains.h"

#include <doctest/doctest.h>

#include "braintrace/ops/ops.h"
#include "braintrace/passes/pipeline.h"
#include "braintrace/testing/pass_check.h"

namespace turn_chains_test {

using namespace braintrace;
using braintrace::testing::written;

namespace {

const Type matrix{DType::f64, {3, 4}}, vector{DType::f64, {4}};

Graph checked(const Graph& g) {
  const Graph after = optimize(turn_chains(g));
  testing::check_same_values(g, after);
  return after;
}

std::ptrdiff_t count(const Graph& g, std::string_view op) {
  return std::count_if(g.nodes().begin(), g.nodes().end(),
                       [&](const Node& n) { return n.op->name == op; });
}

Value columns(const Value& v) { return broadcast_to(expand_dims(v, 1), {4, 3}); }

}  // namespace

TEST_CASE("work on a turned matrix that is read turned is done as the matrix lies") {
  const Graph g = written({matrix, vector}, [](const Values& in) {
    const Value y = tanh(transpose(in[0], {1, 0}) * columns(in[1]));
    return Values{exp(transpose(y, {1, 0}))};
  });
  const Graph after = checked(g);
  const auto turns_matrix = [](const Graph& program) {
    const auto& nodes = program.nodes();
    return std::any_of(nodes.begin(), nodes.end(), [&](const Node& n) {
      return n.op->name == "transpose" && n.inputs[0] == program.inputs()[0];
    });
  };
  CHECK(turns_matrix(g));
  CHECK_FALSE(turns_matrix(after));
  CHECK(count(after, "tanh") == 1);
}

TEST_CASE("readers that turn the same way under other shapes share the work") {
  const Graph g = written({matrix, vector}, [](const Values& in) {
    const Value y = transpose(in[0], {1, 0}) * columns(in[1]);
    const Value other = transpose(reshape(y, {1, 4, 1, 3}), {3, 0, 2, 1});
    return Values{exp(transpose(y, {1, 0})), tanh(other)};
  });
  CHECK(count(checked(g), "mul") == 1);
}

TEST_CASE("work somebody reads as it is stays") {
  const auto kept = [](const Graph& g) {
    return print(optimize(turn_chains(g))) == print(optimize(g));
  };
  CHECK(kept(written({matrix, vector}, [](const Values& in) {
    const Value y = transpose(in[0], {1, 0}) * columns(in[1]);
    return Values{exp(transpose(y, {1, 0})), tanh(y)};
  })));
  CHECK(kept(written({matrix, vector}, [](const Values& in) {
    const Value y = transpose(in[0], {1, 0}) * columns(in[1]);
    return Values{exp(transpose(y, {1, 0})), y};
  })));
}

TEST_CASE("an operand that lies in the order of the result keeps the work where it is") {
  const Type turned{DType::f64, {4, 3}};
  const Graph g = written({matrix, turned}, [](const Values& in) {
    return Values{exp(transpose(transpose(in[0], {1, 0}) * in[1], {1, 0}))};
  });
  CHECK(print(turn_chains(g)) == print(g));
}

TEST_CASE("axes of size 1 do not make a turn") {
  const Graph g = written({{DType::f64, {1, 4}}}, [](const Values& in) {
    return Values{exp(transpose(tanh(transpose(in[0], {1, 0})), {1, 0}))};
  });
  CHECK(print(turn_chains(g)) == print(g));
}

TEST_CASE("work in the body of a loop is moved too") {
  const Graph g = written({matrix, vector}, [](const Values& in) {
    const auto body = [](const Values& c) {
      const Value y = transpose(c[0], {1, 0}) * columns(c[1]);
      return Values{tanh(transpose(y, {1, 0})), c[1]};
    };
    return scan(body, in, {}, {.length = 2}).carry;
  });
  testing::check_same_values(g, turn_chains(g));
  CHECK(print(turn_chains(g)) != print(g));
}

}  // namespace turn_chains_test
