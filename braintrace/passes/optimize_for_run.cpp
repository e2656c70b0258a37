// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/optimize_for_run.h"

#include "braintrace/passes/contract_sums.h"

namespace braintrace {

Graph optimize_for_run(const Graph& g, PassRunner& run) {
  Graph h = lower(g, {}, run);
  h = run("contract_sums", contract_sums, h);
  return optimize(h, run);
}

Graph optimize_for_run(const Graph& g) {
  PassRunner run;
  return optimize_for_run(g, run);
}

}  // namespace braintrace
