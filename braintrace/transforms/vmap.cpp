// SPDX-License-Identifier: Apache-2.0
#include "braintrace/transforms/vmap.h"

#include <fmt/format.h>

#include "braintrace/ir/builder.h"

namespace braintrace {

Graph vmap(const Graph& g, std::int64_t size, const VmapOptions& options) {
  BT_REQUIRE(size >= 0, fmt::format("vmap: size must not be negative, got {}", size));
  std::vector<BatchAxis> axes = options.in_axes;
  if (axes.empty()) axes.resize(g.inputs().size(), 0);
  BT_REQUIRE(axes.size() == g.inputs().size(),
             fmt::format("vmap: the program has {} inputs, got {} in_axes",
                         g.inputs().size(), axes.size()));
  BT_REQUIRE(options.out_axes.empty() || options.out_axes.size() == g.outputs().size(),
             fmt::format("vmap: the program has {} outputs, got {} out_axes",
                         g.outputs().size(), options.out_axes.size()));
  const auto builder = Builder::create();
  std::vector<Value> inputs;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Type t = g.type(g.inputs()[i]);
    if (axes[i]) {
      axes[i] = normalize_axis("vmap", *axes[i], t.rank() + 1);
      t.shape.insert(t.shape.begin() + *axes[i], size);
    }
    inputs.push_back(builder->input(t));
  }
  BatchResult r = batch_graph(g, inputs, axes);
  for (std::size_t i = 0; i < r.values.size(); ++i) {
    r.values[i] = batch_in_front(r.values[i], r.axes[i], size);
    if (options.out_axes.empty()) continue;
    const std::int64_t to =
        normalize_axis("vmap", options.out_axes[i], r.values[i].rank());
    r.values[i] = move_axis(r.values[i], 0, to);
  }
  return builder->finish(r.values);
}

}  // namespace braintrace
