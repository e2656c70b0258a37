// SPDX-License-Identifier: Apache-2.0
// The order in which groups of nodes run.
#include <functional>
#include <queue>
#include <utility>

#include "braintrace/base/error.h"
#include "braintrace/run/plan_groups_impl.h"

namespace braintrace::plan {
namespace {

// Groups and who waits for whom.
class Waiting {
 public:
  Waiting(const std::vector<Group>& groups, const Graph& g,
          std::span<const Lowering> lowered)
      : g_(g),
        lowered_(lowered),
        group_of_(g.nodes().size()),
        producer_(g.num_values(), kNone),
        readers_(g.num_values()),
        later_(groups.size()) {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (std::size_t n : groups[i].nodes) group_of_[n] = i;
      for (std::size_t n : groups[i].sums) group_of_[n] = i;
    }
    for (std::size_t n = 0; n < g.nodes().size(); ++n) {
      for (ValueId v : g.nodes()[n].outputs) producer_[v.index] = n;
      for (ValueId v : g.nodes()[n].inputs) {
        readers_[v.index].push_back(n);
        if (producer_[v.index] == kNone) continue;
        const std::size_t from = group_of_[producer_[v.index]];
        if (from != group_of_[n]) later_[from].push_back(group_of_[n]);
      }
    }
  }

  // Who writes the output waits for who reads the input, unless these wait for it.
  void let_wait(const Overwrite& o) {
    const std::size_t writer = writer_of(o.output);
    if (writer == kNone) return;
    std::vector<std::size_t> readers;
    find_readers(o.input, readers);
    const std::vector<bool> behind = all_behind(writer);
    for (std::size_t r : readers)
      if (!behind[r]) later_[r].push_back(writer);
  }

  const std::vector<std::vector<std::size_t>>& later() const { return later_; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  bool is_view(std::size_t node) const {
    return is_window(g_, g_.nodes()[node], lowered_[node]);
  }
  std::size_t writer_of(ValueId v) const {
    std::size_t p = producer_[v.index];
    while (p != kNone && is_view(p)) p = producer_[g_.nodes()[p].inputs[0].index];
    return p == kNone ? kNone : group_of_[p];
  }
  void find_readers(ValueId v, std::vector<std::size_t>& found) const {
    for (std::size_t n : readers_[v.index]) {
      if (is_view(n))
        find_readers(g_.nodes()[n].outputs[0], found);
      else
        found.push_back(group_of_[n]);
    }
  }
  // The group itself and all that wait for it.
  std::vector<bool> all_behind(std::size_t group) const {
    std::vector<bool> seen(later_.size(), false);
    std::vector<std::size_t> open = {group};
    seen[group] = true;
    while (!open.empty()) {
      const std::size_t i = open.back();
      open.pop_back();
      for (std::size_t next : later_[i])
        if (!seen[next]) seen[next] = true, open.push_back(next);
    }
    return seen;
  }

  const Graph& g_;
  std::span<const Lowering> lowered_;
  std::vector<std::size_t> group_of_;              // by node
  std::vector<std::size_t> producer_;              // by value: node
  std::vector<std::vector<std::size_t>> readers_;  // by value: nodes
  std::vector<std::vector<std::size_t>> later_;    // by group: groups
};

}  // namespace

// Producers come first; among those ready, the one whose last node stands first in the
// program.
std::vector<Group> ordered(std::vector<Group> groups, const Graph& g,
                           std::span<const Lowering> lowered,
                           std::span<const Overwrite> overwrites) {
  Waiting waiting(groups, g, lowered);
  for (const Overwrite& o : overwrites) waiting.let_wait(o);
  std::vector<std::size_t> waits(groups.size(), 0);
  for (const auto& later : waiting.later())
    for (std::size_t i : later) ++waits[i];
  using Entry = std::pair<std::size_t, std::size_t>;  // last node, group
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (waits[i] == 0) ready.emplace(groups[i].nodes.back(), i);
  std::vector<Group> order;
  while (!ready.empty()) {
    const std::size_t i = ready.top().second;
    ready.pop();
    for (std::size_t next : waiting.later()[i])
      if (--waits[next] == 0) ready.emplace(groups[next].nodes.back(), next);
    order.push_back(std::move(groups[i]));
  }
  BT_INVARIANT(order.size() == groups.size());
  return order;
}

}  // namespace braintrace::plan
