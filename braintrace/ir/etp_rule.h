// SPDX-License-Identifier: Apache-2.0
#pragma once
// How an op with weights takes part in eligibility traces. The op is linear in its
// effective weights ("slots"); slots are the op's weight inputs, or what `effective`
// makes of them. Nothing here knows which algorithm is asking.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braintrace/array/index_list.h"
#include "braintrace/ir/type.h"

namespace braintrace {

struct Signature;
struct Site;
class Value;

// Which position of y the entries along one trace axis drive.
struct AnchorAxis {
  std::int64_t y_axis = -1;  // -1: entries along this axis share one y position
  IndexList index = {};      // entry k drives position index[k]; empty = k
};
using Anchor = std::vector<AnchorAxis>;  // one per trace axis; every y axis appears once

struct WeightInput {
  std::string_view key;  // "weight", "bias", "lora_a", ...
  int input = 0;
};

// One-step dependency along the last axis: depends[p * size + q] = h_p may read h_q.
struct Adjacency {
  std::int64_t size = 0;
  std::vector<bool> depends;
};

struct EtpRule {
  int x = -1;                     // data input; -1 = none (element-wise)
  bool gradient_enabled = false;  // transparent on other ops' tails
  std::vector<WeightInput> (*weights)(const Signature&) = nullptr;
  // Effective weights as a program of the raw ones; null = the weight inputs themselves.
  std::vector<Value> (*effective)(const Site&) = nullptr;
  // Per slot: the trace of one state, without the state axis.
  Type (*trace)(const Signature&, int slot) = nullptr;
  Anchor (*anchor)(const Signature&, int slot) = nullptr;
  // d y[anchor(k)] / d slot_k * df[anchor(k)] for every trace entry k.
  Value (*instant)(const Site&, int slot, const Value& df) = nullptr;
  // Trace-shaped sum to slot shape; null = sum the leading axes the slot does not have.
  Value (*contract)(const Site&, int slot, const Value& trace) = nullptr;
  Value (*x_repr)(const Site&) = nullptr;        // what pp_prop filters; null = x
  bool (*anchored)(const Signature&) = nullptr;  // SnAp may use it; null = yes
  std::optional<Adjacency> (*adjacency)(const Signature&, std::int64_t size) = nullptr;
  // "etp_mv", "etp_mm", ... as graphs print it.
  std::string_view (*reference_name)(const Signature&) = nullptr;
};

}  // namespace braintrace
