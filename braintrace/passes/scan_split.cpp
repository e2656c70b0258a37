// SPDX-License-Identifier: Apache-2.0
// Which part of a loop's body is computed where.
#include <algorithm>

#include "braintrace/ir/subgraph.h"
#include "braintrace/passes/scan_split_impl.h"

namespace braintrace {
namespace {

using Marks = std::vector<bool>;  // by value of the body

bool is_heavy(const Lowering& l) {
  return std::holds_alternative<lowering::Gemm>(l) ||
         std::holds_alternative<lowering::Conv>(l) ||
         std::holds_alternative<lowering::Sparse>(l);
}

bool only_moves_data(const Lowering& l) {
  return std::holds_alternative<lowering::Constant>(l) ||
         std::holds_alternative<lowering::Broadcast>(l) ||
         std::holds_alternative<lowering::Reshape>(l);
}

class Planner {
 public:
  Planner(const ScanView& scan, const std::vector<bool>& used)
      : scan_(scan), g_(*scan.body), lowered_(g_), used_(used) {
    num_ys_ = g_.outputs().size() - scan.num_carry;
    find_live();
    find_dependence();
    find_ahead();
  }

  ScanSplit run(bool move) {
    if (!move) std::fill(ahead_.begin(), ahead_.end(), false);
    split_.ys.assign(num_ys_, Place::unused);
    roots_ = carried_outputs();
    if (!move) {
      for (std::size_t i = 0; i < num_ys_; ++i)
        if (used_y(i)) roots_.push_back(y(i));
    } else {
      keep_immovable();
    }
    in_loop_ = needed_in_loop();
    place_ys(move);
    if (move) drop_cheap();
    collect_inputs();
    split_.changes = changes();
    return split_;
  }

  // Per step, beyond what was stacked before.
  std::int64_t extra_bytes() const {
    std::int64_t bytes = 0;
    for (ValueId v : split_.stacked) bytes += num_bytes(g_.type(v));
    for (ValueId v : split_.ahead) bytes += num_bytes(g_.type(v));
    for (std::size_t i = 0; i < num_ys_; ++i)
      if (split_.ys[i] == Place::loop) bytes -= num_bytes(g_.type(y(i)));
    return bytes;
  }

 private:
  ValueId y(std::size_t i) const { return g_.outputs()[scan_.num_carry + i]; }
  bool used_y(std::size_t i) const { return used_[scan_.num_carry + i]; }
  ValueId carry_in(std::size_t k) const { return g_.inputs()[scan_.num_consts + k]; }
  std::span<const ValueId> xs() const {
    return g_.inputs().subspan(scan_.num_consts + scan_.num_carry);
  }
  bool is_x(ValueId v) const {
    return v.index >= scan_.num_consts + scan_.num_carry && v.index < g_.inputs().size();
  }
  bool varies(ValueId v) const { return from_carry_[v.index] || from_x_[v.index]; }

  // Values on the way from the roots back to the inputs; `stop` values are marked and not
  // followed.
  template <class Stop>
  Marks closure(std::span<const ValueId> roots, Stop stop) const {
    Marks marks(g_.num_values(), false);
    for (ValueId v : roots) marks[v.index] = true;
    for (std::size_t i = g_.nodes().size(); i-- > 0;) {
      const Node& n = g_.nodes()[i];
      const bool follow = std::any_of(n.outputs.begin(), n.outputs.end(), [&](ValueId v) {
        return marks[v.index] && !stop(v);
      });
      if (!follow) continue;
      for (ValueId v : n.inputs) marks[v.index] = true;
    }
    return marks;
  }

  void find_live() {
    split_.carried.assign(scan_.num_carry, false);
    split_.unchanged.assign(scan_.num_carry, false);
    std::vector<ValueId> roots;
    for (std::size_t i = 0; i < num_ys_; ++i)
      if (used_y(i)) roots.push_back(y(i));
    for (std::size_t k = 0; k < scan_.num_carry; ++k) {
      split_.unchanged[k] = g_.outputs()[k] == carry_in(k);
      split_.carried[k] = used_[k];
      if (used_[k]) roots.push_back(g_.outputs()[k]);
    }
    for (bool grew = true; grew;) {
      grew = false;
      needed_ = closure(roots, [](ValueId) { return false; });
      for (std::size_t k = 0; k < scan_.num_carry; ++k) {
        if (split_.carried[k] || !needed_[carry_in(k).index]) continue;
        split_.carried[k] = grew = true;
        roots.push_back(g_.outputs()[k]);
      }
    }
    for (std::size_t k = 0; k < scan_.num_carry; ++k)
      if (split_.unchanged[k]) split_.carried[k] = false;
  }

