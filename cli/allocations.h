// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts calls of the malloc family in this program.
#include <cstdint>

namespace braintrace::cli {
std::int64_t allocations_so_far();
}
