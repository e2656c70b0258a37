// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/meet_in_passing.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/op_def.h"
#include "braintrace/ops/ops.h"
#include "braintrace/passes/dce.h"
#include "braintrace/testing/pass_check.h"

namespace meet_in_passing_test {

using namespace braintrace;
using braintrace::testing::written;

namespace {

// A sensitivity [states, rows, columns], its decay, what is added, and a signal.
const std::vector<Type> types = {{DType::f64, {3, 4, 8}},
                                 {DType::f64, {3, 1, 1}},
                                 {DType::f64, {3, 4, 8}},
                                 {DType::f64, {3}}};
const MeetInPassingOptions small{.min_size = 96, .min_row = 8, .min_left = 32};
const DotDims over_states{.lhs_contract = {0}, .rhs_contract = {0}};

// Does the product become a sum, with every value the same?
bool meets(const Graph& g, const MeetInPassingOptions& options = small) {
  const Graph after = dce(meet_in_passing(g, options));
  testing::check_same_values(g, after);
  return std::none_of(after.nodes().begin(), after.nodes().end(),
                      [](const Node& n) { return n.op->name == "dot_general"; });
}

Graph step(const std::function<Value(const Value& moved, const Value& signal)>& meet) {
  return written(types, [&](const Values& in) {
    const Value moved = in[0] * in[1];
    return Values{moved + in[2], meet(moved, in[3])};
  });
}

}  // namespace

TEST_CASE("a signal meets what a step moves in the same pass, from either side") {
  CHECK(meets(step([](const Value& moved, const Value& s) {
    return dot_general(moved, s, over_states);
  })));
  CHECK(meets(step([](const Value& moved, const Value& s) {
    return dot_general(s, moved, over_states);
  })));
}

TEST_CASE("axes of size one do not hide a signal") {
  CHECK(meets(step([](const Value& moved, const Value& s) {
    return dot_general(reshape(moved, {1, 3, 1, 4, 8}), reshape(s, {1, 3, 1}),
                       {.lhs_contract = {0, 1, 2}, .rhs_contract = {0, 1, 2}});
  })));
  CHECK(meets(step([](const Value& moved, const Value& s) {
    return dot_general(reshape(moved, {1, 3, 4, 8}), s,
                       {.lhs_contract = {1}, .rhs_contract = {0}});
  })));
}

TEST_CASE("several leading axes are met together, others are not") {
  const std::vector<Type> several = {{DType::f64, {2, 3, 4, 8}},
                                     {DType::f64, {2, 3, 1, 1}},
                                     {DType::f64, {2, 3, 4, 8}},
                                     {DType::f64, {2, 3}},
                                     {DType::f64, {3, 2}}};
  const auto of = [&](std::size_t signal, const DotDims& dims) {
    return written(several, [&](const Values& in) {
      const Value moved = in[0] * in[1];
      return Values{moved + in[2], dot_general(moved, in[signal], dims)};
    });
  };
  CHECK(meets(of(3, {.lhs_contract = {0, 1}, .rhs_contract = {0, 1}})));
  CHECK_FALSE(meets(of(4, {.lhs_contract = {0, 1}, .rhs_contract = {1, 0}})));
  CHECK_FALSE(meets(of(3, {.lhs_contract = {0}, .rhs_contract = {0}})));
}

TEST_CASE("a product stays where nobody goes through the large value, or it is small") {
  const auto product = [](const Value& v, const Value& s) {
    return dot_general(v, s, over_states);
  };
  CHECK_FALSE(meets(written(types, [&](const Values& in) {
    return Values{product(in[0], in[3]), in[0] + in[2]};  // nobody makes it
  })));
  CHECK_FALSE(meets(written(types, [&](const Values& in) {
    return Values{product(in[0] * in[1], in[3])};  // nobody else reads it
  })));
  CHECK_FALSE(meets(step(product), {.min_size = 97, .min_row = 8, .min_left = 32}));
  CHECK_FALSE(meets(step(product), {.min_size = 96, .min_row = 9, .min_left = 32}));
  CHECK_FALSE(meets(step(product), {.min_size = 96, .min_row = 8, .min_left = 33}));
  CHECK_FALSE(meets(step([](const Value& moved, const Value& s) {  // trailing axes
    return dot_general(transpose(moved, {1, 2, 0}), s,
                       {.lhs_contract = {2}, .rhs_contract = {0}});
  })));
}

}  // namespace meet_in_passing_test