  void find_dependence() {
    std::vector<ValueId> carries;
    for (std::size_t k = 0; k < scan_.num_carry; ++k)
      if (!split_.unchanged[k]) carries.push_back(carry_in(k));
    from_carry_ = depends_on(g_, carries);
    from_x_ = depends_on(g_, xs());
  }

  // It can be computed for all steps at once, at the cost of its steps.
  bool is_movable(const Node& n) const {
    if (has(n.op->traits, Trait::region) || has(n.op->traits, Trait::random))
      return false;
    const Lowering& l = lowered_.lowering(n);
    const bool any = std::holds_alternative<lowering::Elementwise>(l) ||
                     std::holds_alternative<lowering::Transpose>(l) ||
                     std::holds_alternative<lowering::Slice>(l) ||
                     std::holds_alternative<lowering::Pad>(l) ||
                     std::holds_alternative<lowering::Concatenate>(l) ||
                     std::holds_alternative<lowering::Reduce>(l) ||
                     std::holds_alternative<lowering::Gemm>(l) || only_moves_data(l);
    if (any) return true;
    const auto varying = std::count_if(n.inputs.begin(), n.inputs.end(),
                                       [&](ValueId v) { return varies(v); });
    return varying <= 1 && (n.inputs.empty() || varying == varies(n.inputs[0]));
  }

  // Values that depend on xs only and whose computation holds a product.
  void find_ahead() {
    ahead_.assign(g_.num_values(), false);
    ready_.assign(g_.num_values(), false);
    for (ValueId v : g_.inputs()) ready_[v.index] = !from_carry_[v.index];
    for (const Node& n : g_.nodes()) {
      bool ready = is_movable(n);
      std::int64_t ahead_bytes = 0, bytes = 0;
      for (ValueId v : n.inputs) {
        ready = ready && (ready_[v.index] || !varies(v));
        if (ahead_[v.index]) ahead_bytes += num_bytes(g_.type(v));
      }
      for (ValueId v : n.outputs) bytes += num_bytes(g_.type(v));
      const bool pays =
          is_heavy(lowered_.lowering(n)) || (ahead_bytes > 0 && bytes <= ahead_bytes);
      for (ValueId v : n.outputs) {
        ready_[v.index] = ready;
        ahead_[v.index] = ready && pays && from_x_[v.index] && !from_carry_[v.index];
      }
    }
  }

  std::vector<ValueId> carried_outputs() const {
    std::vector<ValueId> out;
    for (std::size_t k = 0; k < scan_.num_carry; ++k)
      if (split_.carried[k]) out.push_back(g_.outputs()[k]);
    return out;
  }

  void keep_immovable() {
    for (const Node& n : g_.nodes()) {
      if (is_movable(n)) continue;
      for (ValueId v : n.outputs)
        if (needed_[v.index] && varies(v)) roots_.push_back(v);
    }
  }

  Marks needed_in_loop() const {
    return closure(roots_, [&](ValueId v) { return ahead_[v.index] || !varies(v); });
  }

  // A value of the loop that is computed from its carry or stays in it for good.
  bool is_loop_value(ValueId v) const {
    return in_loop_[v.index] && varies(v) && !ready_[v.index];
  }

  struct Cone {
    bool heavy = false;
    std::vector<ValueId> frontier;  // values of the loop it starts from
  };
  Cone cone_of(ValueId v) const {
    const auto is_carry = [&](ValueId u) {
      return from_carry_[u.index] && !lowered_.producer(u);
    };
    const auto stop = [&](ValueId u) {
      return !varies(u) || is_carry(u) || is_loop_value(u);
    };
    const Marks marks = closure(std::span(&v, 1), stop);
    Cone cone;
    for (std::uint32_t i = 0; i < g_.num_values(); ++i) {
      if (!marks[i] || !varies({i})) continue;
      if (is_carry({i}) || is_loop_value({i})) {
        cone.frontier.push_back({i});
      } else if (const Node* n = lowered_.producer({i})) {
        cone.heavy = cone.heavy || is_heavy(lowered_.lowering(*n));
      }
    }
    return cone;
  }

  bool is_stacked(ValueId v) const {
    return std::find(split_.stacked.begin(), split_.stacked.end(), v) !=
           split_.stacked.end();
  }
  void stack(ValueId v) {
    if (!is_stacked(v)) split_.stacked.push_back(v);
  }

