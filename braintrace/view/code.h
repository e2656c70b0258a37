// SPDX-License-Identifier: Apache-2.0
#pragma once
// Any program as plain C++-like code that a person can read: one assignment per value
// that matters, single-use values written in place, sub-programs as lambdas. Every op
// prints by its own template (OpDef::code):
//   $0, $1   inputs       $*      the inputs that the template does not name
//   {axis}   attributes   (sub-graphs become lambdas)
#include <map>
#include <string>

#include "braintrace/model/step_model.h"

namespace braintrace {

struct CodeOptions {
  std::string function = "f";
  std::map<ValueId, std::string> names = {};     // any value; made unique words
  std::map<ValueId, std::string> comments = {};  // of inputs
  std::size_t inline_width = 48;  // longest expression written in place; 0 = none
  // What is returned; default: the outputs.
  std::optional<std::vector<ValueId>> returns = {};
};

std::string to_code(const Graph& g, const CodeOptions& options = {});
// Inputs carry the names of arguments and states; returned are the outputs and the states
// the step writes (named ..._next).
std::string to_code(const StepModel& step);

}  // namespace braintrace
