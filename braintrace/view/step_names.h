// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names people know for the inputs and outputs of a traced step.
#include <map>
#include <string>
#include <string_view>

#include "braintrace/model/step_model.h"

namespace braintrace::view {

// One state leaf: "rnn/W/weight[bias]"; a state with one bare array: "rnn/h".
std::string leaf_name(const StepState& s, std::size_t leaf);

// A word that C++ accepts as a name: "rnn/W/weight[bias]" -> "rnn_W_weight_bias".
std::string identifier(std::string_view text);

struct StepNames {
  std::map<ValueId, std::string> entry;  // arguments "x0" and state leaves, by input
  std::map<ValueId, std::string> exit;   // outputs "y0", written leaves "rnn/h at exit"
};
// A value that is both an output and a state at exit has the state's name.
StepNames step_names(const StepModel& step);

}  // namespace braintrace::view