  void place_ys(bool move) {
    split_.stacked.clear();
    for (std::size_t i = 0; i < num_ys_; ++i) {
      if (!used_y(i)) continue;
      if (!varies(y(i))) {
        split_.ys[i] = Place::invariant;
      } else if (is_x(y(i))) {
        split_.ys[i] = Place::read;
      } else if (!move || is_loop_value(y(i)) || !lowered_.producer(y(i))) {
        split_.ys[i] = Place::loop;
        stack(y(i));
      }
    }
    for (const bool heavy : {true, false})
      for (std::size_t i = 0; i < num_ys_; ++i)
        if (used_y(i) && split_.ys[i] == Place::unused) place_cone(i, heavy);
  }

  // Products first: what they need is stacked in any case.
  void place_cone(std::size_t i, bool heavy_round) {
    const Cone cone = cone_of(y(i));
    if (heavy_round && !cone.heavy) return;
    std::int64_t missing = 0;
    for (ValueId v : cone.frontier)
      if (!is_stacked(v)) missing += num_bytes(g_.type(v));
    const bool moves = cone.heavy || missing <= num_bytes(g_.type(y(i)));
    split_.ys[i] = moves ? Place::after : Place::loop;
    if (!moves) return stack(y(i));
    for (ValueId v : cone.frontier) stack(v);
  }

  // Stacked values that follow cheaply from other stacked ones are computed behind the
  // loop. Later values first, so that each may rest on earlier ones.
  void drop_cheap() {
    std::vector<ValueId> order = split_.stacked;
    std::sort(order.begin(), order.end(), std::greater<>());
    for (ValueId v : order) {
      const Node* n = lowered_.producer(v);
      if (!n || !is_cheap(lowered_.lowering(*n))) continue;
      const bool follows =
          std::all_of(n->inputs.begin(), n->inputs.end(), [&](ValueId u) {
            return !varies(u) || is_x(u) || ahead_[u.index] || is_stacked(u);
          });
      if (!follows) continue;
      std::erase(split_.stacked, v);
      for (std::size_t i = 0; i < num_ys_; ++i)
        if (split_.ys[i] == Place::loop && y(i) == v) split_.ys[i] = Place::after;
    }
  }

  // What the loop itself reads of the values computed before it.
  void collect_inputs() {
    std::vector<ValueId> roots = carried_outputs();
    roots.insert(roots.end(), split_.stacked.begin(), split_.stacked.end());
    const auto is_once = [&](ValueId v) {
      const Node* n = lowered_.producer(v);
      return n && !varies(v) && !only_moves_data(lowered_.lowering(*n));
    };
    const Marks marks =
        closure(roots, [&](ValueId v) { return ahead_[v.index] || is_once(v); });
    split_.once.clear();
    split_.ahead.clear();
    for (std::uint32_t i = 0; i < g_.num_values(); ++i) {
      if (!marks[i]) continue;
      if (is_once({i})) split_.once.push_back({i});
      if (ahead_[i]) split_.ahead.push_back({i});
    }
  }

  bool changes() const {
    const bool all_carried = std::all_of(split_.carried.begin(), split_.carried.end(),
                                         [](bool c) { return c; });
    const bool all_stacked = std::all_of(split_.ys.begin(), split_.ys.end(),
                                         [](Place p) { return p == Place::loop; });
    return !all_carried || !all_stacked || !split_.once.empty() || !split_.ahead.empty();
  }

  const ScanView& scan_;
  const Graph& g_;
  const LoweredGraph lowered_;
  const std::vector<bool>& used_;
  std::size_t num_ys_ = 0;
  ScanSplit split_;
  std::vector<ValueId> roots_;  // computed in the loop in any case
  Marks needed_;                // reaches an output somebody reads
  Marks from_carry_, from_x_;
  Marks ready_;  // can be computed before the loop
  Marks ahead_;  // ... and is
  Marks in_loop_;
};

}  // namespace

bool is_cheap(const Lowering& l) {
  static constexpr MicroOp cheap[] = {
      MicroOp::copy, MicroOp::neg,  MicroOp::abs,   MicroOp::add,          MicroOp::sub,
      MicroOp::mul,  MicroOp::max,  MicroOp::min,   MicroOp::select,       MicroOp::equal,
      MicroOp::less, MicroOp::sign, MicroOp::clamp, MicroOp::greater_equal};
  const auto* e = std::get_if<lowering::Elementwise>(&l);
  return e && std::find(std::begin(cheap), std::end(cheap), e->op) != std::end(cheap);
}

std::int64_t num_bytes(const Type& t) {
  return t.size() * static_cast<std::int64_t>(size_of(t.dtype));
}

ScanSplit plan_split(const ScanView& scan, const std::vector<bool>& used,
                     const SplitScanOptions& options) {
  Planner moving(scan, used);
  ScanSplit split = moving.run(true);
  if (moving.extra_bytes() * scan.length <= options.max_bytes) return split;
  return Planner(scan, used).run(false);
}

}  // namespace braintrace
