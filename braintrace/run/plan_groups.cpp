// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "braintrace/ir/op_def.h"
#include "braintrace/run/fused_sum.h"
#include "braintrace/run/plan_groups_impl.h"
#include "braintrace/run/tile_program.h"

namespace braintrace::plan {
namespace {

bool fuses(const Graph& g, const Node& n, const Lowering& l) {
  const auto* e = std::get_if<lowering::Elementwise>(&l);
  if (!e || is_window(g, n, l)) return false;
  return tile_supports(e->op, g.type(n.inputs.back()).dtype, g.type(n.outputs[0]).dtype);
}

// Sums over its first axes?
bool sums_leading_axes(const Lowering& l) {
  const auto* r = std::get_if<lowering::Reduce>(&l);
  return r && r->kind == ReduceKind::sum && !r->axes.empty() &&
         r->axes == iota_ints(std::ssize(r->axes));
}

// Stages count how often a value has to go through memory. A fused node takes part in
// the stage of its inputs; what reads it from memory has to wait for the next one. So two
// fused nodes of one stage have no path between them that leaves the stage.
class Stages {
 public:
  Stages(const Graph& g, std::span<const Lowering> lowered)
      : g_(g),
        fused_(g.nodes().size()),
        stage_(g.nodes().size(), 0),
        earliest_(g.nodes().size(), 0),
        ready_(g.num_values(), 0),
        producer_(g.num_values(), -1),
        leaves_(g.nodes().size()),
        is_view_(g.nodes().size()),
        joins_(g.nodes().size()),
        adds_products_(additions_of_products(g, lowered)) {
    place_all(lowered);
    if (wait_for_siblings(lowered)) {
      place_all(lowered);
      if (give_up_waiting()) place_all(lowered);
    }
    sink();
  }

  bool fused(std::size_t node) const { return fused_[node]; }
  bool adds_products(std::size_t node) const { return adds_products_[node]; }
  int stage(std::size_t node) const { return stage_[node]; }
  std::int64_t producer(ValueId v) const { return producer_[v.index]; }

 private:
  static constexpr std::size_t kFewLeaves = 2;
  static constexpr std::int64_t kSmallShare = 8;

  void place_all(std::span<const Lowering> lowered) {
    for (std::size_t i = 0; i < g_.nodes().size(); ++i) add(i, lowered[i]);
  }

  void add(std::size_t i, const Lowering& l) {
    const Node& n = g_.nodes()[i];
    stage_[i] = earliest_[i];
    leaves_[i].clear();
    fused_[i] = fuses(g_, n, l) && !adds_products_[i];
    is_view_[i] = is_window(g_, n, l);
    joins_[i] = std::holds_alternative<lowering::Concatenate>(l);
    for (ValueId v : n.outputs) producer_[v.index] = static_cast<std::int64_t>(i);
    for (ValueId v : n.inputs)
      stage_[i] = std::max(stage_[i], fused_[i] ? seen_fused(v) : ready_[v.index]);
    for (ValueId v : n.outputs) ready_[v.index] = stage_[i] + (fused_[i] ? 1 : 0);
    if (fused_[i]) find_leaves(i);
  }

  bool is_fused(ValueId v) const {
    const std::int64_t p = producer_[v.index];
    return p >= 0 && fused_[static_cast<std::size_t>(p)];
  }
  int seen_fused(ValueId v) const {
    return is_fused(v) ? stage_[static_cast<std::size_t>(producer_[v.index])]
                       : ready_[v.index];
  }

  // A number or a row for many elements: costs next to nothing to read.
  bool is_small(ValueId v, std::int64_t elements) const {
    while (g_.type(v).size() != 1 && g_.type(v).size() * kSmallShare > elements) {
      const std::int64_t p = producer_[v.index];
      if (p < 0 || !is_view_[static_cast<std::size_t>(p)]) return false;
      const ValueId behind = g_.nodes()[static_cast<std::size_t>(p)].inputs[0];
      if (g_.type(behind).size() > g_.type(v).size()) return false;
      v = behind;
    }
    return true;
  }

