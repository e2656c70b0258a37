// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

// h' = tanh(W h + x), y = h' h, with W captured.
Values recurrent(const Values& in, ScanOptions options) {
  const Value w = in[2];
  const ScanResult r = scan(
      [&](const Values& v) {
        const Value h = tanh(dot(v[0], w) + v[1]);
        return Values{h, h * v[0]};
      },
      {in[0]}, {in[1]}, options);
  return {r.carry[0], r.ys[0]};
}

TEST_CASE("scan") {
  const std::vector<Array> in = {uniform({2}, -1, 1), uniform({3, 2}, -1, 1, 2),
                                 uniform({2, 2}, -1, 1, 3)};
  check_op({.op = "scan",
            .build = [](const Values& v) { return recurrent(v, {}); },
            .inputs = in});
  check_op({.op = "scan",
            .build = [](const Values& v) { return recurrent(v, {.reverse = true}); },
            .inputs = in});
  check_op({.op = "scan",
            .build =
                [](const Values& v) {
                  return scan([](const Values& c) { return Values{c[0] * 2}; }, {v[0]},
                              {}, {.length = 3})
                      .carry;
                },
            .inputs = {uniform({2}, -1, 1)},
            .expect = {{{array({1, -2}, DType::f64)}, {array({8, -16}, DType::f64)}}}});
}

Values running_sum(const Array& xs, ScanOptions options) {
  const ScanResult r = scan(
      [](const Values& v) {
        const Value s = v[0] + v[1];
        return Values{s, s};
      },
      {scalar(0, DType::f64)}, {xs}, options);
  return {r.carry[0], r.ys[0]};
}

TEST_CASE("scan stacks what each step gives, in the order of the steps") {
  const Array xs = array({1, 2, 3}, DType::f64);
  CHECK(running_sum(xs, {})[1].array() == array({1, 3, 6}, DType::f64));
  CHECK(running_sum(xs, {.reverse = true})[1].array() == array({6, 5, 3}, DType::f64));
}

TEST_CASE("a scan of no steps returns its initial carry") {
  const Values r = running_sum(zeros({0}, DType::f64), {});
  CHECK(r[0].array() == scalar(0, DType::f64));
  CHECK(r[1].shape() == Shape{0});
}

TEST_CASE("scan carries integers beside floats") {
  const ScanResult r = scan(
      [](const Values& v) {
        return Values{v[0] + 1, v[1] * astype(v[0], DType::f64)};
      },
      {scalar(1, DType::i32), scalar(1, DType::f64)}, {}, {.length = 5});
  CHECK(r.carry[0].array() == scalar(6, DType::i32));
  CHECK(r.carry[1].array() == scalar(120, DType::f64));
}

TEST_CASE("scan refuses wrong bodies and lengths") {
  const auto same = [](const Values& v) { return v; };
  const Value x = scalar(0, DType::f64);
  CHECK_THROWS_WITH_AS(scan(same, {x}, {}), doctest::Contains("a length is needed"),
                       UserError);
  CHECK_THROWS_WITH_AS(scan(same, {x}, {x}), doctest::Contains("got a scalar"),
                       UserError);
  CHECK_THROWS_WITH_AS(scan(same, {x}, {zeros({2}), zeros({3})}),
                       doctest::Contains("length 2"), UserError);
  CHECK_THROWS_WITH_AS(scan([](const Values&) { return Values{}; }, {x}, {zeros({2})}),
                       doctest::Contains("1 carry values first, got 0"), UserError);
  CHECK_THROWS_WITH_AS(
      scan([](const Values&) { return Values{scalar(1)}; }, {x}, {zeros({2})}),
      doctest::Contains("carry output 0 must be f64[], got f32[]"), UserError);
}

TEST_CASE("a hostile scan text is refused") {
  const std::string head = "in %0:f32[2]\n%1:f32[] = scan {body={in %0:f32[] out %0}, ";
  const std::string tail = ", reverse=false} %0\nout %1\n";
  for (const char* bad :
       {"length=2, num_carry=-1, num_consts=0",
        "length=2, num_carry=9223372036854775807, num_consts=1",
        "length=-2, num_carry=0, num_consts=0", "length=3, num_carry=0, num_consts=0",
        "length=2, num_carry=1, num_consts=0", "length=2, num_carry=0, num_consts=1"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse(head + bad + tail), UserError);
  }
}

}  // namespace
}  // namespace braintrace
