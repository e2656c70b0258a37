// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which thread is inside a learner, and whether the learner still exists. Handles keep it
// longer than the learner may live.
#include <atomic>
#include <string_view>
#include <thread>

namespace braintrace {

class LearnerUse {
 public:
  // Keeps other threads out while it lives. One thread may nest them.
  // UserError of kind runtime, naming `caller`, when another thread is inside or the
  // learner is gone.
  class Claim {
   public:
    Claim(LearnerUse& use, std::string_view caller);
    ~Claim();
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

   private:
    LearnerUse* held_;  // null inside another claim of this thread
  };

  void end() { ended_ = true; }

 private:
  std::atomic<std::thread::id> inside_ = {};
  std::atomic<bool> ended_ = false;
};

}  // namespace braintrace
