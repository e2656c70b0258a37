// SPDX-License-Identifier: Apache-2.0
// Right factors that stay the same while a loop runs are packed once before it.
#include <algorithm>

#include "braintrace/run/event_gemm.h"
#include "braintrace/run/gemm_kernels_impl.h"
#include "braintrace/run/plan_planner_impl.h"

namespace braintrace::plan {
namespace {

// A right factor of events that stays in the cache near a core is read as it is.
constexpr std::size_t kTiledBytes = std::size_t{1} << 19;

}  // namespace

void Planner::pack_invariant(Scope& s, ValueId factor, GemmStep& step) {
  Scope* home = &s;
  int time = 0;
  bool repeats = false;
  while (comes_from_outside(*home, step.b)) {
    time = home->begin;
    repeats = repeats || home->repeats;
    home = home->outer;
  }
  if (!repeats || step.spec.batch != 1) return;
  const std::size_t bytes =
      step.events ? tiled_b_bytes(step.spec) : packed_b_bytes(step.spec);
  if (bytes == 0 || (step.events && bytes < kTiledBytes)) return;
  const View whole{
      .buffer = add_buffer(Place::arena, static_cast<std::int64_t>(bytes), home->depth),
      .dtype = step.spec.dtype};
  write(whole, time);
  const bool only_here =
      !step.events && s.outer == home && s.readers[factor.index].size() == 1;
  std::vector<PackStep> packs;
  if (only_here) packs = packs_of_parts(*home, step, whole);
  if (packs.empty()) packs.push_back({step.spec, step.b, whole, step.events});
  for (PackStep& p : packs) {
    read(p.b, time);
    home->block.steps.push_back({std::move(p)});
  }
  step.b = whole;
  step.packed_b = true;
}

// A factor joined from weights (the gates of a cell), and for this product alone: the
// weights are packed as they are, and not joined. Empty: there is no such join.
std::vector<PackStep> Planner::packs_of_parts(Scope& home, const GemmStep& step,
                                              View whole) {
  for (std::size_t i = 0; i < home.g.nodes().size(); ++i) {
    const auto* join = std::get_if<lowering::Concatenate>(&home.lowered[i]);
    const Node& n = home.g.nodes()[i];
    const ValueId v = n.outputs[0];
    if (!join || !home.views[v.index] || !same_place(*home.views[v.index], step.b))
      continue;
    if (home.readers[v.index].size() != 1 || home.is_output[v.index] ||
        step.b.shape.size() != 2)
      return {};
    const auto across = static_cast<std::size_t>(join->axis), down = 1 - across;
    if (step.spec.b.col != step.b.strides[across] ||
        step.spec.b.row != step.b.strides[down])
      return {};
    std::vector<PackStep> packs;
    for (ValueId input : n.inputs) {
      const View part = view(home, input);
      const std::int64_t column = whole.offset / step.spec.k;
      if (buffer(part).place != Place::input || column % gemm_panel(part.dtype) != 0)
        return {};
      GemmSpec spec = step.spec;
      spec.n = part.shape[across];
      spec.b = {.row = part.strides[down], .col = part.strides[across]};
      packs.push_back({spec, part, whole});
      whole.offset += part.size();
    }
    leave_out_copies(home, step.b.buffer);
    return packs;
  }
  return {};
}

// Nobody reads what is copied there.
void Planner::leave_out_copies(Scope& s, int to) {
  std::erase_if(s.block.steps, [&](const Step& step) {
    const auto* copy = std::get_if<CopyStep>(&step.kind);
    return copy && copy->to.buffer == to;
  });
  Buffer& b = program_.buffers[static_cast<std::size_t>(to)];
  b.first = b.first_write = kNever;
  b.last = b.last_read = -1;
}

}  // namespace braintrace::plan
