// SPDX-License-Identifier: Apache-2.0
// Cuts products into tiles by shape and hands them to the kernels.
#include "braintrace/run/gemm.h"

#include <algorithm>

#include "braintrace/base/divide.h"
#include "braintrace/base/error.h"
#include "braintrace/run/gemm_impl.h"
#include "braintrace/run/gemm_kernels_impl.h"
#include "braintrace/run/thread_pool.h"

namespace braintrace {
namespace {

const std::byte* past(const void* base, std::int64_t elements, std::size_t size) {
  return static_cast<const std::byte*>(base) + elements * static_cast<std::int64_t>(size);
}

// The part of C one thread computes at a time.
struct Cut {
  std::int64_t rows, columns;  // of a tile, at most
  std::int64_t across, down;   // tiles
};
constexpr std::int64_t kTileColumns = 128;

// Large tiles, but four of them where the work is worth sharing, nearly square then: both
// factors are copied for each. A left factor that lies along its columns is dear to copy.
Cut cut_of(const GemmSpec& s) {
  constexpr std::int64_t kTiles = 4, kLeastRows = 24, kLeastColumns = 128;
  const bool turned = s.a.row == 1 && s.a.col != 1;
  std::int64_t down = std::max<std::int64_t>(1, divided_up(s.m, kTileRows));
  std::int64_t across = std::max<std::int64_t>(
      1, divided_up(s.n, turned ? 2 * kTileColumns : kTileColumns));
  const bool shared = gemm_ns(s) > kSharedWork;
  while (shared && s.batch * across * down < kTiles) {
    const std::int64_t rows = s.m / down, columns = s.n / across;
    const bool by_rows = rows >= 2 * kLeastRows;
    const bool by_columns = turned && columns >= 2 * kLeastColumns;
    if (!by_rows && !by_columns) break;
    (by_rows && (rows >= columns || !by_columns) ? down : across) *= 2;
  }
  const std::int64_t rows = divided_up(divided_up(s.m, down), 6) * 6;
  const std::int64_t panel = gemm_panel(s.dtype);
  const std::int64_t columns = divided_up(divided_up(s.n, across), panel) * panel;
  return {rows, columns, divided_up(s.n, columns), divided_up(s.m, rows)};
}

// Integers, and results with a stride between columns.
template <class T, class W>
void plain(const GemmSpec& s, const T* a, const T* b, T* c, const T* bias) {
  const W alpha = static_cast<W>(static_cast<T>(s.alpha));
  const W beta = static_cast<W>(static_cast<T>(s.beta));
  for (std::int64_t i = 0; i < s.m; ++i)
    for (std::int64_t j = 0; j < s.n; ++j) {
      W sum = 0;
      for (std::int64_t q = 0; q < s.k; ++q)
        sum += static_cast<W>(a[i * s.a.row + q * s.a.col]) *
               static_cast<W>(b[q * s.b.row + j * s.b.col]);
      T& to = c[i * s.c.row + j * s.c.col];
      W y = alpha * sum;
      if (s.beta != 0) y += beta * static_cast<W>(to);
      if (bias != nullptr) y += static_cast<W>(bias[j]);
      to = static_cast<T>(y);
    }
}

template <class T, class W>
void plain(const GemmSpec& s, const void* a, const void* b, void* c, const void* bias) {
  plain<T, W>(s, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c),
              static_cast<const T*>(bias));
}

void plain(const GemmSpec& s, const void* a, const void* b, void* c, const void* bias) {
  if (s.dtype == DType::i32) return plain<std::int32_t, std::uint32_t>(s, a, b, c, bias);
  if (s.dtype == DType::f32) return plain<float, float>(s, a, b, c, bias);
  plain<double, double>(s, a, b, c, bias);
}

struct Operands {
  const void *a, *b;
  void* c;
  const void* bias;
  bool packed;
};

bool has_kernel(const GemmSpec& s) {
  return is_float(s.dtype) && (s.c.col == 1 || s.n <= 1);
}

// A product with one column as one with one row, and one whose columns lie in memory as
// rows: C' = B' A'. Kernels are wide along the columns. The bits are the same: every
// element is one chain over k.
bool runs_turned(const GemmSpec& s, const void* bias) {
  return is_float(s.dtype) && s.m > 1 && s.c.row == 1 && bias == nullptr &&
         (s.n == 1 || s.c.col != 1);
}
GemmSpec turned(const GemmSpec& s) {
  const auto turn = [](const MatrixStrides& m) {
    return MatrixStrides{.row = m.col, .col = m.row, .batch = m.batch};
  };
  GemmSpec t = s;
  std::swap(t.m, t.n);
  t.a = turn(s.b);
  t.b = turn(s.a);
  t.c = turn(s.c);
  return t;
}

// Few columns, and a left factor that lies along its rows' axis: kernels would use a part
// of each vector. Turned around they are full; the result is turned back, tile by tile.
constexpr std::int64_t kFewColumns = 12, kTurnedRows = 256;
bool has_few_columns(const GemmSpec& s, const Operands& o) {
  return s.n <= kFewColumns && s.m >= 64 && s.a.row == 1 && s.batch == 1 && !o.packed &&
         o.bias == nullptr;
}

template <class T>
void run_turned_tile(const GemmSpec& s, const Operands& o, std::int64_t tile,
                     std::byte* scratch, T* result) {
  const std::int64_t row = tile * kTurnedRows, rows = std::min(kTurnedRows, s.m - row);
  T* c = static_cast<T*>(o.c) + row * s.c.row;
  if (s.beta != 0)
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < s.n; ++j) result[j * rows + i] = c[i * s.c.row + j];
  gemm_tile(s.dtype,
            {.m = s.n,
             .n = rows,
             .k = s.k,
             .a = o.b,
             .a_strides = {.row = s.b.col, .col = s.b.row},
             .b = static_cast<const T*>(o.a) + row,
             .b_strides = {.row = s.a.col, .col = 1},
             .packed_panel = 0,
             .c = result,
             .c_row = rows,
             .bias = nullptr,
             .alpha = s.alpha,
             .beta = s.beta},
            scratch);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < s.n; ++j) c[i * s.c.row + j] = result[j * rows + i];
}

