// SPDX-License-Identifier: Apache-2.0
// Which loops an exported program has: element-by-element nodes of one shape share a
// loop; reshapes, copies and stretches are ways of reading, not loops.
#include <algorithm>

#include <fmt/format.h>

#include "braintrace/io/export_impl.h"

namespace braintrace::internal {
namespace {

// Identity when nothing is stretched.
std::optional<StretchMap> stretch(const Type& in, const Type& out, const Ints& in_axes) {
  if (in.size() == out.size()) return std::nullopt;
  const Ints in_strides = row_major_strides(in.shape);
  Ints strides(out.shape.size(), 0);
  for (std::size_t i = 0; i < in_axes.size(); ++i)
    if (in.shape[i] != 1) strides[static_cast<std::size_t>(in_axes[i])] = in_strides[i];
  StretchMap map;
  for (std::size_t i = 0; i < out.shape.size(); ++i) {
    if (out.shape[i] == 1) continue;
    map.shape.push_back(out.shape[i]);
    map.strides.push_back(strides[i]);
  }
  return map;
}

std::vector<bool> live_nodes(const Graph& g) {
  std::vector<bool> needed(g.num_values(), false), live(g.nodes().size(), false);
  for (const ValueId v : g.outputs()) needed[v.index] = true;
  for (std::size_t i = live.size(); i-- > 0;) {
    const Node& n = g.nodes()[i];
    live[i] = std::any_of(n.outputs.begin(), n.outputs.end(),
                          [&](ValueId v) { return needed[v.index]; });
    if (!live[i]) continue;
    for (const ValueId v : n.inputs) needed[v.index] = true;
  }
  return live;
}

class Scheduler {
 public:
  explicit Scheduler(const Graph& g) : g_(g), users_(g.num_values()) {
    s_.views.resize(g.num_values());
    s_.literals.resize(g.num_values(), nullptr);
    s_.stored.resize(g.num_values(), false);
    s_.kernel_of.resize(g.num_values(), -1);
    for (const ValueId v : g.inputs()) s_.views[v.index] = {v, {}};
    live_ = live_nodes(g);
    for (std::size_t i = 0; i < live_.size(); ++i) {
      const Node& n = g.nodes()[i];
      lowered_.push_back(live_[i] ? lowering_of(g, n) : lowering::Evaluate{});
      read_by(n);
      if (live_[i] && waiting_[i] == 0) ready_.insert(i);
    }
  }

  ExportSchedule run() {
    while (!ready_.empty()) {
      if (place_views() || join_open()) continue;
      if (open_) {
        open_ = false;
        continue;
      }
      start_kernel();
    }
    mark_stored();
    return std::move(s_);
  }

 private:
  // Counts the inputs that are still to be computed.
  void read_by(const Node& n) {
    const std::size_t index = waiting_.size();
    waiting_.push_back(0);
    for (const ValueId v : n.inputs) {
      if (v.index >= g_.inputs().size()) {
        users_[v.index].push_back(index);
        ++waiting_.back();
      }
    }
  }
  void finish(std::size_t index) {
    ready_.erase(index);
    for (const ValueId v : node(index).outputs)
      for (const std::size_t user : users_[v.index])
        if (--waiting_[user] == 0 && live_[user]) ready_.insert(user);
  }
  const Node& node(std::size_t index) const { return g_.nodes()[index]; }
  int last_kernel() const { return static_cast<int>(s_.kernels.size()) - 1; }

  bool in_open_loop(ValueId v) const {
    return open_ && s_.kernel_of[s_.views[v.index].root.index] == last_kernel();
  }
  bool reads_open_loop(const Node& n) const {
    return std::any_of(n.inputs.begin(), n.inputs.end(),
                       [&](ValueId v) { return in_open_loop(v); });
  }

  // Constants, reshapes, copies and stretches. True when one was placed.
  bool place_views() {
    for (const std::size_t index : ready_) {
      if (!place_view(index)) continue;
      finish(index);
      return true;
    }
    return false;
  }
  bool place_view(std::size_t index) {
    const Node& n = node(index);
    const ValueId out = n.outputs[0];
    const Lowering& l = lowered_[index];
    if (std::holds_alternative<lowering::Constant>(l)) {
      s_.views[out.index] = {out, {}};
      s_.literals[out.index] = &n.attrs.array("value");
      return true;
    }
    const auto* e = std::get_if<lowering::Elementwise>(&l);
    if (std::holds_alternative<lowering::Reshape>(l) || (e && e->op == MicroOp::copy)) {
      s_.views[out.index] = s_.views[n.inputs[0].index];
      return true;
    }
    const auto* b = std::get_if<lowering::Broadcast>(&l);
    if (!b) return false;
    const auto map = stretch(g_.type(n.inputs[0]), g_.type(out), b->in_axes);
    // Elements of the open loop are not there yet under other places.
    if (map && in_open_loop(n.inputs[0])) return false;
    View view = s_.views[n.inputs[0].index];
    if (map) view.maps.insert(view.maps.begin(), *map);
    s_.views[out.index] = std::move(view);
    return true;
  }

