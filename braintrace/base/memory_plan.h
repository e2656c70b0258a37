// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a learning rule will store, as plain data: one item per array.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braintrace {

struct MemoryItem {
  // "bwg" trace per weight entry, "kappa_filtered" its filtered twin, "x" and "df"
  // factors, "dense" full sensitivity, "s_tilde" and "theta_tilde" random projections,
  // "window" values kept for the reverse pass
  std::string kind;
  std::string owner;  // slash path of the parameter or hidden state
  std::string key;    // weight of the op: "weight", "bias"; "" for others
  std::int64_t relation = -1, group = -1;
  std::vector<std::int64_t> shape;
  std::string dtype;
  std::int64_t bytes = 0;
};

struct MemoryPlan {
  std::string algorithm;
  std::vector<MemoryItem> items;
  std::int64_t total_bytes() const;
  std::int64_t bytes_of(std::string_view kind) const;
};

// "64MB", "1.5 GiB", "4096": kB, MB, GB count in 1000, KiB, MiB, GiB in 1024; case does
// not matter. UserError on anything else.
std::int64_t parse_bytes(std::string_view text);
// "512 B", "1.5 kB", "64.0 MB": the largest unit of 1000 that gives at least 1.
std::string bytes_text(std::int64_t bytes);

}  // namespace braintrace
