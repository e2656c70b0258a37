// SPDX-License-Identifier: Apache-2.0
#pragma once
// How good online gradients are on the user's own data, as plain data: made by `train`,
// drawn by `view`.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braintrace {

// One leaf of a parameter.
struct CertificateRow {
  std::string parameter;  // slash path of the leaf
  std::string verdict;    // "exact", "approximate", "local" or "refused"
  std::string because;    // why
  double cosine = 0;      // to back-propagation through time; 0 when either is zero
  double error = 0;       // |online - bptt| / |bptt|, Euclidean; 0 when both are zero
  double norm = 0;        // of the online gradient
  double bptt_norm = 0;   // of the other one; 0: no credit reaches the parameter
  double trace_max = 0;   // largest entry of its traces afterwards; 0 without traces
  // Both gradients are zero up to rounding: neither norm is above 1e-13 (elements of f64;
  // else 1e-6) of the largest |bptt| of a row. What is left of terms that cancel, as for
  // a bias in front of a batch norm, is no error: cosine and error are 0. Anything larger
  // is judged by itself, however small beside the others.
  bool zero = false;
};

// A silent network proves nothing.
struct CertificateState {
  std::string state;                // slash path
  double largest = 0;               // |h| over all steps
  double change = 0;                // root mean square of h_t - h_{t-1}
  std::optional<double> rate = {};  // spiking neurons: share of units that fire in a step
};

struct CertificateData {
  std::string algorithm, history;  // "D_RTRL", "direct"
  std::int64_t steps = 0, window = 0;
  double loss = 0;    // mean over steps
  double cosine = 0;  // of all leaves joined
  double error = 0;
  std::vector<CertificateRow> rows;      // by path
  std::vector<CertificateState> states;  // in the order of the step
  // What makes the comparison say little: no credit, silent neurons, dead parameters.
  std::vector<std::string> warnings;

  // Every exact row is as close as `tolerance` and nothing was refused.
  bool holds(double tolerance) const;
};

}  // namespace braintrace
