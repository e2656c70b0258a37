// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/event_gemm.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "braintrace/base/divide.h"
#include "braintrace/run/event_kernels_impl.h"
#include "braintrace/run/gemm_impl.h"
#include "braintrace/run/thread_pool.h"

namespace braintrace {
namespace {

const std::byte* past(const void* base, std::int64_t elements, DType dtype) {
  return static_cast<const std::byte*>(base) +
         elements * static_cast<std::int64_t>(size_of(dtype));
}

// Rows of C that repay a copy of each block of B: its rows lie side by side then, aligned
// to the lines of the cache.
constexpr std::int64_t kCopyRows = 96;

// The copy's room, behind the lists.
constexpr std::size_t kListBytes = ThreadPool::kScratchBytes - kEventBlockBytes;

// Rows of B, `to_row` elements apart in `to`.
void copy_rows(const GemmSpec& s, const void* b, std::int64_t k, std::int64_t columns,
               std::int64_t to_row, std::byte* to) {
  for (std::int64_t q = 0; q < k; ++q)
    std::memcpy(to + q * to_row * static_cast<std::int64_t>(size_of(s.dtype)),
                past(b, q * s.b.row, s.dtype),
                static_cast<std::size_t>(columns) * size_of(s.dtype));
}

// Lists of some cuts of k, in the scratch of the caller.
class Lists {
 public:
  Lists(std::int64_t m, std::byte* room) : m_(m), room_(room) {}

  // Cuts whose lists fit at once; 0 when not even one does.
  static std::int64_t capacity(std::int64_t m) {
    return static_cast<std::int64_t>(kListBytes) / bytes(m);
  }
  EventLists of_cut(std::int64_t cut) const {
    std::byte* at = room_ + cut * bytes(m_);
    auto* bits = reinterpret_cast<std::uint64_t*>(at);
    auto* flag = reinterpret_cast<std::uint8_t*>(at + 8 * m_);
    return {bits, flag + 1 + m_, flag + 1, flag};
  }
  std::int64_t found(std::int64_t cuts) const {
    std::int64_t total = 0;
    for (std::int64_t c = 0; c < cuts; ++c)
      for (std::int64_t i = 0; i < m_; ++i) total += of_cut(c).counts[i];
    return total;
  }

 private:
  static std::int64_t bytes(std::int64_t m) {
    return divided_up(m * (8 + 1 + kEventDepth) + 1, 64) * 64;
  }
  std::int64_t m_;
  std::byte* room_;
};

// Few rows of A, each a stretch of memory: events of whole rows. More than a handful read
// the same of B over and over, which should be near then.
bool goes_by_rows(const GemmSpec& s) {
  constexpr std::int64_t kNearBytes = 384 << 10, kHandful = 4;
  const std::int64_t tile = s.k * event_columns(s.dtype);
  const bool near = tile * static_cast<std::int64_t>(size_of(s.dtype)) <= kNearBytes;
  return s.a.col == 1 && s.m < (near ? kCopyRows : kHandful);
}

// Such lists, in the scratch of the caller.
class RowLists {
 public:
  RowLists(std::int64_t m, std::int64_t k, std::byte* room) : m_(m) {
    events_.room = k + kEventRowSlack;
    events_.places = reinterpret_cast<std::uint32_t*>(room);
    events_.counts = events_.places + m * events_.room;
    events_.all_ones = reinterpret_cast<std::uint8_t*>(events_.counts + m);
  }
  // The longest k whose lists fit.
  static std::int64_t capacity(std::int64_t m) {
    const std::int64_t row = static_cast<std::int64_t>(kListBytes) / m;
    return (row - 5) / 4 - kEventRowSlack;
  }
  const EventRows& events() const { return events_; }
  std::int64_t found() const {
    return std::accumulate(events_.counts, events_.counts + m_, std::int64_t{0});
  }

 private:
  std::int64_t m_;
  EventRows events_;
};

// Columns of C are worked on in tiles of nearly one width.
struct Columns {
  explicit Columns(const GemmSpec& s) {
    const std::int64_t most = event_columns(s.dtype), lanes = most / kEventVectors;
    tiles = divided_up(s.n, most);
    width = divided_up(divided_up(s.n, tiles), lanes) * lanes;
    tiles = divided_up(s.n, width);
  }
  std::int64_t first(std::int64_t tile) const { return tile * width; }
  std::int64_t count(const GemmSpec& s, std::int64_t tile) const {
    return std::min(width, s.n - first(tile));
  }
  std::int64_t width, tiles;
};

// The right factor, as it is or in tiles.
struct RightFactor {
  const void* b;
  bool tiled;

