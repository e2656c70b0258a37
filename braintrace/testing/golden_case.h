// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recorded runs of the reference: one JSON file per case, format in
// tests/goldens/README.md.
#include <optional>
#include <string>
#include <vector>

#include "braintrace/model/module.h"

namespace braintrace::testing {

enum class GoldenMode {
  none,   // one sample
  batch,  // a leading batch axis in every state, one program
  vmap    // the one-sample program on `batch` lanes
};

struct GoldenExpected {
  Array outputs;              // [T, ...]
  Array losses;               // [T], not masked
  StateDict final_hidden;     // by path
  StateDict hidden_per_step;  // [T, ...] after each step; chunked: after each window
  StateDict grad_sum;         // of the recorded algorithm
  StateDict bptt_grad_sum;    // empty: not recorded
  std::optional<double> objective = {};   // the masked losses, summed
  std::optional<double> spike_rate = {};  // over neurons and steps
};

struct GoldenCase {
  std::string name;
  std::string text;  // the whole file; build_model understands it
  std::string kind;  // of the model
  std::string algorithm;
  GoldenMode mode = GoldenMode::none;
  std::optional<std::int64_t> batch = {};
  std::int64_t steps = 0;
  std::optional<std::int64_t> chunk_size = {};
  std::vector<double> mask;  // one factor per step
  std::string loss;          // "mse" or "softmax_xent"
  StateDict weights, initial_states;
  Array inputs, targets;  // [T, ...], with the batch axis second in batch and vmap mode
  GoldenExpected expected;
};

// UserError names the field that is missing or malformed.
GoldenCase parse_golden(const std::string& name, const std::string& text);

enum class GoldenKind { golden_case, algorithm_table, malformed, other };
// What a text is: a case (has `expected`), the table of algorithms (has `models`), no
// JSON at all, or some other JSON.
GoldenKind classify_golden(const std::string& text);

}  // namespace braintrace::testing
