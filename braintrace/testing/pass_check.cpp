// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/pass_check.h"

#include <fmt/format.h>

#include "braintrace/array/rng.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ir/print.h"
#include "braintrace/run/interpreter.h"
#include "braintrace/testing/close.h"
#include "braintrace/transforms/vjp.h"

namespace braintrace::testing {
namespace {

std::vector<Array> random_inputs(const Graph& g, std::uint64_t seed) {
  std::vector<Array> inputs;
  for (const Type& t : g.input_types())
    inputs.push_back(random_uniform(rng_key(seed++), t.shape, -1, 2, t.dtype));
  return inputs;
}

}  // namespace

Graph written(const std::vector<Type>& inputs, const ValuesFn& body) {
  const auto b = Builder::create();
  Values values;
  for (const Type& t : inputs) values.push_back(b->input(t));
  return b->finish(body(values));
}

void check_same_values(const Program& before, const Graph& after) {
  const Graph& g = before.graph;
  if (g.input_types() != after.input_types() || g.output_types() != after.output_types())
    throw CheckFailure("the pass changed the signature of the program");
  const std::vector<Array> want = interpret(g, before.inputs);
  const std::vector<Array> got = interpret(after, before.inputs);
  for (std::size_t i = 0; i < want.size(); ++i)
    check_close(fmt::format("output {} of\n{}which was\n{}", i, print(after), print(g)),
                got[i], want[i], value_tolerance(want[i].dtype()));
}

void check_same_values(const Graph& before, const Graph& after, std::uint64_t seed) {
  check_same_values({before, random_inputs(before, seed)}, after);
}

void check_same_derivatives(const Graph& before, const Graph& after, std::uint64_t seed) {
  check_same_values(vjp(before), vjp(after), seed);
}

}  // namespace braintrace::testing
