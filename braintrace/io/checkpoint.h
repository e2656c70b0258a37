// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything a run needs to go on bit for bit, in one safetensors file with a manifest
// and a hash of the content (docs/checkpoints.md). Knows nothing of learners: `train`
// fills the groups.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "braintrace/array/rng.h"
#include "braintrace/io/atomic_file.h"

namespace braintrace {

struct Checkpoint {
  using Group = std::map<std::string, Array>;
  Group weights, states, traces, optimizer;
  std::int64_t step = 0;              // steps of the optimiser so far
  std::map<std::string, RngKey> rng;  // keys that live outside the states
  std::string model = "null";         // JSON: how to build the model again
  std::string config = "null";        // JSON: algorithm, options, task, ...

  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

// JSON texts come back in one normal form: no spaces, keys sorted.
// UserError when a text is not JSON or UTF-8, or step is negative.
std::string to_bytes(const Checkpoint& c);
void save_checkpoint(const std::string& path, const Checkpoint& c,
                     const AtomicFileOptions& options = {});

// All or nothing. UserError, naming `name` and the rule, on anything that
// parse_safetensors refuses, a missing or malformed manifest, another version of the
// format, an array outside the four groups, or content that does not have the stored
// hash.
Checkpoint parse_checkpoint(std::string_view bytes,
                            const std::string& name = "checkpoint");
Checkpoint load_checkpoint(const std::string& path);

}  // namespace braintrace