// Where a tile begins, and how large it is.
struct Place {
  std::int64_t matrix = 0, row = 0, column = 0, rows, columns;
};

void run_tile(const GemmSpec& s, const Operands& o, const Place& at, std::byte* scratch,
              std::byte* a_scratch) {
  const std::size_t size = size_of(s.dtype);
  const auto [matrix, row, column, rows, columns] = at;
  TileProduct p{.m = rows,
                .n = columns,
                .k = s.k,
                .a = past(o.a, matrix * s.a.batch + row * s.a.row, size),
                .a_strides = s.a,
                .b_strides = s.b,
                .packed_panel = 0,
                .c_row = s.c.row,
                .bias = o.bias == nullptr ? nullptr : past(o.bias, column, size),
                .alpha = s.alpha,
                .beta = s.beta,
                .a_scratch = a_scratch};
  p.c = const_cast<std::byte*>(
      past(o.c, matrix * s.c.batch + row * s.c.row + column, size));
  if (o.packed) {
    p.packed_panel = s.k * gemm_panel(s.dtype);
    p.b = past(o.b, column * s.k, size);
  } else {
    p.b = past(o.b, matrix * s.b.batch + column * s.b.col, size);
  }
  gemm_tile(s.dtype, p, scratch);
}

void run_tile(const GemmSpec& s, const Operands& o, const Cut& cut, std::int64_t tile,
              std::byte* scratch, std::byte* a_scratch) {
  const std::int64_t row = tile / cut.across % cut.down * cut.rows;
  const std::int64_t column = tile % cut.across * cut.columns;
  run_tile(s, o,
           {.matrix = tile / (cut.across * cut.down),
            .row = row,
            .column = column,
            .rows = std::min(cut.rows, s.m - row),
            .columns = std::min(cut.columns, s.n - column)},
           scratch, a_scratch);
}

// One tile, and not worth sharing: what a loop of small steps runs most. Asks nothing
// that takes a division.
bool is_one_tile(const GemmSpec& s) {
  constexpr std::int64_t kFlops = 1 << 17, kElements = 1 << 15;
  return s.batch == 1 && s.m <= kTileRows && s.n <= kTileColumns &&
         s.n * s.k <= kElements && s.m * s.n * s.k <= kFlops;
}

