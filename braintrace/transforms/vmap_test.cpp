// SPDX-License-Identifier: Apache-2.0
#include "braintrace/transforms/vmap.h"

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/derivatives.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace::vmap_test {
namespace {

using testing::check_lanes;
using testing::traced;
using testing::uniform;

Values cell(const Values& in) {
  return {tanh(dot(in[0], in[1]) + in[2]), sum(in[2] * in[2])};
}

TEST_CASE("lanes agree with a loop for every choice of batched inputs") {
  const std::vector<Array> one = {uniform({4}, -1, 1), uniform({4, 2}, -1, 1, 2),
                                  uniform({2}, -1, 1, 3)};
  const std::vector<Array> many = {uniform({3, 4}, -1, 1), uniform({3, 4, 2}, -1, 1, 2),
                                   uniform({3, 2}, -1, 1, 3)};
  const Graph g = traced(cell, one);
  for (unsigned choice = 1; choice < 8; ++choice) {
    std::vector<Array> in;
    std::vector<bool> batched;
    for (unsigned i = 0; i < 3; ++i) {
      batched.push_back((choice >> i & 1) != 0);
      in.push_back(batched[i] ? many[i] : one[i]);
    }
    CAPTURE(choice);
    check_lanes(g, in, batched);
  }
}

TEST_CASE("lanes may stand at any axis of inputs and outputs") {
  const std::vector<Array> one = {uniform({2, 3}, -1, 1), uniform({2, 3}, -1, 1, 2)};
  const Graph g = traced([](const Values& v) { return Values{v[0] - v[1]}; }, one);
  const Graph lanes = vmap(g, 5, {.in_axes = {2, 0}, .out_axes = {-2}});
  CHECK(lanes.input_types()[0].shape == Shape{2, 3, 5});
  CHECK(lanes.output_types()[0].shape == Shape{2, 5, 3});
  const Array a = uniform({2, 3, 5}, -1, 1), b = uniform({5, 2, 3}, -1, 1, 2);
  const Array y = eval_graph(lanes, std::vector<Array>{a, b})[0];
  CHECK(y.at(1 * 15 + 4 * 3 + 2) == a.at(1 * 15 + 2 * 5 + 4) - b.at(4 * 6 + 1 * 3 + 2));
}

TEST_CASE("an element-wise op keeps the common place of its lanes") {
  const std::vector<Array> one = {uniform({2}, -1, 1)};
  const Graph g = traced([](const Values& v) { return Values{tanh(v[0])}; }, one);
  const Graph lanes = vmap(g, 5, {.in_axes = {1}, .out_axes = {1}});
  const auto builder = Builder::create();
  const Values x = {builder->input({DType::f64, {2, 5}})};
  const std::vector<BatchAxis> axes = {1};
  CHECK(batch_graph(g, x, axes).axes[0] == BatchAxis(1));
}

TEST_CASE("an output that does not depend on the lanes is stretched") {
  const std::vector<Array> one = {scalar(1, DType::f64), scalar(2, DType::f64)};
  const Graph g = traced([](const Values& v) { return Values{exp(v[1])}; }, one);
  CHECK(vmap(g, 4, {.in_axes = {0, std::nullopt}}).output_types()[0].shape == Shape{4});
}

TEST_CASE("lanes of different number are refused") {
  const std::vector<Array> one = {uniform({2}, -1, 1), uniform({2}, -1, 1)};
  const Graph g = traced([](const Values& v) { return Values{v[0] + v[1]}; }, one);
  const Values in = {uniform({3, 2}, -1, 1), uniform({4, 2}, -1, 1)};
  const std::vector<BatchAxis> axes = {0, 0};
  CHECK_THROWS_WITH_AS(batch_graph(g, in, axes), doctest::Contains("got 3 and 4"),
                       UserError);
  CHECK_THROWS_WITH_AS(vmap(g, -1), doctest::Contains("got -1"), UserError);
  CHECK_THROWS_WITH_AS(vmap(g, 2, {.in_axes = {0}}), doctest::Contains("1 in_axes"),
                       UserError);
}

std::vector<Type> infer_same(std::span<const Type> in, const Attrs&) { return {in[0]}; }
const OpDef opaque_op = {.name = "opaque", .infer = infer_same};

TEST_CASE("an op without a batch rule is refused by name") {
  const auto builder = Builder::create();
  const Values x = {builder->input({DType::f64, {2}})};
  const Graph g = builder->finish(builder->record(opaque_op, x, {}));
  CHECK_THROWS_WITH_AS(vmap(g, 2), doctest::Contains("opaque: no batch rule"), UserError);
}

}  // namespace
}  // namespace braintrace::vmap_test
