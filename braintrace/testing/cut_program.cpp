// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/cut_program.h"

#include <algorithm>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/ops/region_view.h"
#include "braintrace/testing/cut_step_impl.h"
#include "braintrace/transforms/jacobian.h"
#include "braintrace/transforms/vjp.h"

namespace braintrace::testing {
namespace {

// What moves f and is zero.
Value change(const Value& f) { return f - stop_gradient(f); }

class CutUnroller {
 public:
  CutUnroller(const ETraceGraph& graph, const CutOptions& options)
      : graph_(graph), info_(graph.module_info), cut_(graph), options_(options) {}

  StateDict run(const std::vector<StepInputs>& sequence, const StepLoss& loss) {
    const Values start = declare();
    leaves_ = start;
    for (const HiddenVar& h : info_.hidden) direct_.push_back(at_entry(start, h));
    deep_ = direct_;
    Tangent total;
    for (std::size_t t = 0; t < sequence.size(); ++t) {
      const Value part = step(sequence[t], t, loss);
      total = total ? *total + part : part;
    }
    if (names_.empty()) return {};
    return differentiate(builder_->finish(std::vector{*total}));
  }

 private:
  // Inputs of the unrolled program: the float parameters, alive. All else is constant.
  Values declare() {
    Values leaves;
    for (const StepState& s : info_.step.states)
      for (std::size_t k = 0; k < s.in.size(); ++k) {
        const Array& now = s.state->stored(k);
        leaves.emplace_back(now);
        if (s.kind != StateKind::param || !is_float(now.dtype())) continue;
        const std::string& key = s.state->spec(k).key;
        names_.push_back(to_slashes(key.empty() ? s.path : s.path.child(key)));
        numbers_.push_back(now);
        alive_.emplace(leaves.size() - 1, builder_->input(type_of(now)));
      }
    return leaves;
  }

  std::size_t place(ValueId input) const {
    const auto in = info_.program().inputs();
    return static_cast<std::size_t>(std::find(in.begin(), in.end(), input) - in.begin());
  }
  Value at_entry(const Values& leaves, const HiddenVar& h) const {
    return leaves[place(h.in) - info_.step.num_args];
  }
  std::size_t number(const HiddenVar& member) const {
    for (std::size_t h = 0; h < info_.hidden.size(); ++h)
      if (info_.hidden[h].path == member.path) return h;
    throw InternalError("cut_bptt: a group member is no hidden state");
  }

  // One group's members through its cut step, from the given traced copies.
  Values through(const Graph& program, const HiddenGroup& g, const Values& in,
                 const Values& from) const {
    Values args = in;
    for (const HiddenVar& m : g.members) args[place(m.in)] = from[number(m)];
    return inline_graph(program, args);
  }

  Value step(const StepInputs& given, std::size_t t, const StepLoss& loss) {
    Values fixed(given.begin(), given.end());
    fixed.insert(fixed.end(), leaves_.begin(), leaves_.end());
    Values alive = fixed;
    for (const auto& [k, v] : alive_) alive[info_.step.num_args + k] = v;
    const bool deep = options_.history == History::deep;
    if (!deep || static_cast<std::int64_t>(t) % options_.window == 0) deep_ = direct_;

    const Values from = deep_;
    Values p;
    for (const HiddenVar& h : info_.hidden)
      p.push_back(
          zeros(info_.program().type(h.out).shape, info_.program().type(h.out).dtype));
    for (std::size_t g = 0; g < cut_.held.size(); ++g) {
      const HiddenGroup& group = graph_.hidden_groups[g];
      const bool loops = !cut_.edges.empty();
      const Values now =
          through((loops ? cut_.moved : cut_.held)[g], group, fixed, deep_);
      Values moves;
      for (const Value& v : now) moves.push_back(change(v));
      add_to(p, group, loops ? beside(cut_.edges[g], fixed, moves) : moves);
    }
    add_whiles(fixed, alive, p);
    const Values after = inline_graph(cut_.plain, fixed);
    Values with_p = alive;
    with_p.insert(with_p.end(), p.begin(), p.end());
    const Values seen = inline_graph(cut_.perturbed, with_p);
    roll_direct(fixed, alive, after);
    for (std::size_t h = 0; h < info_.hidden.size(); ++h)
      deep_[h] = seen[exit_of(info_.hidden[h])];
    leaves_.assign(after.begin() + static_cast<std::ptrdiff_t>(info_.num_var_out),
                   after.end());
    const auto outputs = seen.begin() + static_cast<std::ptrdiff_t>(info_.num_var_out);
    return loss(t, with_old_reads(Values(seen.begin(), outputs), fixed, from));
  }

