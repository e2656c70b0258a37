// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/every_target.h"

#include "braintrace/array/simd_targets.h"
// Highway's headers read what simd_targets.h says.
#include <hwy/highway.h>
#include <hwy/targets.h>

namespace braintrace::testing {

void on_every_target(const std::function<void(const std::string& name)>& f) {
  const struct AllAgain {
    ~AllAgain() { hwy::SetSupportedTargetsForTest(0); }
  } all_again;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    f(hwy::TargetName(target));
  }
}

}  // namespace braintrace::testing
