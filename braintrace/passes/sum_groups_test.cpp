// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/sum_groups.h"

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/op_def.h"
#include "braintrace/ops/ops.h"
#include "braintrace/passes/dce.h"
#include "braintrace/testing/pass_check.h"

namespace sum_groups_test {

using namespace braintrace;
using braintrace::testing::check_same_values;
using braintrace::testing::written;

namespace {

// Three groups of two channels each, two outputs a group.
const std::vector<Type> types = {{DType::f64, {1, 5, 4, 6}}, {DType::f64, {4, 3, 2, 6}}};
const ConvGeometry geometry{{1, 1}, {1, 0}, {1, 1}, {1, 1}, {1, 1}, 3};

// Groups of the convolutions that are left, with every value the same.
std::vector<std::int64_t> groups_left(const ValuesFn& f) {
  const Graph g = written(types, f), after = dce(sum_groups(g));
  check_same_values(g, after);
  std::vector<std::int64_t> groups;
  for (const Node& n : after.nodes())
    if (n.op->name == "conv_general") groups.push_back(n.attrs.integer("groups"));
  return groups;
}

using Groups = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a sum over the groups of a convolution is one convolution") {
  CHECK(groups_left([](const Values& in) {
          const Value y = conv_general(in[0], in[1], geometry);  // [1,4,3,6]
          return Values{sum(reshape(y, {1, 4, 3, 3, 2}), {.axes = {3}})};
        }) == Groups{1});
  CHECK(groups_left([](const Values& in) {
          const Value y = conv_general(in[0], in[1], geometry);
          return Values{
              sum(transpose(reshape(y, {1, 4, 3, 3, 2}), {3, 1, 2, 0, 4}), {.axes = {0}}),
          };
        }) == Groups{1});
}

TEST_CASE("other axes may be summed with the groups") {
  CHECK(groups_left([](const Values& in) {
          const Value y = conv_general(in[0], in[1], geometry);
          return Values{sum(reshape(y, {1, 4, 3, 3, 2}), {.axes = {1, 3}})};
        }) == Groups{1});
}

TEST_CASE("groups that are not summed, split otherwise or read by others stay") {
  CHECK(groups_left([](const Values& in) {
          const Value y = conv_general(in[0], in[1], geometry);
          return Values{sum(reshape(y, {1, 4, 3, 3, 2}), {.axes = {4}})};
        }) == Groups{3});
  CHECK(groups_left([](const Values& in) {
          const Value y = conv_general(in[0], in[1], geometry);
          return Values{sum(reshape(y, {1, 4, 3, 2, 3}), {.axes = {3}})};
        }) == Groups{3});
  CHECK(groups_left([](const Values& in) {
          const Value y = conv_general(in[0], in[1], geometry);
          return Values{y, sum(reshape(y, {1, 4, 3, 3, 2}), {.axes = {3}})};
        }) == Groups{3});
}

}  // namespace sum_groups_test
