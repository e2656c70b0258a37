// SPDX-License-Identifier: Apache-2.0
#pragma once
// A program as one header without dependencies: a struct with every array it needs and
// one function that runs a step, learning included. No heap, no exceptions, no library
// but libm (docs/export.md).
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braintrace/ir/graph.h"

namespace braintrace {

enum class ExportLanguage { cpp17, c99 };
std::string_view to_string(ExportLanguage language);

// One input or output of the program.
struct ExportPort {
  // Inputs are argument, state, trace or parameter. A state, trace or parameter among the
  // outputs is the next value of the input of the same name and role. A gradient belongs
  // to the parameter of the same name. Output and loss are only there to be read.
  enum class Role { argument, state, trace, parameter, output, loss, gradient };
  std::string name;  // becomes a field: "rnn/W/weight" is rnn_W_weight
  Role role = Role::argument;
  std::optional<Array> initial = {};  // of inputs; zeros without it
};
std::string_view to_string(ExportPort::Role role);

// Whether a port of this name gets a field of exactly this name: an identifier that is no
// word of C, C++ or the header itself.
bool is_field_name(const std::string& name);

struct ExportSpec {
  std::string name = "learner";             // namespace (C++) or prefix (C)
  std::vector<ExportPort> inputs, outputs;  // as the program has them
  // Every step ends with parameter -= learning_rate * gradient. The header keeps it in a
  // field that may be changed between steps; 0 leaves the parameters alone until then.
  double learning_rate = 0;
};

// Sums run in the element type of the program, so f32 results differ from the library's
// (which sums in f64) by rounding. Arrays that are not needed at the same time share
// memory. Needs: calls inlined, branches and loops of known length rewritten
// (passes/pipeline.h). UserError: ports that do not fit the program, names that give no
// identifier; not_supported naming the op: loops, branches, random numbers, bf16, ops
// without a lowering.
std::string export_header(const Graph& g, const ExportSpec& spec,
                          ExportLanguage language = ExportLanguage::cpp17);

}  // namespace braintrace