  // The values of memory behind a node and its stage, as far as there are few.
  void find_leaves(std::size_t i) {
    std::set<ValueId>& leaves = leaves_[i];
    const std::int64_t elements = g_.type(g_.nodes()[i].outputs[0]).size();
    for (ValueId v : g_.nodes()[i].inputs) {
      const auto p = static_cast<std::size_t>(producer_[v.index]);
      if (is_fused(v) && stage_[p] == stage_[i])
        leaves.insert(leaves_[p].begin(), leaves_[p].end());
      else if (!is_small(v, elements))
        leaves.insert(v);
      if (leaves.size() > kFewLeaves) return;
    }
  }

  // A sum over leading axes of a value times something waits for those who go through
  // that value in a later stage anyway: it is gone through once. True if one waits.
  bool wait_for_siblings(std::span<const Lowering> lowered) {
    const auto readers = readers_of_values();
    for (std::size_t i = 0; i < g_.nodes().size(); ++i) {
      if (!sums_leading_axes(lowered[i])) continue;
      const ValueId summed = g_.nodes()[i].inputs[0];
      if (!is_fused(summed) || readers[summed.index].size() != 1) continue;
      const auto product = static_cast<std::size_t>(producer_[summed.index]);
      for (ValueId v : g_.nodes()[product].inputs) {
        if (!is_fused(v) || g_.type(v).shape != g_.type(summed).shape) continue;
        for (std::size_t r : readers[v.index])
          if (fused_[r] && stage_[r] > std::max(stage_[product], earliest_[product])) {
            earliest_[product] = stage_[r];
            siblings_[product] = r;
          }
      }
    }
    return !siblings_.empty();
  }
  // Those who wait for somebody that waits for their sum.
  bool give_up_waiting() {
    bool any = false;
    for (const auto& [product, sibling] : siblings_) {
      if (stage_[sibling] == stage_[product]) continue;
      earliest_[product] = 0;
      any = true;
    }
    return any;
  }
  std::vector<std::vector<std::size_t>> readers_of_values() const {
    std::vector<std::vector<std::size_t>> readers(g_.num_values());
    for (std::size_t i = 0; i < g_.nodes().size(); ++i)
      for (ValueId v : g_.nodes()[i].inputs) readers[v.index].push_back(i);
    return readers;
  }

  // A value that only later stages read, and that takes no more than two others to
  // compute, is computed there instead of going through memory. Outputs that nobody reads
  // can wait too: for the last stage that reads what they are made of.
  void sink() {
    const auto readers = readers_of_values();
    std::vector<bool> is_output(g_.num_values(), false);
    for (ValueId v : g_.outputs()) is_output[v.index] = true;
    for (std::size_t i = g_.nodes().size(); i-- > 0;) {
      if (!fused_[i]) continue;
      const ValueId v = g_.nodes()[i].outputs[0];
      const bool passed_on = is_output[v.index] || !all_fused(readers[v.index]);
      if (!passed_on && leaves_[i].size() <= kFewLeaves)
        stage_[i] = std::max(stage_[i], first_stage(readers[v.index]));
      else if (is_passed_to_outputs(v, readers, is_output))
        stage_[i] = std::max(stage_[i], last_stage_beside(i, readers));
    }
  }

