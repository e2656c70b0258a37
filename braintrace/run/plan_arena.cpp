// SPDX-License-Identifier: Apache-2.0
// Places arena buffers, largest first, each at the lowest offset that is free for as long
// as it lives.
#include <algorithm>

#include "braintrace/run/plan_program_impl.h"

namespace braintrace::plan {
namespace {

constexpr std::int64_t kAlignment = 64;

std::int64_t padded(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool live_together(const Buffer& a, const Buffer& b) {
  return a.first <= b.last && b.first <= a.last;
}

// `placed` is sorted by offset.
std::int64_t lowest_free(const std::vector<const Buffer*>& placed, const Buffer& b) {
  std::int64_t offset = 0;
  for (const Buffer* p : placed) {
    if (!live_together(*p, b)) continue;
    if (offset + padded(b.bytes) <= p->offset) break;
    offset = std::max(offset, p->offset + padded(p->bytes));
  }
  return offset;
}

}  // namespace

void lay_out_arena(Program& p) {
  std::vector<Buffer*> order;
  for (Buffer& b : p.buffers)
    if (b.place == Place::arena && b.last >= 0) order.push_back(&b);
  std::stable_sort(order.begin(), order.end(),
                   [](const Buffer* a, const Buffer* b) { return a->bytes > b->bytes; });
  std::vector<const Buffer*> placed;
  p.arena_bytes = 0;
  for (Buffer* b : order) {
    b->offset = lowest_free(placed, *b);
    p.arena_bytes = std::max(p.arena_bytes, b->offset + padded(b->bytes));
    const auto behind = std::upper_bound(
        placed.begin(), placed.end(), b,
        [](const Buffer* x, const Buffer* y) { return x->offset < y->offset; });
    placed.insert(behind, b);
  }
}

}  // namespace braintrace::plan
