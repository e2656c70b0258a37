// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/turn_chains.h"

#include <algorithm>
#include <map>

#include "braintrace/ops/ops.h"
#include "braintrace/passes/lowered_impl.h"
#include "braintrace/passes/rewrite.h"

namespace braintrace {
namespace {

class Turner {
 public:
  explicit Turner(const Graph& g)
      : g_(g), lowered_(g), readers_(g.num_values()), is_output_(g.num_values(), false) {
    for (const Node& n : g.nodes())
      for (ValueId v : n.inputs) readers_[v.index].push_back(&n);
    for (ValueId v : g.outputs()) is_output_[v.index] = true;
  }

  // The work a turn shows, done under the axes it is shown in; once for all turns that
  // show it so.
  Rewrite rewritten(const Node& turn, std::span<const Value> env) {
    if (!turns(turn)) return std::nullopt;
    const Shape& shape = g_.type(turn.outputs[0]).shape;
    Ints origin = iota_ints(static_cast<std::int64_t>(shape.size()));  // -1: of size 1
    const Node* root = &turn;
    for (; root && is_view(*root); root = lowered_.producer(root->inputs[0]))
      origin = behind(*root, origin);
    if (!root || !is_work(*root) || !is_read_turned(root->outputs[0]))
      return std::nullopt;
    int room = kMostNodes;
    if (!has_turned_operands(*root, room)) return std::nullopt;
    const Ints order = order_of(origin, g_.type(root->outputs[0]).rank());
    std::optional<Value>& done = moved_[{root, order}];
    if (!done) done = moved(*root, order, env);
    return Values{reshape(*done, shape)};
  }

 private:
  static constexpr int kMostNodes = 16;

  // The same elements under other axes.
  bool is_view(const Node& n) const {
    return n.inputs.size() == 1 && n.outputs.size() == 1 &&
           g_.type(n.inputs[0]).size() == g_.type(n.outputs[0]).size() &&
           view_axes(lowered_, n).has_value();
  }
  // ... in another order.
  bool turns(const Node& n) const {
    if (!is_view(n)) return false;
    const Ints axes = *view_axes(lowered_, n);
    std::int64_t last = -1;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      if (g_.type(n.inputs[0]).shape[a] == 1) continue;
      if (axes[a] < last) return true;
      last = axes[a];
    }
    return false;
  }
  bool is_work(const Node& n) const {
    return std::holds_alternative<lowering::Elementwise>(lowered_.lowering(n)) &&
           n.outputs.size() == 1 && !is_view(n);
  }

  bool is_read_turned(ValueId v) const {
    const auto& readers = readers_[v.index];
    return !is_output_[v.index] && !readers.empty() &&
           std::all_of(readers.begin(), readers.end(), [&](const Node* n) {
             return turns(*n) || (is_view(*n) && is_read_turned(n->outputs[0]));
           });
  }

  bool is_turned(ValueId v, int& room) const {
    const Node* n = lowered_.producer(v);
    if (!n) return false;
    if (is_work(*n)) return lowered_.uses(v) == 1 && has_turned_operands(*n, room);
    for (; n; n = lowered_.producer(n->inputs[0])) {
      if (turns(*n)) return true;
      if (is_view(*n)) continue;
      const auto* stretch = std::get_if<lowering::Broadcast>(&lowered_.lowering(*n));
      return stretch != nullptr &&
             g_.type(n->inputs[0]).size() < g_.type(n->outputs[0]).size();
    }
    return false;
  }
  bool has_turned_operands(const Node& work, int& room) const {
    return room-- > 0 && std::all_of(work.inputs.begin(), work.inputs.end(),
                                     [&](ValueId v) { return is_turned(v, room); });
  }

  // By output axis of a turn: where it comes from in front of a view.
  Ints behind(const Node& view, Ints origin) const {
    const Ints axes = *view_axes(lowered_, view);
    for (std::int64_t& a : origin) {
      const auto from = std::find(axes.begin(), axes.end(), a);
      a = a < 0 || from == axes.end() ? -1 : from - axes.begin();
    }
    return origin;
  }
  // Axes of size 1 that vanish on the way come first.
  static Ints order_of(const Ints& origin, std::int64_t rank) {
    Ints order, shown;
    for (std::int64_t a : origin)
      if (a >= 0) shown.push_back(a);
    for (std::int64_t a = 0; a < rank; ++a)
      if (std::find(shown.begin(), shown.end(), a) == shown.end()) order.push_back(a);
    order.insert(order.end(), shown.begin(), shown.end());
    return order;
  }
  Value moved(const Node& work, const Ints& order, std::span<const Value> env) const {
    Values in;
    for (ValueId v : work.inputs) {
      const Node* before = lowered_.producer(v);
      in.push_back(is_work(*before) ? moved(*before, order, env)
                                    : transpose(env[v.index], order));
    }
    return in[0].builder()->record(*work.op, in, work.attrs, work.loc)[0];
  }

  const Graph& g_;
  LoweredGraph lowered_;
  std::vector<std::vector<const Node*>> readers_;                       // by value
  std::vector<bool> is_output_;                                         // by value
  std::map<std::pair<const Node*, Ints>, std::optional<Value>> moved_;  // and order
};

}  // namespace

Graph turn_chains(const Graph& g) {
  Turner turner(g);
  RewriteRules rules{.sub_graph = turn_chains};
  rules.old_node = [&](Builder&, std::size_t i, std::span<const Value> env) {
    return turner.rewritten(g.nodes()[i], env);
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
