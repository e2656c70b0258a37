// SPDX-License-Identifier: Apache-2.0
// Windows of factored traces for every kind of trainable op, against single steps.
#include <doctest/doctest.h>

#include "braintrace/algo/algorithm_aliases.h"
#include "braintrace/testing/online_trial.h"

namespace window_ops_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

struct OpCase {
  std::string model;
  Shape input;
  std::string leaf;  // one that must learn
};

std::vector<OpCase> op_cases() {
  return {{R"({"kind": "leaky_rnn", "n_in": 3, "n_rec": 5, "n_out": 2})", {3}, "p/w"},
          {R"({"kind": "elemwise_decay", "n_in": 3, "n_rec": 5})", {3}, "a"},
          {R"({"kind": "elemwise_fn", "n_rec": 5})", {5}, "b"},
          {R"({"kind": "einsum_rnn", "n_in": 3, "n_rec": 4, "heads": 2})", {2, 3}, "w"},
          {R"({"kind": "einsum_dense", "n_in": 3, "n_rec": 4})", {3}, "w"},
          {R"({"kind": "grouped_rnn", "n_in": 3, "n_rec": 4, "groups": 2})", {2, 3}, "b"},
          {R"({"kind": "lora_rnn", "n_in": 3, "n_rec": 5})", {3}, "A"},
          {R"({"kind": "leaky_sparse_ring", "n_in": 2, "n_rec": 3, "constants":
               {"csr_dense_mask": {"shape": [3, 3], "data": [1, 1, 0, 0, 1, 1, 1, 0, 1]}}})",
           {2},
           "w"},
          {R"({"kind": "conv_rec", "dims": 1, "size": 6, "c_in": 2, "c_h": 3})",
           {6, 2},
           "ci/weight/weight"},
          {R"({"kind": "weight_fn_bias", "n_in": 3, "n_rec": 4})", {3}, "w"},
          {R"({"kind": "two_state", "n_in": 3, "n_rec": 4})", {3}, "w"}};
}

void check_windows(const OpCase& c, const Algorithm& algorithm,
                   LearningOptions learning) {
  CAPTURE(c.model);
  OnlineTrial t{
      .model = R"({"model": )" + c.model + "}", .input = c.input, .batch_size = 2};
  t.steps = 7;
  t.options.learning = learning;
  const StateDict want = t.online(algorithm);
  CHECK(largest(want, c.leaf) > 1e-4);
  for (const std::int64_t window : {2, 7}) {
    CAPTURE(window);
    t.window = window;
    CHECK(relative_distance(t.online(algorithm), want) < 1e-11);
  }
}

}  // namespace

TEST_CASE("windows of pp_prop give the numbers of steps for every trainable op") {
  for (const OpCase& c : op_cases())
    check_windows(c, pp_prop{.decay_or_rank = DecayOrRank(0.9, 0.6)}, {});
}

TEST_CASE("so do windows of the published rule, of one filter, and of none") {
  const OpCase c = op_cases().front();
  check_windows(c, pp_prop{.decay_or_rank = 0.8}, {.newest = Newest::trace});
  check_windows(c, pp_prop{.decay_or_rank = DecayOrRank(0.9, 0.0)}, {});
  check_windows(c, pp_prop{.decay_or_rank = DecayOrRank(0.0, 0.9)}, {});
  check_windows(c, pp_prop{.decay_or_rank = 0.8},
                {.bias_correction = BiasCorrection::calls});
}

}  // namespace window_ops_test
