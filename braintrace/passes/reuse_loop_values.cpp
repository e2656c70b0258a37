// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/reuse_loop_values.h"

#include <algorithm>
#include <map>

#include "braintrace/ops/ops.h"
#include "braintrace/ops/region_view.h"
#include "braintrace/passes/cse.h"
#include "braintrace/passes/rewrite.h"
#include "braintrace/passes/scan_split_impl.h"

namespace braintrace {
namespace {

// A value of a loop's body, stacked.
struct LoopValue {
  std::size_t loop = 0;  // index of the node
  ValueId value;
};

struct Reuse {
  std::map<std::size_t, std::vector<ValueId>> stacked;  // by loop: in addition
  std::map<std::size_t, LoopValue> taken;               // by node: its result
  bool look_again = false;                              // without these nodes
};

// What the loop hands out of all steps of a value of its body.
std::optional<ValueId> stack_of(const Node& loop, ValueId value) {
  const auto scan = as_scan(loop);
  const auto outs = scan->body->outputs();
  for (std::size_t y = scan->num_carry; y < outs.size(); ++y)
    if (outs[y] == value) return loop.outputs[y];
  return std::nullopt;
}

// A graph, who reads what in it, and which of its values are one number everywhere.
class ReadGraph {
 public:
  explicit ReadGraph(const Graph& g)
      : lowered(g), readers_(g.num_values()), is_output_(g.num_values(), false) {
    for (std::size_t i = 0; i < g.nodes().size(); ++i) {
      const Node& n = g.nodes()[i];
      const auto scan = as_scan(n);
      const std::vector<bool> inside = scan ? read_inputs(*scan) : std::vector<bool>{};
      for (std::size_t k = 0; k < n.inputs.size(); ++k)
        if (inside.empty() || inside[k]) readers_[n.inputs[k].index].push_back(i);
    }
    for (ValueId v : g.outputs()) is_output_[v.index] = true;
  }

  LoweredGraph lowered;

  const Node& node(std::size_t i) const { return lowered.graph().nodes()[i]; }
  const std::vector<std::size_t>& readers(ValueId v) const { return readers_[v.index]; }
  // The node that alone reads v.
  std::optional<std::size_t> only_reader(ValueId v) const {
    const std::vector<std::size_t>& all = readers(v);
    return all.size() == 1 && !is_output_[v.index] ? std::optional(all[0]) : std::nullopt;
  }
  std::optional<Array> number(ValueId v) const {
    const Node* n = lowered.producer(v);
    if (!n) return std::nullopt;
    const Lowering& l = lowered.lowering(*n);
    if (std::holds_alternative<lowering::Broadcast>(l) ||
        std::holds_alternative<lowering::Reshape>(l))
      return number(n->inputs[0]);
    if (!std::holds_alternative<lowering::Constant>(l)) return std::nullopt;
    const Array& a = n->attrs.array("value");
    return a.size() == 1 ? std::optional(a.reshaped({})) : splat_of(*n);
  }

 private:
  std::vector<std::vector<std::size_t>> readers_;
  std::vector<bool> is_output_;
};

// Finds values behind loops that the bodies of these compute, too.
class ReuseFinder {
 public:
  explicit ReuseFinder(const Graph& g) : all_(g), from_(g.num_values()) {}

  Reuse run() {
    const auto& nodes = all_.lowered.graph().nodes();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (const auto scan = as_scan(nodes[i])) {
        bodies_.emplace(i, *scan->body);
        for (std::size_t y = scan->num_carry; y < nodes[i].outputs.size(); ++y)
          from_[nodes[i].outputs[y].index] = {i, scan->body->outputs()[y]};
      } else if (const auto same = in_body(nodes[i])) {
        from_[nodes[i].outputs[0].index] = same;
      }
    }
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (!as_scan(nodes[i]) && is_handed_out(nodes[i])) take(i);
    // Who reads what may be another question with these out of the way.
    found_.look_again = !found_.taken.empty();
    if (found_.look_again) return std::move(found_);
    for (const auto& [loop, body] : bodies_) look_behind(loop);
    for (std::size_t i = nodes.size(); i-- > 0;)
      if (!as_scan(nodes[i]) && is_read_from_memory(nodes[i])) take(i);
    return std::move(found_);
  }

