// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory for arrays and arenas.
#include <cstddef>

namespace braintrace {

// At least this many bytes, aligned to a cache line; std::free gives them back. Blocks of
// several megabytes ask for large pages: traces are walked through once per step, and
// translating the addresses of small pages takes up to a third of that time.
// std::bad_alloc when there is none.
std::byte* new_block(std::size_t bytes);

}  // namespace braintrace
