// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/learner_use.h"

#include <fmt/format.h>

#include "braintrace/base/error.h"

namespace braintrace {

LearnerUse::Claim::Claim(LearnerUse& use, std::string_view caller) : held_(&use) {
  BT_REQUIRE_KIND(!use.ended_.load(std::memory_order_relaxed), ErrorKind::runtime,
                  fmt::format("{}: the learner no longer exists", caller));
  const std::thread::id self = std::this_thread::get_id();
  std::thread::id found = {};
  if (use.inside_.compare_exchange_strong(found, self, std::memory_order_acquire)) return;
  BT_REQUIRE_KIND(found == self, ErrorKind::runtime,
                  fmt::format("{}: the learner is in use by another thread; one thread "
                              "at a time, or a learner for each",
                              caller));
  held_ = nullptr;
}

LearnerUse::Claim::~Claim() {
  if (held_) held_->inside_.store({}, std::memory_order_release);
}

}  // namespace braintrace