 private:
  // What does at every step what n does to whole stacks.
  std::optional<LoopValue> in_body(const Node& n) const {
    const Lowering& l = all_.lowered.lowering(n);
    const bool joins = std::holds_alternative<lowering::Concatenate>(l);
    const bool multiplies = std::holds_alternative<lowering::Gemm>(l);
    if (!joins && !multiplies && !std::holds_alternative<lowering::Elementwise>(l))
      return std::nullopt;
    std::optional<LoopValue> first;
    for (ValueId v : n.inputs)
      if (!first) first = from_[v.index];
    if (!first) return std::nullopt;
    const ReadGraph& body = bodies_.at(first->loop);
    const auto matches = [&](ValueId stack, ValueId step) {
      if (multiplies && stack != n.inputs[0])
        return is_constant(first->loop, stack, step);
      if (const auto& v = from_[stack.index]; v && v->loop == first->loop)
        return v->value == step;
      if (is_walked(first->loop, stack, step)) return true;
      if (multiplies) return false;
      const std::optional<Array> a = all_.number(stack), b = body.number(step);
      return !joins && a && b && *a == *b;
    };
    for (const std::size_t i : body.readers(first->value)) {
      const Node& m = body.node(i);
      const Lowering& steps = body.lowered.lowering(m);
      const bool same = m.op == n.op && (joins        ? joins_alike(l, steps)
                                         : multiplies ? multiplies_alike(l, steps)
                                                      : m.attrs == n.attrs);
      if (same && std::equal(n.inputs.begin(), n.inputs.end(), m.inputs.begin(),
                             m.inputs.end(), matches))
        return LoopValue{first->loop, m.outputs[0]};
    }
    return std::nullopt;
  }
  // Of stacks, and of single steps.
  static bool joins_alike(const Lowering& stacks, const Lowering& steps) {
    const auto* step = std::get_if<lowering::Concatenate>(&steps);
    return step && std::get<lowering::Concatenate>(stacks).axis == step->axis + 1;
  }
  // Rows of all steps by one right factor: the steps are one more axis on the left.
  static bool multiplies_alike(const Lowering& stacks, const Lowering& steps) {
    const auto* step = std::get_if<lowering::Gemm>(&steps);
    if (!step) return false;
    const auto& stack = std::get<lowering::Gemm>(stacks);
    Ints contract = step->lhs_contract;
    for (auto& axis : contract) ++axis;
    return stack.lhs_batch.empty() && step->lhs_batch.empty() &&
           stack.lhs_contract == contract && stack.rhs_contract == step->rhs_contract;
  }
  // The loop is given the value for all steps and calls it `step`.
  bool is_constant(std::size_t loop, ValueId value, ValueId step) const {
    const Node& n = all_.node(loop);
    const auto scan = as_scan(n);
    for (std::size_t k = 0; k < scan->num_consts; ++k)
      if (n.inputs[k] == value && scan->body->inputs()[k] == step) return true;
    return false;
  }
  // The loop walks along the stack and calls its part of a step `step`.
  bool is_walked(std::size_t loop, ValueId stack, ValueId step) const {
    const Node& n = all_.node(loop);
    const auto scan = as_scan(n);
    for (std::size_t k = scan->num_consts + scan->num_carry; k < n.inputs.size(); ++k)
      if (n.inputs[k] == stack && scan->body->inputs()[k] == step) return true;
    return false;
  }

  // Where all that becomes of a stack comes together: as long as there is one reader, and
  // the loop has its result.
  struct Neck {
    std::size_t node;
    bool is_cheap = true;  // all on the way
  };
  std::optional<Neck> neck(ValueId stack) const {
    std::optional<Neck> found;
    for (auto i = all_.only_reader(stack); i;
         i = all_.only_reader(all_.node(*i).outputs[0])) {
      const Node& n = all_.node(*i);
      if (as_scan(n) || !from_[n.outputs[0].index]) break;
      const bool cheap = is_cheap(all_.lowered.lowering(n));
      found = {*i, cheap && (!found || found->is_cheap)};
    }
    return found;
  }

