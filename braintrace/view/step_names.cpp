// SPDX-License-Identifier: Apache-2.0
#include "braintrace/view/step_names.h"

#include <cctype>

#include <fmt/format.h>

namespace braintrace::view {

std::string leaf_name(const StepState& s, std::size_t leaf) {
  const std::string& key = s.state->spec(leaf).key;
  return to_slashes(s.path) + (key.empty() ? "" : "[" + key + "]");
}

std::string identifier(std::string_view text) {
  std::string out;
  for (char c : text) {
    const bool letter = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (letter)
      out += c;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out = "s" + out;
  return out;
}

StepNames step_names(const StepModel& step) {
  StepNames names;
  const auto inputs = step.program.inputs(), outputs = step.program.outputs();
  for (std::size_t i = 0; i < step.num_args; ++i)
    names.entry[inputs[i]] = fmt::format("x{}", i);
  for (const StepState& s : step.states) {
    for (std::size_t i = 0; i < s.in.size(); ++i) {
      names.entry[s.in[i]] = leaf_name(s, i);
      if (s.written) names.exit.emplace(s.out[i], leaf_name(s, i) + " at exit");
    }
  }
  for (std::size_t i = 0; i < step.num_outputs; ++i)
    names.exit.emplace(outputs[i], fmt::format("y{}", i));
  return names;
}

}  // namespace braintrace::view
