// SPDX-License-Identifier: Apache-2.0
#pragma once
// How much memory the process held at most, as the system counts it.
#include <optional>

namespace braintrace::testing {

// Peak resident size since the last reset_peak(), in bytes; nullopt where the system does
// not tell.
std::optional<double> peak_bytes();
// False where the system does not let us, and under sanitizers.
bool reset_peak();

}  // namespace braintrace::testing
