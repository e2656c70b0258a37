// SPDX-License-Identifier: Apache-2.0
// The memory plan against the traces a learner really holds.
#include <doctest/doctest.h>

#include "braintrace/algo/memory_plan.h"
#include "braintrace/testing/online_trial.h"

namespace trace_bytes_test {

using namespace braintrace;
using namespace braintrace::testing;

TEST_CASE("learners hold as many bytes of traces as their plan says") {
  const std::string gru =
      R"({"kind": "layer", "class": "GRUCell", "args": {"in_size": 3, "out_size": 4}})";
  const std::string lstm =
      R"({"kind": "layer", "class": "LSTMCell", "args": {"in_size": 3, "out_size": 4}})";
  const std::string tied = R"({"kind": "tied", "n_rec": 4})";
  const std::vector<Algorithm> rules = {D_RTRL{},        EProp{.kappa_filter_decay = 0.5},
                                        OSTLRecurrent{}, SnAp{.n = 2},
                                        UORO{},          ExactRTRL{}};
  for (const std::string& model : {gru, lstm, tied})
    for (const std::optional<std::int64_t> batch : {std::optional<std::int64_t>{}, {2}})
      for (const Algorithm& a : rules) {
        CAPTURE(model);
        CAPTURE(a.name);
        const OnlineTrial t{
            .model = model, .input = {model == tied ? 4 : 3}, .batch_size = batch};
        const auto m = t.build();
        const Learner l = t.learner(*m, a);
        std::int64_t bytes = 0;
        for (const TraceView& v : l.etraces())
          if (v.slot.kind != "key")
            bytes += v.value.size() * static_cast<std::int64_t>(size_of(v.value.dtype()));
        CHECK(bytes > 0);
        CHECK(memory_plan(l.graph(), a).total_bytes() == bytes);
      }
}

}  // namespace trace_bytes_test