  std::int64_t row(const GemmSpec& s, const Columns& c) const {
    return tiled ? c.width : s.b.row;
  }
  // Of a tile of columns, from k on.
  const std::byte* at(const GemmSpec& s, const Columns& c, std::int64_t tile,
                      std::int64_t k) const {
    const std::int64_t first = tiled ? tile * s.k * c.width : c.first(tile);
    return past(b, first + k * row(s, c), s.dtype);
  }
};

// Who works on one matrix: all threads, or one of them with its scratch.
struct AllThreads {
  ThreadPool& pool;
  std::byte* room() const { return pool.scratch(0); }
  template <class F>
  void share(bool many, std::int64_t count, const F& task) const {
    pool.for_tiles_if(many, count,
                      [&](std::int64_t i, int worker) { task(i, pool.scratch(worker)); });
  }
  void dense(const GemmSpec& s, const void* a, const void* b, void* c,
             const void* bias) const {
    gemm(s, a, b, c, pool, bias);
  }
};
struct OneThread {
  std::byte* scratch;
  std::byte* room() const { return scratch; }
  template <class F>
  void share(bool, std::int64_t count, const F& task) const {
    for (std::int64_t i = 0; i < count; ++i) task(i, scratch);
  }
  void dense(const GemmSpec& s, const void* a, const void* b, void* c,
             const void* bias) const {
    gemm_serial(s, a, b, c, bias, scratch);
  }
};

// More than a few events: the dense product of `k` of the sum, tile by tile where the
// right factor is in tiles. The lists are not needed any more.
template <class Team>
void run_dense(const GemmSpec& s, const void* left, const RightFactor& right, void* c,
               const Team& team, const void* bias, std::int64_t from, std::int64_t k) {
  const Columns columns(s);
  GemmSpec part = s;
  part.k = k;
  part.b.row = right.row(s, columns);
  if (from > 0) part.beta = 1;
  const void* added = from > 0 ? nullptr : bias;
  if (!right.tiled)
    return team.dense(part, left, right.at(s, columns, 0, from), c, added);
  team.share(gemm_ns(part) > kSharedWork, columns.tiles,
             [&](std::int64_t t, std::byte* scratch) {
               GemmSpec tile = part;
               tile.n = columns.count(s, t);
               const std::int64_t first = columns.first(t);
               gemm_serial(tile, left, right.at(s, columns, t, from),
                           const_cast<std::byte*>(past(c, first, s.dtype)),
                           added == nullptr ? nullptr : past(added, first, s.dtype),
                           scratch);
             });
}

// What both kinds of lists say about a tile of columns.
EventProduct product_of(const GemmSpec& s, const RightFactor& right, void* c,
                        const void* bias, std::int64_t tile) {
  const Columns columns(s);
  const std::int64_t first = columns.first(tile);
  EventProduct p{.m = s.m,
                 .columns = columns.count(s, tile),
                 .a_strides = s.a,
                 .b_row = right.row(s, columns),
                 .c_row = s.c.row,
                 .bias = bias == nullptr ? nullptr : past(bias, first, s.dtype),
                 .alpha = s.alpha,
                 .beta = s.beta};
  p.c = const_cast<std::byte*>(past(c, first, s.dtype));
  return p;
}

double work_of(const GemmSpec& s, double found) {
  return 0.06 * found * static_cast<double>(s.n);
}

// The part of k from `from` on, `k` long; its first use of C when from is 0.
template <class Team>
void run_part(const GemmSpec& s, const void* a, const RightFactor& right, void* c,
              const Team& team, const void* bias, std::int64_t from, std::int64_t k) {
  const Lists lists(s.m, team.room());
  const std::int64_t cuts = divided_up(k, kEventDepth);
  const void* left = past(a, from * s.a.col, s.dtype);
  const bool many = static_cast<double>(s.m * k) > kSharedWork;
  team.share(many, cuts, [&](std::int64_t i, std::byte*) {
    const std::int64_t q = i * kEventDepth;
    list_events(s.dtype, s, past(left, q * s.a.col, s.dtype),
                std::min(kEventDepth, k - q), lists.of_cut(i));
  });
  const auto found = static_cast<double>(lists.found(cuts));
  if (found > kEventDensity * static_cast<double>(s.m * k))
    return run_dense(s, left, right, c, team, bias, from, k);
  const Columns columns(s);
  const bool copies = s.m >= kCopyRows && !right.tiled;
  const bool shared = work_of(s, found) > kSharedWork;
  team.share(shared, columns.tiles, [&](std::int64_t t, std::byte* scratch) {
    std::byte* const block = scratch + kListBytes;
    EventProduct p = product_of(s, right, c, bias, t);
    if (copies) p.b_row = columns.width;
    for (std::int64_t i = 0; i < cuts; ++i) {
      const std::int64_t q = i * kEventDepth;
      p.a = past(left, q * s.a.col, s.dtype);
      p.b = right.at(s, columns, t, from + q);
      if (copies) {
        copy_rows(s, p.b, std::min(kEventDepth, k - q), p.columns, columns.width, block);
        p.b = block;
      }
      p.first = from == 0 && i == 0;
      add_events(s.dtype, p, lists.of_cut(i));
    }
  });
}

// The same row by row.
template <class Team>
void run_rows(const GemmSpec& s, const void* a, const RightFactor& right, void* c,
              const Team& team, const void* bias, std::int64_t from, std::int64_t k) {
  const RowLists rows(s.m, k, team.room());
  const void* left = past(a, from, s.dtype);
  const bool many = static_cast<double>(s.m * k) > kSharedWork;
  team.share(many, s.m, [&](std::int64_t i, std::byte*) {
    list_row_events(s.dtype, past(left, i * s.a.row, s.dtype), k, i, rows.events());
  });
  const auto found = static_cast<double>(rows.found());
  if (found > kEventDensity * static_cast<double>(s.m * k))
    return run_dense(s, left, right, c, team, bias, from, k);
  const Columns columns(s);
  const bool shared = work_of(s, found) > kSharedWork;
  team.share(shared, columns.tiles, [&](std::int64_t t, std::byte*) {
    EventProduct p = product_of(s, right, c, bias, t);
    p.a = left;
    p.b = right.at(s, columns, t, from);
    p.first = from == 0;
    add_row_events(s.dtype, p, rows.events());
  });
}

template <class Team>
void run_matrix(const GemmSpec& s, const void* a, const RightFactor& b, void* c,
                const Team& team, const void* bias) {
  const bool by_rows = goes_by_rows(s);
  const std::int64_t part =
      by_rows ? RowLists::capacity(s.m) : Lists::capacity(s.m) * kEventDepth;
  for (std::int64_t from = 0; from < s.k; from += part) {
    const std::int64_t k = std::min(part, s.k - from);
    by_rows ? run_rows(s, a, b, c, team, bias, from, k)
            : run_part(s, a, b, c, team, bias, from, k);
  }
}

bool takes_events(const GemmSpec& s) {
  return is_float(s.dtype) && s.b.col == 1 && s.c.col == 1 && s.m > 0 && s.n > 0 &&
         s.k > 0 && Lists::capacity(s.m) > 0;
}

}  // namespace

void gemm_events_serial(const GemmSpec& s, const void* a, const void* b, void* c,
                        const void* bias, std::byte* scratch) {
  if (!takes_events(s)) return gemm_serial(s, a, b, c, bias, scratch);
  run_matrix(s, a, {b, false}, c, OneThread{scratch}, bias);
}

void gemm_events(const GemmSpec& s, const void* a, const void* b, void* c,
                 ThreadPool& pool, const void* bias) {
  if (!takes_events(s)) return gemm(s, a, b, c, pool, bias);
  if (s.batch == 1) return run_matrix(s, a, {b, false}, c, AllThreads{pool}, bias);
  GemmSpec one = s;
  one.batch = 1;
  pool.for_tiles_if(kEventDensity * gemm_ns(s) > kSharedWork, s.batch,
                    [&](std::int64_t i, int worker) {
                      void* to = const_cast<std::byte*>(past(c, i * s.c.batch, s.dtype));
                      run_matrix(one, past(a, i * s.a.batch, s.dtype),
                                 {past(b, i * s.b.batch, s.dtype), false}, to,
                                 OneThread{pool.scratch(worker)}, bias);
                    });
}

std::size_t tiled_b_bytes(const GemmSpec& s) {
  if (s.batch != 1 || !takes_events(s)) return 0;
  const Columns c(s);
  return static_cast<std::size_t>(c.tiles * c.width * s.k) * size_of(s.dtype);
}

void tile_b(const GemmSpec& s, const void* b, void* tiled, ThreadPool& pool) {
  constexpr double kBytesPerNs = 10;
  const Columns c(s);
  const RightFactor from{b, false}, to{tiled, true};
  const bool shared = static_cast<double>(tiled_b_bytes(s)) > kBytesPerNs * kSharedWork;
  pool.for_tiles_if(shared, c.tiles, [&](std::int64_t t, int) {
    copy_rows(s, from.at(s, c, t, 0), s.k, c.count(s, t), c.width,
              const_cast<std::byte*>(to.at(s, c, t, 0)));
  });
}

void gemm_events_tiled(const GemmSpec& s, const void* a, const void* tiled, void* c,
                       ThreadPool& pool, const void* bias) {
  run_matrix(s, a, {tiled, true}, c, AllThreads{pool}, bias);
}

void gemm_events_tiled_serial(const GemmSpec& s, const void* a, const void* tiled,
                              void* c, const void* bias, std::byte* scratch) {
  run_matrix(s, a, {tiled, true}, c, OneThread{scratch}, bias);
}

}  // namespace braintrace