  bool all_fused(const std::vector<std::size_t>& nodes) const {
    return std::all_of(nodes.begin(), nodes.end(),
                       [&](std::size_t n) { return fused_[n]; });
  }
  int first_stage(const std::vector<std::size_t>& readers) const {
    int first = kLater;
    for (std::size_t r : readers) first = std::min(first, stage_[r]);
    return first == kLater ? 0 : first;
  }
  // Only outputs read the value: directly, under another shape, or as a part.
  bool is_passed_to_outputs(ValueId v,
                            const std::vector<std::vector<std::size_t>>& readers,
                            const std::vector<bool>& is_output) const {
    if (readers[v.index].empty()) return is_output[v.index];
    return std::all_of(readers[v.index].begin(), readers[v.index].end(),
                       [&](std::size_t r) {
                         const Node& n = g_.nodes()[r];
                         return !fused_[r] && (is_view_[r] || joins_[r]) &&
                                is_passed_to_outputs(n.outputs[0], readers, is_output);
                       });
  }
  // The last stage that reads one of the node's fused inputs.
  int last_stage_beside(std::size_t i,
                        const std::vector<std::vector<std::size_t>>& readers) const {
    int last = stage_[i];
    for (ValueId v : g_.nodes()[i].inputs) {
      if (!is_fused(v)) continue;
      for (std::size_t r : readers[v.index])
        if (fused_[r]) last = std::max(last, stage_[r]);
    }
    return last;
  }