  // What outputs read of old states beside the new ones.
  Values with_old_reads(Values outputs, const Values& fixed, const Values& from) const {
    Values in = fixed;
    for (std::size_t h = 0; h < info_.hidden.size(); ++h)
      in[place(info_.hidden[h].in)] = from[h];
    const Values old = inline_graph(cut_.reads_old, in);
    for (std::size_t k = 0; k < outputs.size(); ++k)
      if (is_float(outputs[k].dtype())) outputs[k] = outputs[k] + change(old[k]);
    return outputs;
  }

  void add_to(Values& p, const HiddenGroup& g, const Values& moves) const {
    for (std::size_t i = 0; i < moves.size(); ++i) {
      const std::size_t h = number(g.members[i]);
      if (is_float(moves[i].dtype())) p[h] = p[h] + moves[i];
    }
  }

  // Changes of members without what readers make of them around loops of unknown length:
  // the perturbed step adds that again.
  Values beside(const Graph& edges, const Values& fixed, Values moves) const {
    Values in = fixed;
    in.insert(in.end(), moves.begin(), moves.end());
    const Values read = inline_graph(edges, in);
    for (std::size_t i = 0; i < moves.size(); ++i)
      if (is_float(moves[i].dtype())) moves[i] = moves[i] - change(read[i]);
    return moves;
  }

  // What this step's weights do through loops of unknown length.
  void add_whiles(const Values& fixed, const Values& alive, Values& p) const {
    for (const CutStep::Feed& f : cut_.feeds) {
      if (!f.fed_around) continue;
      Values in = fixed;
      for (const Value& w : inline_graph(f.operands, alive)) in.push_back(w);
      const HiddenGroup& g = graph_.hidden_groups[f.group];
      Values moves = inline_graph(f.fed, in);
      const Values around = inline_graph(*f.fed_around, in);
      for (std::size_t i = 0; i < moves.size(); ++i)
        moves[i] = change(moves[i]) - change(around[i]);
      add_to(p, g, beside(*f.edges, fixed, moves));
    }
  }

  std::size_t exit_of(const HiddenVar& h) const {
    return info_.num_var_out + place(h.in) - info_.step.num_args;
  }

  // The traced copies one step on: past credit cut, this step's weights alive.
  void roll_direct(const Values& fixed, const Values& alive, const Values& after) {
    Values next;
    for (const HiddenVar& h : info_.hidden) next.push_back(after[exit_of(h)]);
    const auto add = [&](const HiddenGroup& g, const Values& members) {
      for (std::size_t i = 0; i < members.size(); ++i) {
        const std::size_t h = number(g.members[i]);
        if (is_float(members[i].dtype())) next[h] = next[h] + change(members[i]);
      }
    };
    for (std::size_t g = 0; g < cut_.moved.size(); ++g)
      add(graph_.hidden_groups[g],
          through(cut_.moved[g], graph_.hidden_groups[g], fixed, direct_));
    for (const CutStep::Feed& f : cut_.feeds) {
      Values in = fixed;
      for (const Value& w : inline_graph(f.operands, alive)) in.push_back(w);
      add(graph_.hidden_groups[f.group], inline_graph(f.fed, in));
    }
    direct_ = std::move(next);
  }

  StateDict differentiate(const Graph& total) const {
    StateDict out;
    if (!has_while(info_.program())) {
      const std::vector<bool> active(names_.size(), true);
      const std::vector<Array> r = eval_graph(value_and_grad(total, active), numbers_);
      for (std::size_t i = 0; i < names_.size(); ++i) out.emplace(names_[i], r[i + 1]);
      return out;
    }
    for (std::size_t i = 0; i < names_.size(); ++i)
      out.emplace(
          names_[i],
          eval_graph(
              jacobian(total, {.output = 0, .input = i, .mode = JacobianMode::forward}),
              numbers_)[0]);
    return out;
  }

  const ETraceGraph& graph_;
  const ModuleInfo& info_;
  CutStep cut_;
  CutOptions options_;
  std::shared_ptr<Builder> builder_ = Builder::create();
  std::vector<std::string> names_;
  std::vector<Array> numbers_;
  std::map<std::size_t, Value> alive_;  // by leaf
  Values leaves_, direct_, deep_;       // constants; traced copies per hidden state
};

}  // namespace

StateDict cut_bptt(const ETraceGraph& graph, const std::vector<StepInputs>& sequence,
                   const StepLoss& loss, const CutOptions& options) {
  BT_REQUIRE(!sequence.empty(), "cut_bptt: the sequence must have at least one step");
  BT_REQUIRE(options.window >= 1, "cut_bptt: a window has at least one step");
  return CutUnroller(graph, options).run(sequence, loss);
}

}  // namespace braintrace::testing
