// SPDX-License-Identifier: Apache-2.0
// Check 5 of the op harness: the program on three lanes at once against a loop.
#include <algorithm>

#include <fmt/format.h>

#include "braintrace/testing/check_op_impl.h"
#include "braintrace/transforms/vmap.h"

namespace braintrace::testing::internal {
namespace {

constexpr std::int64_t kLanes = 3;

// Floats shrink a little per lane, others rotate: both stay in the op's domain.
Array lane(const Array& a, std::int64_t l) {
  Array out = a.contiguous();
  const std::int64_t n = out.size();
  visit_dtype(a.dtype(), [&]<class T>(T) {
    T* p = out.mutable_data<T>();
    const Array source = a.contiguous();
    const T* q = source.data<T>();
    for (std::int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_floating_point_v<T>) {
        p[i] = static_cast<T>(q[i] * (1.0 - 0.03 * static_cast<double>(l)));
      } else {
        p[i] = q[(i + l) % n];
      }
    }
  });
  return out;
}

// Copies the lanes into one array with a new axis.
Array stacked(const std::vector<Array>& lanes, std::int64_t axis) {
  const Shape& one = lanes[0].shape();
  Shape front = {static_cast<std::int64_t>(lanes.size())};
  front.insert(front.end(), one.begin(), one.end());
  Array out(lanes[0].dtype(), front);
  visit_dtype(out.dtype(), [&]<class T>(T) {
    T* p = out.mutable_data<T>();
    for (const Array& a : lanes) {
      const Array packed = a.contiguous();
      p = std::copy_n(packed.data<T>(), packed.size(), p);
    }
  });
  Ints permutation = iota_ints(static_cast<std::int64_t>(front.size()));
  permutation.erase(permutation.begin());
  permutation.insert(permutation.begin() + axis, 0);
  return out.transposed(permutation).contiguous();
}

std::string place(const std::vector<BatchAxis>& axes) {
  std::string text = "batched inputs";
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i]) text += fmt::format(" {} (axis {})", i, *axes[i]);
  return text;
}

double check_axes(const Checked& k, const std::vector<BatchAxis>& axes) {
  std::vector<std::vector<Array>> per_lane(kLanes);
  std::vector<Array> batched;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    std::vector<Array> lanes;
    for (std::int64_t l = 0; l < kLanes; ++l) {
      lanes.push_back(axes[i] ? lane(k.c.inputs[i], l) : k.c.inputs[i]);
      per_lane[static_cast<std::size_t>(l)].push_back(lanes.back());
    }
    batched.push_back(axes[i] ? stacked(lanes, *axes[i]) : k.c.inputs[i]);
  }
  const Graph g = vmap(k.graph, kLanes, {.in_axes = axes});
  verify(g);
  const std::vector<Array> got = eval_graph(g, batched);
  std::vector<std::vector<Array>> want(k.outputs.size());
  for (const auto& inputs : per_lane) {
    const std::vector<Array> out = eval_graph(k.graph, inputs);
    for (std::size_t o = 0; o < out.size(); ++o) want[o].push_back(out[o]);
  }
  double worst = 0;
  for (std::size_t o = 0; o < want.size(); ++o)
    worst = std::max(
        worst,
        check_close(label(k, fmt::format("{} against a loop, output {}", place(axes), o)),
                    got[o], stacked(want[o], 0), value_tolerance(got[o].dtype())));
  return worst;
}

}  // namespace

void check_batch(Checked& k) {
  const std::size_t n = k.c.inputs.size();
  if (n == 0) return;
  double worst = 0;
  std::vector<BatchAxis> first(n, 0), mixed(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t last = k.c.inputs[i].rank();
    mixed[i] = i % 2 == 0 ? last : 0;
    for (std::int64_t axis : {std::int64_t{0}, last}) {
      std::vector<BatchAxis> one(n);
      one[i] = axis;
      worst = std::max(worst, check_axes(k, one));
    }
  }
  if (n > 1) worst = std::max(worst, check_axes(k, first));
  if (n > 1) worst = std::max(worst, check_axes(k, mixed));
  note(k, "batch", worst);
}

}  // namespace braintrace::testing::internal
