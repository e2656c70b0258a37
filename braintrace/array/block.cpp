// SPDX-License-Identifier: Apache-2.0
#include "braintrace/array/block.h"

#include <cstdlib>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace braintrace {
namespace {

constexpr std::size_t kCacheLine = 64, kLargePage = std::size_t{2} << 20;

}  // namespace

std::byte* new_block(std::size_t bytes) {
  const bool large = bytes >= 2 * kLargePage;
  const std::size_t unit = large ? kLargePage : kCacheLine;
  const std::size_t padded = (bytes / unit + 1) * unit;
  void* p = std::aligned_alloc(unit, padded);
  if (!p) throw std::bad_alloc();
#ifdef __linux__
  if (large) (void)madvise(p, padded, MADV_HUGEPAGE);  // a wish; small pages do as well
#endif
  return static_cast<std::byte*>(p);
}

}  // namespace braintrace
