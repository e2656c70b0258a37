// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers one watches while training; none of them is differentiated.
#include <map>
#include <string>

#include "braintrace/model/module.h"

namespace braintrace {

// Share of rows whose largest score stands at the label. scores (..., classes), labels
// i32 (...). A float scalar.
Value accuracy(const Value& scores, const Value& labels);
// The same for scores over time (T, ..., classes): the class with the largest mean score.
Value accuracy_over_time(const Value& scores, const Value& labels);

// Mean rate in Hz of spikes (0 or 1) recorded every dt ms. A float scalar.
Value firing_rate(const Value& spikes, double dt = 1);

// Cosine of the angle between two gradients, all leaves joined. UserError unless both
// have the same paths and shapes. A zero gradient gives 0.
double gradient_cosine(const StateDict& a, const StateDict& b);
// Leaf by leaf.
std::map<std::string, double> gradient_cosines(const StateDict& a, const StateDict& b);

}  // namespace braintrace
