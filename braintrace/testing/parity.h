// SPDX-License-Identifier: Apache-2.0
#pragma once
// Replays recorded runs and says how far our numbers are from them.
#include <string>
#include <string_view>
#include <vector>

#include "braintrace/testing/golden_case.h"

namespace braintrace::testing {

// One compared array. `error` is max|a - b| / max|b| (over 1e-12 at least); `share` is
// the largest |a - b| as a share of what is allowed, so above 1 means failed.
struct FieldError {
  std::string field;
  double error = 0;
  double share = 0;
};

struct ParityResult {
  std::string name;
  std::string failure;  // why the case could not be compared; empty: it was
  std::vector<FieldError> fields;

  const FieldError* worst() const;  // largest share; null without fields
  bool passed() const;              // compared, and every share is at most 1
};

struct Tolerance {
  double relative = 1e-5, absolute = 1e-6;  // |a - b| <= relative max|b| + absolute
};
FieldError compare(const std::string& field, const Array& got, const Array& want,
                   Tolerance tolerance);

struct ParityOptions {
  DType dtype = DType::f64;
  bool rule = true;  // also gradients per call, traces and index of the recorded rule
};
// Outputs, losses, hidden states, gradients by back-propagation through time, the
// compiled graph and the learning rule in compat mode, as far as the case holds them.
// Never throws on a bad case: `failure` says what was wrong.
ParityResult check_case(const std::string& name, const std::string& text,
                        const ParityOptions& options = {});

// Every case of an algorithm table: {"models": {name: {params, xs, ys, cases}}}.
std::vector<ParityResult> check_algorithm_table(const std::string& name,
                                                const std::string& text,
                                                const ParityOptions& options = {});

// "ok   name  1.2e-07 outputs", or "FAIL name  <why>". Verbose: one line per field more.
std::string describe(const ParityResult& r, bool verbose);

}  // namespace braintrace::testing