void run(const GemmSpec& s, const Operands& o, ThreadPool& pool) {
  if (is_one_tile(s) && has_kernel(s) && !has_few_columns(s, o)) {
    std::byte* room = pool.scratch(0);
    return run_tile(s, o, {.rows = s.m, .columns = s.n}, room, room + kPanelScratch);
  }
  const bool shared = gemm_ns(s) > kSharedWork;
  if (!has_kernel(s)) {
    const std::size_t size = size_of(s.dtype);
    return pool.for_tiles_if(shared, s.batch, [&](std::int64_t i, int) {
      plain(s, past(o.a, i * s.a.batch, size), past(o.b, i * s.b.batch, size),
            const_cast<std::byte*>(past(o.c, i * s.c.batch, size)), o.bias);
    });
  }
  static_assert(kPanelScratch <= kGemmScratch);
  static_assert(kPanelScratch + kGroupScratch <= ThreadPool::kScratchBytes);
  if (has_few_columns(s, o))
    return pool.for_tiles_if(
        shared, divided_up(s.m, kTurnedRows), [&](std::int64_t tile, int worker) {
          std::byte *room = pool.scratch(worker), *result = room + kPanelScratch;
          if (s.dtype == DType::f32)
            run_turned_tile(s, o, tile, room, reinterpret_cast<float*>(result));
          else
            run_turned_tile(s, o, tile, room, reinterpret_cast<double*>(result));
        });
  const Cut cut = cut_of(s);
  pool.for_tiles_if(shared, s.batch * cut.across * cut.down,
                    [&](std::int64_t tile, int worker) {
                      std::byte* room = pool.scratch(worker);
                      run_tile(s, o, cut, tile, room, room + kPanelScratch);
                    });
}

}  // namespace

void gemm_serial(const GemmSpec& s, const void* a, const void* b, void* c,
                 const void* bias, std::byte* scratch) {
  if (s.m == 0 || s.n == 0) return;
  if (runs_turned(s, bias)) return gemm_serial(turned(s), b, a, c, bias, scratch);
  if (!has_kernel(s)) return plain(s, a, b, c, bias);
  const Cut whole{s.m, s.n, 1, 1};
  run_tile(s, {a, b, c, bias, false}, whole, 0, scratch, nullptr);
}

void gemm_packed_serial(const GemmSpec& s, const void* a, const void* packed, void* c,
                        const void* bias, std::byte* scratch) {
  if (s.m == 0 || s.n == 0) return;
  const Cut whole{s.m, s.n, 1, 1};
  run_tile(s, {a, packed, c, bias, true}, whole, 0, scratch, nullptr);
}

void gemm(const GemmSpec& s, const void* a, const void* b, void* c, ThreadPool& pool,
          const void* bias) {
  BT_INVARIANT(s.dtype != DType::boolean && is_computable(s.dtype));
  if (s.m == 0 || s.n == 0 || s.batch == 0) return;
  if (runs_turned(s, bias)) return run(turned(s), {b, a, c, bias, false}, pool);
  run(s, {a, b, c, bias, false}, pool);
}

std::size_t packed_b_bytes(const GemmSpec& s) {
  if (!has_kernel(s)) return 0;
  const std::int64_t panel = gemm_panel(s.dtype);
  return static_cast<std::size_t>(divided_up(s.n, panel) * panel * s.k) *
         size_of(s.dtype);
}

void pack_b(const GemmSpec& s, const void* b, void* packed, ThreadPool& pool) {
  BT_INVARIANT(has_kernel(s) && (s.batch <= 1 || s.b.batch == 0));
  constexpr double kBytesPerNs = 10;
  const std::size_t size = size_of(s.dtype);
  const std::int64_t columns = kPackedPanels * gemm_panel(s.dtype);
  const bool shared = static_cast<double>(packed_b_bytes(s)) > kBytesPerNs * kSharedWork;
  pool.for_tiles_if(shared, divided_up(s.n, columns), [&](std::int64_t tile, int) {
    const std::int64_t j = tile * columns;
    gemm_pack(s.dtype, s.b, past(b, j * s.b.col, size), s.k, std::min(columns, s.n - j),
              const_cast<std::byte*>(past(packed, j * s.k, size)));
  });
}

void gemm_packed(const GemmSpec& s, const void* a, const void* packed, void* c,
                 ThreadPool& pool, const void* bias) {
  BT_INVARIANT(has_kernel(s));
  if (s.m == 0 || s.n == 0 || s.batch == 0) return;
  run(s, {a, packed, c, bias, true}, pool);
}

double gemm_ns(const GemmSpec& s) {
  const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) *
                       static_cast<double>(s.k) * static_cast<double>(s.batch);
  // Few rows wait for B to come from memory.
  const double bytes = static_cast<double>(s.n) * static_cast<double>(s.k) *
                       static_cast<double>(s.b.batch == 0 ? 1 : s.batch) *
                       static_cast<double>(size_of(s.dtype));
  const double per_ns = s.dtype == DType::f32 ? 60.0 : s.dtype == DType::f64 ? 30.0 : 2.0;
  return std::max(flops / per_ns, bytes / 35.0);
}

}  // namespace braintrace
