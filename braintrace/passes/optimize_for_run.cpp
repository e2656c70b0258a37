// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/optimize_for_run.h"

#include "braintrace/passes/contract_sums.h"
#include "braintrace/passes/cse.h"
#include "braintrace/passes/dce.h"
#include "braintrace/passes/factor_sums.h"
#include "braintrace/passes/fuse_gates.h"
#include "braintrace/passes/hoist_accumulators.h"
#include "braintrace/passes/join_sums.h"
#include "braintrace/passes/meet_in_passing.h"
#include "braintrace/passes/narrow_uniform.h"
#include "braintrace/passes/outer_products.h"
#include "braintrace/passes/reuse_loop_values.h"
#include "braintrace/passes/scale_factors.h"
#include "braintrace/passes/slice_products.h"
#include "braintrace/passes/split_scan.h"
#include "braintrace/passes/split_states.h"
#include "braintrace/passes/spread_vectors.h"
#include "braintrace/passes/squeeze_axes.h"
#include "braintrace/passes/stretch_constants.h"
#include "braintrace/passes/sum_groups.h"
#include "braintrace/passes/turn_chains.h"
#include "braintrace/passes/unit_products.h"

namespace braintrace {

Graph optimize_for_run(const Graph& g, PassRunner& run) {
  Graph h = run("stretch_constants", stretch_constants, g);
  h = lower(h, {}, run);
  for (int axis = 0; axis < 2; ++axis) {  // vectors of states, and their blocks
    h = run("split_states", split_states, h);
    h = optimize(h, run);
  }
  h = run(
      "narrow_uniform", [](const Graph& x) { return narrow_uniform(x); }, h);
  h = run("slice_products", slice_products, h);
  h = run("unit_products", unit_products, h);
  h = run("scale_factors", scale_factors, h);
  h = run("dce", dce, h);
  h = run(
      "hoist_accumulators", [](const Graph& x) { return hoist_accumulators(x); }, h);
  h = run("reuse_loop_values", reuse_loop_values, h);
  h = run("dce", dce, h);  // what is no longer computed keeps no stacked value
  h = run(
      "split_scan", [](const Graph& x) { return split_scan(x); }, h);
  h = run("dce", dce, h);  // what a later loop no longer reads, an earlier one drops
  h = run(
      "split_scan", [](const Graph& x) { return split_scan(x); }, h);
  h = run("dce", dce, h);
  h = run("sum_groups", sum_groups, h);
  h = run("contract_sums", contract_sums, h);
  h = run("spread_vectors", spread_vectors, h);
  h = run("outer_products", outer_products, h);
  h = run("cse", cse, h);  // factors in common are one value, and read by what is left
  h = run("dce", dce, h);
  h = run("factor_sums", factor_sums, h);
  h = run(
      "join_sums", [](const Graph& x) { return join_sums(x); }, h);
  h = run("dce", dce, h);
  h = run(
      "fuse_gates", [](const Graph& x) { return fuse_gates(x); }, h);
  h = run("squeeze_axes", squeeze_axes, h);
  h = optimize(h, run);
  h = run(
      "meet_in_passing", [](const Graph& x) { return meet_in_passing(x); }, h);
  h = run("dce", dce, h);
  const Graph turned = run("turn_chains", turn_chains, h);
  if (turned.nodes().size() == h.nodes().size()) return h;  // nothing was moved
  return optimize(turned, run);
}

Graph optimize_for_run(const Graph& g) {
  PassRunner run;
  return optimize_for_run(g, run);
}

}  // namespace braintrace
