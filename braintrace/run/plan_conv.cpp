// SPDX-License-Identifier: Apache-2.0
// Convolutions: where images, kernels and results lie.
#include <algorithm>

#include "braintrace/run/plan_planner_impl.h"

namespace braintrace::plan {

namespace {

// Nullopt when images and positions do not each follow one stride.
std::optional<ConvPlaces> conv_places(const View& v, const ConvGeometry& g) {
  const auto rank = static_cast<std::int64_t>(v.shape.size());
  const auto spatial = static_cast<std::int64_t>(g.strides.size());
  const auto images = as_one(v, iota_ints(rank - 1 - spatial));
  Ints spatial_axes = iota_ints(rank - 1);
  spatial_axes.erase(spatial_axes.begin(), spatial_axes.end() - spatial);
  const auto positions = as_one(v, spatial_axes);
  if (!images || !positions) return std::nullopt;
  return ConvPlaces{images->stride, positions->stride, v.strides.back()};
}

std::optional<ConvKernelPlaces> conv_kernel_places(const View& v, const ConvGeometry& g) {
  const auto window = as_one(v, iota_ints(std::ssize(g.strides)));
  if (!window) return std::nullopt;
  return ConvKernelPlaces{window->stride, v.strides[v.strides.size() - 2],
                          v.strides.back()};
}

}  // namespace

// Where the result of a convolution goes: its home, or, if all that reads it puts
// channels in front of positions, a buffer in which they lie like that.
View Planner::place_images(Scope& s, const Node& n, const ConvGeometry& g) {
  const ValueId v = n.outputs[0];
  if (const auto& home = s.homes[v.index]; home && conv_places(*home, g))
    return place(s, v);
  const auto& readers = s.readers[v.index];
  const auto order = [&](std::size_t i) {
    const auto* t = std::get_if<lowering::Transpose>(&s.lowered[i]);
    return t ? t->permutation : Ints{};
  };
  const Ints first = readers.empty() ? Ints{} : order(readers[0]);
  const bool one_order = std::all_of(readers.begin(), readers.end(),
                                     [&](std::size_t i) { return order(i) == first; });
  if (!first.empty() && one_order && !s.is_output[v.index]) {
    const Type& t = s.g.type(s.g.nodes()[readers[0]].outputs[0]);
    const View whole = add_packed(Place::arena, t, s.depth);
    const View turned = transposed(whole, inverse(first));
    if (conv_places(turned, g)) s.homes[v.index] = turned;
  }
  return s.homes[v.index] && conv_places(*s.homes[v.index], g) ? place(s, v)
                                                               : place_packed(s, v);
}

void Planner::plan_conv(Scope& s, const Node& n, const ConvGeometry& g) {
  const View& given = view(s, n.inputs[0]);
  const View y = place_images(s, n, g);
  ConvSpec spec{y.dtype, given.shape, s.g.type(n.inputs[1]).shape, y.shape, g};
  spec.x_at = conv_places(given, g);
  spec.y_at = conv_places(y, g);
  View kernel = view(s, n.inputs[1]);
  spec.kernel_at = conv_kernel_places(kernel, g);
  const bool by_sums = spec.kernel_at && ConvKernel::takes(spec);
  if (!by_sums) {
    kernel = packed(s, kernel, tick());
    spec.kernel_at = std::nullopt;
  }
  const bool as_given = by_sums || (spec.x_at && ConvKernel::takes(spec));
  const View x = as_given ? given : packed(s, given, tick());
  if (!as_given) spec.x_at = conv_places(x, g);
  KernelStep step{ConvKernel(spec), {x, kernel}, y};
  for (std::size_t i = 2; i < n.inputs.size(); ++i)
    step.in.push_back(packed(s, view(s, n.inputs[i]), tick()));
  const int time = tick();
  for (const View& v : step.in) read(v, time);
  write(y, time);
  s.block.steps.push_back({std::move(step)});
}

}  // namespace braintrace::plan