  bool is_elementwise(std::size_t index) const {
    return std::holds_alternative<lowering::Elementwise>(lowered_[index]);
  }
  Shape shape_of(std::size_t index) const {
    return without_ones(g_.type(node(index).outputs[0]).shape);
  }
  bool join_open() {
    if (!open_) return false;
    for (const std::size_t index : ready_) {
      if (!is_elementwise(index) || shape_of(index) != open_shape_) continue;
      add_to_last(index);
      return true;
    }
    return false;
  }
  // Products and moves first: then more nodes are ready to share the next loop.
  void start_kernel() {
    const auto other = std::find_if(ready_.begin(), ready_.end(), [&](std::size_t index) {
      return !is_elementwise(index);
    });
    const std::size_t index = other == ready_.end() ? *ready_.begin() : *other;
    open_ = is_elementwise(index);
    open_shape_ = shape_of(index);
    s_.kernels.push_back({{}, open_});
    add_to_last(index);
  }
  void add_to_last(std::size_t index) {
    const Node& n = node(index);
    BT_INVARIANT(open_ || !reads_open_loop(n));
    BT_INVARIANT(n.outputs.size() == 1);
    s_.kernels.back().nodes.push_back(&n);
    s_.kernel_of[n.outputs[0].index] = last_kernel();
    s_.views[n.outputs[0].index] = {n.outputs[0], {}};
    finish(index);
  }

  // Values that another loop or the caller reads.
  void mark_stored() {
    for (int k = 0; k <= last_kernel(); ++k) {
      const ExportKernel& kernel = s_.kernels[static_cast<std::size_t>(k)];
      for (const Node* n : kernel.nodes) {
        if (!kernel.elementwise) s_.stored[n->outputs[0].index] = true;
        for (const ValueId v : n->inputs) {
          const ValueId root = s_.views[v.index].root;
          if (s_.kernel_of[root.index] != k) s_.stored[root.index] = true;
        }
      }
    }
    for (const ValueId v : g_.outputs()) s_.stored[s_.views[v.index].root.index] = true;
  }

  const Graph& g_;
  ExportSchedule s_;
  std::vector<Lowering> lowered_;                // by node
  std::vector<bool> live_;                       // by node: an output needs it
  std::vector<int> waiting_;                     // by node: inputs to come
  std::vector<std::vector<std::size_t>> users_;  // by value
  std::set<std::size_t> ready_;
  bool open_ = false;  // the last kernel may take more nodes
  Shape open_shape_;
};

template <class... Forms>
bool is_any(const Lowering& l) {
  return (std::holds_alternative<Forms>(l) || ...);
}

void check_type(const Node& n, const Type& t) {
  BT_REQUIRE_KIND(
      t.dtype != DType::bf16, ErrorKind::not_supported,
      fmt::format("export_header: op {} uses bf16, which C has not", n.op->name));
  BT_REQUIRE_KIND(t.size() <= INT32_MAX, ErrorKind::not_supported,
                  fmt::format("export_header: op {} has an array of {} elements, which "
                              "int cannot count",
                              n.op->name, t.size()));
}

}  // namespace

Lowering lowering_of(const Graph& g, const Node& n) {
  const std::vector<Type> in = g.types_of(n.inputs), out = g.types_of(n.outputs);
  for (const Type& t : in) check_type(n, t);
  for (const Type& t : out) check_type(n, t);
  const Lowering l = n.op->lower ? n.op->lower({in, out, n.attrs}) : lowering::Evaluate{};
  const bool known =
      is_any<lowering::Constant, lowering::Elementwise, lowering::Broadcast,
             lowering::Reshape, lowering::Transpose, lowering::Slice, lowering::Pad,
             lowering::Concatenate, lowering::Gather, lowering::ScatterAdd,
             lowering::Reduce, lowering::Gemm, lowering::Conv, lowering::Sparse,
             lowering::SparseOuter>(l);
  BT_REQUIRE_KIND(known, ErrorKind::not_supported,
                  fmt::format("export_header: op {}{} cannot be exported", n.op->name,
                              n.loc ? " at " + to_string(n.loc) : ""));
  return l;
}

ExportSchedule schedule_for_export(const Graph& g) { return Scheduler(g).run(); }

Shape without_ones(const Shape& s) {
  Shape out;
  for (const std::int64_t d : s)
    if (d != 1) out.push_back(d);
  return out;
}

}  // namespace braintrace::internal
