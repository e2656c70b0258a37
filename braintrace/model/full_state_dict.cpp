// SPDX-License-Identifier: Apache-2.0
#include "braintrace/model/full_state_dict.h"

#include <fmt/format.h>

namespace braintrace {
namespace {

constexpr std::size_t kShown = 5;

// "'a', 'b' and 3 more" of the names in `of` that `in` does not have; empty for none.
std::string names_missing(const StateDict& of, const StateDict& in) {
  std::string shown;
  std::size_t count = 0;
  for (const auto& [name, value] : of) {
    if (in.contains(name)) continue;
    if (++count <= kShown) shown += fmt::format("{}'{}'", count > 1 ? ", " : "", name);
  }
  return count <= kShown ? shown : fmt::format("{} and {} more", shown, count - kShown);
}

}  // namespace

void load_full_state_dict(Module& m, const StateDict& values) {
  const StateDict own = state_dict(m);
  const std::string missing = names_missing(own, values);
  const std::string surplus = names_missing(values, own);
  BT_REQUIRE(missing.empty() && surplus.empty(),
             fmt::format("load_state_dict: {}{}{}{}{}",
                         missing.empty() ? "" : "there is no value for ", missing,
                         missing.empty() || surplus.empty() ? "" : ", and ",
                         surplus.empty() ? "" : "the model has no state ", surplus));
  load_state_dict(m, values);
}

}  // namespace braintrace
