// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/subgraph.h"

#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"

namespace braintrace::subgraph_test {
namespace {

const char* const kProgram = R"(
in %0:f64[] %1:f64[]
%2:f64[] = constant {value=f64[](2)}
%3:f64[] = mul %0 %2
%4:f64[] = tanh %1
%5:f64[] = add %3 %4
%6:f64[] = exp %5
out %5 %6
)";

TEST_CASE("depends_on marks the seeds and what is computed from them") {
  const std::vector<ValueId> seeds = {{1}};
  CHECK(depends_on(parse(kProgram), seeds) ==
        std::vector<bool>{false, true, false, false, true, true, true});
}

TEST_CASE("a subgraph starts at the values given and holds only what is needed") {
  const std::vector<ValueId> in = {{3}, {1}}, out = {{5}};
  CHECK(print(subgraph(parse(kProgram), in, out)) ==
        "in %0:f64[] %1:f64[]\n%2:f64[] = tanh %1\n%3:f64[] = add %0 %2\nout %3\n");
}

TEST_CASE("a subgraph copies the constants it reads") {
  const std::vector<ValueId> in = {{0}}, out = {{3}};
  CHECK(subgraph(parse(kProgram), in, out).nodes().size() == 2);
}

TEST_CASE("a subgraph may give back its inputs") {
  const std::vector<ValueId> in = {{4}}, out = {{4}, {4}};
  CHECK(print(subgraph(parse(kProgram), in, out)) == "in %0:f64[]\nout %0 %0\n");
}

TEST_CASE("a subgraph that lacks an input is our bug") {
  const std::vector<ValueId> in = {{0}}, out = {{5}};
  CHECK_THROWS_AS(subgraph(parse(kProgram), in, out), InternalError);
}

}  // namespace
}  // namespace braintrace::subgraph_test
