// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/etrace_vmap.h"

#include <fmt/format.h>

namespace braintrace {
namespace {

LearnerOptions on_lanes(LearnerOptions o, std::int64_t lanes) {
  BT_REQUIRE(lanes >= 1, fmt::format("ETraceVmap: lanes must be >= 1, got {}", lanes));
  BT_REQUIRE(
      !o.batch_size || *o.batch_size == lanes,
      fmt::format("ETraceVmap: {} lanes, but a batch_size of {}", lanes, *o.batch_size));
  o.batch_size = lanes;
  o.vmap = true;
  return o;
}

}  // namespace

ETraceVmap::ETraceVmap(Module& model, const Algorithm& algorithm,
                       const std::vector<Array>& examples, std::int64_t lanes,
                       const LearnerOptions& options)
    : Learner(model, algorithm, examples, on_lanes(options, lanes)) {}

}  // namespace braintrace