  // Takes the neck of several stacks, or of one and a function that is not cheap, when it
  // is no larger than what the loop need not hand out any more.
  void look_behind(std::size_t loop) {
    struct Stacks {
      std::int64_t bytes = 0;
      int count = 0;
      bool cheap = true;
    };
    std::map<std::size_t, Stacks> necks;  // by node
    const Node& scan = all_.node(loop);
    for (std::size_t y = as_scan(scan)->num_carry; y < scan.outputs.size(); ++y) {
      const auto found = neck(scan.outputs[y]);
      if (!found) continue;
      Stacks& s = necks[found->node];
      s.bytes += num_bytes(all_.lowered.graph().type(scan.outputs[y]));
      s.cheap = s.cheap && found->is_cheap;
      ++s.count;
    }
    for (const auto& [i, stacks] : necks) {
      const ValueId out = all_.node(i).outputs[0];
      if ((stacks.cheap && stacks.count < 2) ||
          num_bytes(all_.lowered.graph().type(out)) > stacks.bytes)
        continue;
      take(i);
    }
  }

  // The loop hands it out already, or it is a product, which costs more than a stack.
  bool is_handed_out(const Node& n) const {
    if (n.outputs.size() != 1 || !from_[n.outputs[0].index]) return false;
    if (std::holds_alternative<lowering::Gemm>(all_.lowered.lowering(n))) return true;
    const LoopValue& v = *from_[n.outputs[0].index];
    return stack_of(all_.node(v.loop), v.value).has_value();
  }

  // Products and joined arrays read it where it lies: the loop writes it while what it is
  // made of is in the cache.
  bool is_read_from_memory(const Node& n) const {
    if (n.outputs.size() != 1 || !from_[n.outputs[0].index]) return false;
    const auto& readers = all_.readers(n.outputs[0]);
    return std::any_of(readers.begin(), readers.end(), [&](std::size_t r) {
      const Lowering& l = all_.lowered.lowering(all_.node(r));
      return !found_.taken.contains(r) &&
             (std::holds_alternative<lowering::Gemm>(l) ||
              std::holds_alternative<lowering::Concatenate>(l));
    });
  }

  void take(std::size_t node) {
    const LoopValue v = *from_[all_.node(node).outputs[0].index];
    if (!found_.taken.emplace(node, v).second) return;
    if (stack_of(all_.node(v.loop), v.value)) return;
    std::vector<ValueId>& stacked = found_.stacked[v.loop];
    if (std::find(stacked.begin(), stacked.end(), v.value) == stacked.end())
      stacked.push_back(v.value);
  }

  ReadGraph all_;
  std::map<std::size_t, ReadGraph> bodies_;     // by loop
  std::vector<std::optional<LoopValue>> from_;  // by value
  Reuse found_;
};

}  // namespace

Graph reuse_loop_values(const Graph& g) {
  const Reuse found = ReuseFinder(g).run();
  std::map<std::pair<std::size_t, ValueId>, Value> stacks;
  RewriteRules rules;
  rules.sub_graph = reuse_loop_values;
  rules.old_node = [&](Builder& b, std::size_t i, std::span<const Value> env) -> Rewrite {
    if (const auto t = found.taken.find(i); t != found.taken.end()) {
      const auto& [loop, value] = t->second;
      const auto y = stack_of(g.nodes()[loop], value);
      return Values{y ? env[y->index] : stacks.at({loop, value})};
    }
    const auto added = found.stacked.find(i);
    if (added == found.stacked.end()) return std::nullopt;
    const Node& n = g.nodes()[i];
    Values in;
    for (ValueId v : n.inputs) in.push_back(env[v.index]);
    Values out = b.record(*n.op, in, scan_attrs_with_ys(n, added->second), n.loc);
    for (std::size_t k = 0; k < added->second.size(); ++k)
      stacks[{i, added->second[k]}] = out[n.outputs.size() + k];
    out.resize(n.outputs.size());
    return out;
  };
  const Graph after = rewrite(g, rules);
  return found.look_again ? reuse_loop_values(cse(after)) : after;
}

}  // namespace braintrace
