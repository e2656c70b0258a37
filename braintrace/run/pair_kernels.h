// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers of four bytes that lie in turn (a b a b ...), into two rows and back: how
// traces of two states are read and written.
#include <cstddef>

namespace braintrace {

void split_pairs(const void* pairs, void* first, void* second, std::size_t n);
void join_pairs(const void* first, const void* second, void* pairs, std::size_t n);

}  // namespace braintrace
