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

// Chains of buffers that go on with each other's memory are placed as one: the first
// buffer of the chain lives as long as the last.
std::vector<int> heads_of_chains(std::vector<Buffer>& buffers) {
  std::vector<int> head(buffers.size());
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    auto h = b;
    while (buffers[h].takes_over >= 0)
      h = static_cast<std::size_t>(buffers[h].takes_over);
    head[b] = static_cast<int>(h);
  }
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    Buffer& first = buffers[static_cast<std::size_t>(head[b])];
    first.last = std::max(first.last, buffers[b].last);
  }
  return head;
}

}  // namespace

void lay_out_arena(Program& p) {
  const std::vector<int> head = heads_of_chains(p.buffers);
  std::vector<Buffer*> order;
  for (Buffer& b : p.buffers)
    if (b.place == Place::arena && b.last >= 0 && b.takes_over < 0) order.push_back(&b);
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
  for (std::size_t b = 0; b < p.buffers.size(); ++b)
    p.buffers[b].offset = p.buffers[static_cast<std::size_t>(head[b])].offset;
}

}  // namespace braintrace::plan
