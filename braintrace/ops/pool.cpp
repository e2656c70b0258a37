// SPDX-License-Identifier: Apache-2.0
// Max and average pooling: strided slices of x, one per place in the window, combined.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "braintrace/ops/ops.h"
#include "braintrace/ops/product.h"

namespace braintrace {
namespace {

struct Windows {
  Shape window;
  Ints strides, low, high;  // per spatial axis
  Shape out;
};

Windows windows_of(std::string_view who, const Value& x, const PoolOptions& o) {
  const std::size_t rank = o.window.size();
  BT_REQUIRE(rank >= 1 && x.rank() == static_cast<std::int64_t>(rank) + 2,
             fmt::format("{}: x must be [n, *spatial, channels] for window {}, got {}",
                         who, to_string(o.window), to_string(x.shape())));
  Windows w{
      o.window, o.strides.empty() ? o.window : o.strides, Ints(rank), Ints(rank), {}};
  BT_REQUIRE(w.strides.size() == rank, fmt::format("{}: strides needs {} entries, got {}",
                                                   who, rank, to_string(w.strides)));
  for (std::size_t a = 0; a < rank; ++a)
    BT_REQUIRE(w.window[a] >= 1 && w.strides[a] >= 1,
               fmt::format("{}: window {} and strides {} must be positive", who,
                           to_string(w.window), to_string(w.strides)));
  const bool same = o.padding == "SAME";
  BT_REQUIRE(same || o.padding == "VALID",
             fmt::format("{}: padding must be SAME or VALID, got '{}'", who, o.padding));
  const Shape shape = x.shape();
  const Shape spatial(shape.begin() + 1, shape.end() - 1);
  if (same) {
    const ConvGeometry g = same_padding(spatial, w.window, {.strides = w.strides});
    w.low = g.pad_low;
    w.high = g.pad_high;
  }
  for (std::size_t a = 0; a < rank; ++a) {
    const std::int64_t room = spatial[a] + w.low[a] + w.high[a] - w.window[a];
    w.out.push_back(room < 0 ? 0 : room / w.strides[a] + 1);
  }
  return w;
}

Ints framed_pool(const Ints& spatial, std::int64_t first, std::int64_t last) {
  Ints v = {first};
  v.insert(v.end(), spatial.begin(), spatial.end());
  v.push_back(last);
  return v;
}

// fold over the window's places of the slices of x, padded with `value`.
template <class F>
Value pooled(const Value& x, const Windows& w, double value, F fold) {
  const Value padded = pad(x, framed_pool(w.low, 0, 0), framed_pool(w.high, 0, 0), value);
  const Shape size = framed_pool(w.out, x.dim(0), x.dim(-1));
  const Ints step = framed_pool(w.strides, 1, 1);
  Tangent result;
  Ints place(w.window.size(), 0);
  for (std::int64_t i = 0, n = num_elements(w.window); i < n; ++i) {
    std::int64_t rest = i;
    for (std::size_t a = place.size(); a-- > 0; rest /= w.window[a])
      place[a] = rest % w.window[a];
    const Value part = slice(padded, framed_pool(place, 0, 0), size, step);
    result = result ? fold(*result, part) : part;
  }
  return *result;
}

bool is_empty(const Windows& w) { return num_elements(w.out) == 0; }

Value empty_result(const Value& x, const Windows& w) {
  return zeros(framed_pool(w.out, x.dim(0), x.dim(-1)), x.dtype());
}

// How many true elements each window covers: [1, *out, 1].
Array coverage(const Windows& w, const Shape& x, DType dtype) {
  Array count = ones({}, dtype);
  for (std::size_t a = 0; a < w.window.size(); ++a) {
    std::vector<double> along;
    for (std::int64_t p = 0; p < w.out[a]; ++p) {
      const std::int64_t from = p * w.strides[a] - w.low[a];
      along.push_back(static_cast<double>(std::min(from + w.window[a], x[a + 1]) -
                                          std::max<std::int64_t>(from, 0)));
    }
    Shape shape(w.window.size() + 2, 1);
    shape[a + 1] = w.out[a];
    count = mul(count, array(shape, along, dtype)).array();
  }
  return count;
}

}  // namespace

Value max_pool(Arg x, const PoolOptions& options) {
  const LocationScope here(x.loc);
  const Value v = settle_float(x);
  const Windows w = windows_of("max_pool", v, options);
  if (is_empty(w)) return empty_result(v, w);
  return pooled(v, w, -std::numeric_limits<double>::infinity(),
                [](const Value& a, const Value& b) { return maximum(a, b); });
}

Value avg_pool(Arg x, const PoolOptions& options) {
  const LocationScope here(x.loc);
  const Value v = settle_float(x);
  const Windows w = windows_of("avg_pool", v, options);
  if (is_empty(w)) return empty_result(v, w);
  const Value total =
      pooled(v, w, 0, [](const Value& a, const Value& b) { return add(a, b); });
  return total / Value(coverage(w, v.shape(), v.dtype()));
}

}  // namespace braintrace