  static constexpr int kLater = std::numeric_limits<int>::max();
  const Graph& g_;
  std::vector<bool> fused_;
  std::vector<int> stage_;                       // by node
  std::vector<int> earliest_;                    // by node: its stage may not be before
  std::map<std::size_t, std::size_t> siblings_;  // by product: whom it waits for
  std::vector<int> ready_;                       // by value
  std::vector<std::int64_t> producer_;           // by value: node, or -1
  std::vector<std::set<ValueId>> leaves_;        // by node
  std::vector<bool> is_view_, joins_;            // by node
  std::vector<bool> adds_products_;              // by node
};

// A sum over the first `num_lead` axes of a fused value; nullopt when it is better done
// by itself: what is summed is small, or rows are too short to run a chain on each.
struct LeadingSum {
  std::size_t producer, num_lead;
};
std::optional<LeadingSum> as_leading_sum(const Graph& g, const Node& n, const Lowering& l,
                                         const Stages& s) {
  // A chain runs once per position that is summed over: on one row, or on short ones,
  // that costs as much as it saves unless much is left of the sum.
  constexpr std::int64_t kLongRow = 8, kFew = 1 << 10, kMany = 1 << 15;
  constexpr std::int64_t kFewLeft = 128, kManyLeft = 2048;
  if (!sums_leading_axes(l)) return std::nullopt;
  const Type &in = g.type(n.inputs[0]), &out = g.type(n.outputs[0]);
  const std::int64_t p = s.producer(n.inputs[0]);
  if (p < 0 || !s.fused(static_cast<std::size_t>(p)) || !is_float(in.dtype))
    return std::nullopt;
  const bool long_rows = out.rank() > 1 && out.shape.back() >= kLongRow;
  if (in.size() < (long_rows ? kFew : kMany) ||
      out.size() < (long_rows ? kFewLeft : kManyLeft))
    return std::nullopt;
  return LeadingSum{static_cast<std::size_t>(p),
                    std::get<lowering::Reduce>(l).axes.size()};
}

// Sums leave groups that read and write more than one pass with sums can point at.
void part_with_sums(std::vector<Group>& groups, const Graph& g) {
  std::vector<std::size_t> group_of(g.nodes().size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (std::size_t n : groups[i].nodes) group_of[n] = i;
    for (std::size_t n : groups[i].sums) group_of[n] = i;
  }
  std::vector<std::set<ValueId>> read(groups.size()), written(groups.size());
  std::vector<std::int64_t> producer(g.num_values(), -1);
  const auto note_read = [&](ValueId v, std::size_t by) {
    const std::int64_t p = producer[v.index];
    const std::size_t from =
        p < 0 ? groups.size() : group_of[static_cast<std::size_t>(p)];
    if (from == by) return;
    if (by < groups.size()) read[by].insert(v);
    if (from < groups.size()) written[from].insert(v);
  };
  for (std::size_t n = 0; n < g.nodes().size(); ++n) {
    for (ValueId v : g.nodes()[n].inputs) note_read(v, group_of[n]);
    for (ValueId v : g.nodes()[n].outputs)
      producer[v.index] = static_cast<std::int64_t>(n);
  }
  for (ValueId v : g.outputs()) note_read(v, groups.size());
  for (std::size_t i = 0, count = groups.size(); i < count; ++i) {
    const std::size_t sums = groups[i].sums.size();
    if (sums == 0 ||
        read[i].size() + written[i].size() + 2 * sums <= FusedSum::kMaxPointers)
      continue;
    for (std::size_t n : std::exchange(groups[i].sums, {}))
      groups.push_back({{n}, false});
  }
}

}  // namespace

bool is_window(const Graph& g, const Node& n, const Lowering& l) {
  if (std::holds_alternative<lowering::Reshape>(l) ||
      std::holds_alternative<lowering::Transpose>(l) ||
      std::holds_alternative<lowering::Slice>(l) ||
      std::holds_alternative<lowering::Broadcast>(l))
    return true;
  const auto* e = std::get_if<lowering::Elementwise>(&l);
  return e && (e->op == MicroOp::copy || e->op == MicroOp::convert) &&
         g.type(n.inputs[0]) == g.type(n.outputs[0]);
}

namespace {

// The last group is an addition: its products, and sums of them, leave their own groups.
void take_in_products(std::vector<Group>& groups, std::vector<std::size_t>& group_of,
                      const Node& addition, const Stages& s) {
  std::vector<std::size_t> taken;
  for (ValueId v : addition.inputs) {
    if (s.producer(v) < 0) continue;
    auto& from = groups[group_of[static_cast<std::size_t>(s.producer(v))]].nodes;
    taken.insert(taken.end(), from.begin(), from.end());
    from.clear();
  }
  std::sort(taken.begin(), taken.end());
  for (std::size_t n : taken) group_of[n] = groups.size() - 1;
  auto& nodes = groups.back().nodes;
  nodes.insert(nodes.begin(), taken.begin(), taken.end());
}

}  // namespace

std::vector<Group> groups_of(const Graph& g, std::span<const Lowering> lowered,
                             std::span<const Overwrite> overwrites) {
  constexpr std::size_t kMostNodes = 256;  // values of one pass lie in a worker's scratch
  const Stages stages(g, lowered);
  std::map<std::pair<int, Shape>, std::size_t> fused;  // stage and shape -> group
  std::vector<Group> groups;
  std::vector<std::size_t> group_of(g.nodes().size());
  for (std::size_t n = 0; n < g.nodes().size(); ++n) {
    if (const auto sum = as_leading_sum(g, g.nodes()[n], lowered[n], stages)) {
      Group& group = groups[group_of[sum->producer]];
      if (group.sums.empty() || group.num_lead == sum->num_lead) {
        group.sums.push_back(n);
        group.num_lead = sum->num_lead;
        continue;
      }
    }
    if (!stages.fused(n)) {
      groups.push_back({{n}, false});
      group_of[n] = groups.size() - 1;
      if (stages.adds_products(n))
        take_in_products(groups, group_of, g.nodes()[n], stages);
      continue;
    }
    const Shape& shape = g.type(g.nodes()[n].outputs[0]).shape;
    const auto [at, fresh] = fused.try_emplace({stages.stage(n), shape}, groups.size());
    // Within a stage, what follows a part never comes before it again.
    const bool full = !fresh && groups[at->second].nodes.size() == kMostNodes;
    if (full) at->second = groups.size();
    if (fresh || full) groups.push_back({{}, true});
    groups[at->second].nodes.push_back(n);
    group_of[n] = at->second;
  }
  std::erase_if(groups, [](const Group& group) { return group.nodes.empty(); });
  part_with_sums(groups, g);
  return ordered(std::move(groups), g, lowered, overwrites);
}

}  // namespace braintrace::plan
