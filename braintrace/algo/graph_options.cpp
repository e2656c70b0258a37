// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/graph_options.h"

namespace braintrace {

CompileOptions graph_options(const Algorithm& algorithm, CompileOptions base) {
  const RecurrenceScope scope = algorithm.config.recurrence_scope();
  base.include_recurrent_mixing = scope != RecurrenceScope::diagonal;
  if (scope == RecurrenceScope::sparse_n) base.sparse_n = algorithm.config.sparse_n();
  base.snap_max_jacobian_elements = algorithm.options.snap_max_jacobian_elements;
  base.include_hidden_perturb &= algorithm.vjp_method == VjpMethod::single_step;
  return base;
}

}  // namespace braintrace
