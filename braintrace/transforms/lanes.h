// SPDX-License-Identifier: Apache-2.0
#pragma once
// Many directions at once, on values of a program under construction.
#include "braintrace/ops/batch.h"

namespace braintrace {

// fn for every entry along axis 0 of `lanes`; results have the lanes in front. fn gets
// one lane, and may use any other value: those are shared by all lanes.
Values on_lanes(const Values& lanes, const ValuesFn& fn);

// [n, *t.shape]: lane i is the i-th unit vector.
Array unit_vectors(const Type& t);

// d output / d input of a program at these inputs, input axes in front: one result per
// output, (*input, *output). Forward or reverse, whichever takes fewer lanes; forward
// through loops of unknown length.
Values sensitivities(const Graph& g, const Values& inputs, std::size_t input);
// The same for several inputs, in their order: those that go back share one sweep per
// output, and more of them do so.
std::vector<Values> sensitivities(const Graph& g, const Values& inputs,
                                  const std::vector<std::size_t>& wanted);

}  // namespace braintrace
