// SPDX-License-Identifier: Apache-2.0
// The compiler's own check of what its cuts leave.
#include "braintrace/etrace/verify_locality.h"

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/testing/micro_model.h"

namespace verify_locality_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

using Function = std::function<Value(const Value& constant, const Value& moving)>;

Graph program_of(const Function& f) {
  const auto b = Builder::create();
  const Value c = b->input({DType::f64, {4}});
  const Value v = b->input({DType::f64, {4}});
  return b->finish(std::vector{f(c, v)});
}

// A group and a relation as the compiler makes them, to be spoilt.
struct Parts {
  HiddenGroup group;
  HiddenParamOpRelation relation;
};

Parts leaky_parts() {
  MicroModel m([](MicroModel& s, Value x) {
    s.set("h", 0.9 * s.h() + matmul(x, s.w()));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  const ETraceGraph g = m.compile();
  Parts p{g.hidden_groups[0], g.hidden_param_op_relations[0]};
  // States of the model are gone when this returns; only shapes and names are read.
  return p;
}

}  // namespace

TEST_CASE("what the compiler cut is position by position") {
  const Parts p = leaky_parts();
  verify_locality(p.group);
  verify_locality(p.relation);
}

TEST_CASE("a transition that mixes positions is found, with the op") {
  Parts p = leaky_parts();
  const auto check = [&](const Function& f, const char* op) {
    p.group.transition_program = program_of(f);
    CHECK_THROWS_WITH_AS(
        verify_locality(p.group),
        doctest::Contains(
            (std::string("the transition of group 0 [('h',)] mixes positions at ") + op)
                .c_str()),
        InternalError);
  };
  check([](const Value& c, const Value& h) { return c + 0.1 * sum(h); }, "reduce_sum");
  check([](const Value& c, const Value& h) { return c + roll(h, 1); }, "");
  check(
      [](const Value& c, const Value& h) {
        return matmul(h, reshape(c, {1, 4}) * ones({4, 4}, DType::f64));
      },
      "etp_mv");
  check([](const Value& c, const Value& h) { return c * softmax(h); }, "");
}

TEST_CASE("constants may mix as they like") {
  Parts p = leaky_parts();
  p.group.transition_program =
      program_of([](const Value& c, const Value& h) { return sum(c) * tanh(h); });
  verify_locality(p.group);
}

TEST_CASE("a tail that mixes positions is found; a dense one may") {
  Parts p = leaky_parts();
  p.relation.tails = {
      program_of([](const Value& c, const Value& y) { return c + roll(y, 1); })};
  CHECK_THROWS_WITH_AS(verify_locality(p.relation),
                       doctest::Contains("the tail of etp_mv(('w',)) to group 0 mixes"),
                       InternalError);
  p.relation.kind = RelationKind::dense;
  verify_locality(p.relation);
}

}  // namespace verify_locality_test
