// SPDX-License-Identifier: Apache-2.0
#pragma once
// What becomes of every trainable parameter: exactly one verdict each, with its reason.
#include <string>
#include <vector>

#include "braintrace/etrace/relation.h"

namespace braintrace {

// direct:  traced, position by position
// dense:   traced with its full sensitivity
// local:   the exact gradient of the current step only
// refused: no gradient at all; compile fails unless on_refused = freeze
enum class Verdict { direct, dense, local, refused };
std::string_view to_string(Verdict v);

struct ParameterVerdict {
  Path path;
  Verdict verdict = Verdict::local;
  std::string reason;
};

// One per parameter of the model: those the step uses in retrieved order, then the others
// (local: nothing depends on them). Records parameter_local,
// parameter_refused and history_cut unless `weight_paths` is exclude (the reference is
// silent there). UserError not_supported names a refused parameter.
std::vector<ParameterVerdict> parameter_verdicts(
    const ModuleInfo& info, const std::vector<HiddenGroup>& groups,
    const std::vector<HiddenParamOpRelation>& relations, const CompileOptions& options,
    Diagnostics& diagnostics);

}  // namespace braintrace
