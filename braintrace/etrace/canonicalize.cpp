// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/canonicalize.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "braintrace/etrace/evaluation.h"
#include "braintrace/etrace/graph_index.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/region_view.h"
#include "braintrace/passes/count_loops.h"

namespace braintrace {
namespace {

bool is_while(const Node& n) { return as_while(n).has_value(); }

// What a value carries, as far as control flow cares.
struct Taint {
  bool weight = false, hidden = false;
  bool only_weight = false;  // made of parameters and constants alone
};

// A value of the program being written, with what it carries.
struct Item {
  Value value;
  Taint taint;
};
using Items = std::vector<Item>;

class Canonicalizer : public GraphEvaluation {
 public:
  Canonicalizer(const CompileOptions& options, Diagnostics& diagnostics)
      : options_(options), diagnostics_(diagnostics) {}

  // `makes_hidden`: values of this graph that are hidden states at step exit.
  Items run(const Graph& g, const Items& inputs, const std::set<ValueId>& makes_hidden) {
    Frame frame{Items(g.num_values()), &makes_hidden};
    for (std::size_t i = 0; i < inputs.size(); ++i)
      frame.env[g.inputs()[i].index] = inputs[i];
    frames_.push_back(std::move(frame));
    evaluate(g);
    const Items results = read(g.outputs());
    frames_.pop_back();
    return results;
  }

 private:
  // A program on its way: the step, or the body that is being written into it.
  struct Frame {
    Items env;  // by value of the old program
    const std::set<ValueId>* makes_hidden;
  };

  void eval_cond(std::size_t, const Node& n) override {
    const Items in = read(n.inputs);
    const bool produces = makes_a_state(n);
    const auto why = options_.control_flow.cond == "convert"
                         ? relevance(n, in, produces, "a branch")
                         : std::nullopt;
    define(n, why ? cond(n, in, produces, *why) : copy(n, in));
  }
  void eval_scan(std::size_t, const Node& n) override {
    const Items in = read(n.inputs);
    const bool produces = makes_a_state(n);
    const auto why = relevance(n, in, produces, "its body");
    define(n, why ? scan(n, in, produces, *why) : copy(n, in));
  }
  void eval_node(std::size_t, const Node& n) override {
    define(n, copy(n, read(n.inputs)));
  }

  Items read(std::span<const ValueId> ids) const {
    Items out;
    for (ValueId v : ids) out.push_back(frames_.back().env[v.index]);
    return out;
  }
  void define(const Node& n, const Items& out) {
    for (std::size_t k = 0; k < out.size(); ++k)
      frames_.back().env[n.outputs[k].index] = out[k];
  }
  bool makes_a_state(const Node& n) const {
    return std::any_of(n.outputs.begin(), n.outputs.end(), [&](ValueId v) {
      return frames_.back().makes_hidden->contains(v);
    });
  }

  // The first reason, in the reference's order; nullopt: leave the node alone.
  std::optional<std::string> relevance(const Node& n, const Items& in,
                                       bool produces_hidden,
                                       std::string_view what) const {
    auto any = [&](bool Taint::*mark) {
      return std::any_of(in.begin(), in.end(),
                         [&](const Item& i) { return i.taint.*mark; });
    };
    if (any(&Taint::weight)) return "it consumes a weight invar";
    if (any(&Taint::hidden)) return "it consumes a hidden-state invar";
    if (produces_hidden) return "it produces a hidden-state outvar";
    if (any_node(n, is_etp)) return fmt::format("{} contains an ETP primitive", what);
    return std::nullopt;
  }

  static Taint joined(const Items& in) {
    Taint t{.only_weight = true};
    for (const Item& i : in) {
      t.weight = t.weight || i.taint.weight;
      t.hidden = t.hidden || i.taint.hidden;
      t.only_weight = t.only_weight && (i.taint.only_weight || i.value.is_concrete());
    }
    return t;
  }

  static Values values_of(const Items& items) {
    Values v;
    for (const Item& i : items) v.push_back(i.value);
    return v;
  }

  Items copy(const Node& n, const Items& in) {
    const Taint t = joined(in);
    Items out;
    for (const Value& v : emit(*n.op, values_of(in), n.attrs, n.loc))
      out.push_back({v, t});
    return out;
  }

  Items skip_cond(const Node& n, const Items& in, std::string_view why) {
    diagnostics_.note(
        {.kind = DiagnosticKind::cond_conversion_skipped,
         .level = DiagnosticLevel::warning,
         .message = fmt::format("cond{} was not converted: {}", at(n), why)});
    return copy(n, in);
  }

  Items cond(const Node& n, const Items& in, bool produces_hidden,
             const std::string& why) {
    const CondView view = *as_cond(n);
    if (any_node(n, is_while)) return skip_cond(n, in, "a branch contains a while loop");
    for (const Graph* branch : {view.if_true, view.if_false})
      for (const Node& m : branch->nodes())
        if (const auto s = as_scan(m); s && !unrollable(*s))
          return skip_cond(n, in, "a branch contains a scan that is not unrolled");
    const Value& predicate = in[0].value;
    const std::set<ValueId> inner = hidden_outputs(*view.if_true, produces_hidden);
    // The reference numbers the false branch 0, so its ops come first.
    const Items b = run(*view.if_false, guarded(predicate, in, view, false), inner);
    const Items a = run(*view.if_true, guarded(predicate, in, view, true), inner);
    Items out;
    for (std::size_t k = 0; k < a.size(); ++k) {
      Items both = {in[0], a[k], b[k]};
      out.push_back({select(predicate, a[k].value, b[k].value), joined(both)});
    }
    diagnostics_.note({.kind = DiagnosticKind::cond_if_converted,
                       .level = DiagnosticLevel::info,
                       .message = fmt::format("cond{} became a select: {}", at(n), why),
                       .context = {{"n_branches", "2"},
                                   {"n_outputs", fmt::format("{}", out.size())},
                                   {"reason", python_string(why)}}});
    return out;
  }

  // Feeds a branch that is not taken with ones, so that no infinity of a dead branch can
  // meet a zero in reverse mode. Weights of a branch with trainable ops stay as they are:
  // they must remain traceable.
  Items guarded(const Value& predicate, const Items& in, const CondView& view,
                bool taken_when) const {
    Items operands(in.begin() + 1, in.end());
    if (options_.mixing == Mixing::sum) return operands;
    const auto nodes = (taken_when ? view.if_true : view.if_false)->nodes();
    const bool trains = std::any_of(nodes.begin(), nodes.end(),
                                    [](const Node& m) { return any_node(m, is_etp); });
    for (Item& i : operands) {
      const bool traceable = trains && i.taint.weight && i.taint.only_weight;
      if (!is_float(i.value.dtype()) || traceable || i.value.is_concrete()) continue;
      const Value safe = ones(i.value.shape(), i.value.dtype());
      i.value = taken_when ? select(predicate, i.value, safe)
                           : select(predicate, safe, i.value);
    }
    return operands;
  }

  static std::set<ValueId> hidden_outputs(const Graph& body, bool produces_hidden) {
    if (!produces_hidden) return {};
    return {body.outputs().begin(), body.outputs().end()};
  }

  bool unrollable(const ScanView& s) const {
    const std::int64_t limit = options_.control_flow.scan_unroll_limit;
    if (limit <= 0 || s.length == 0 || s.length > limit) return false;
    const auto nodes = s.body->nodes();
    return std::none_of(nodes.begin(), nodes.end(),
                        [](const Node& m) { return any_node(m, is_while); });
  }

  Items scan(const Node& n, const Items& in, bool produces_hidden,
             const std::string& why) {
    const ScanView view = *as_scan(n);
    if (!unrollable(view)) return skip_scan(n, in, view);
    const std::size_t first_x = view.num_consts + view.num_carry;
    const bool slices_weight =
        std::any_of(in.begin() + static_cast<std::ptrdiff_t>(first_x), in.end(),
                    [](const Item& i) { return i.taint.weight; });
    if (slices_weight && options_.weight_source == WeightSource::first_found)
      return refuse_sliced_weight(n, in);
    const Items consts(in.begin(),
                       in.begin() + static_cast<std::ptrdiff_t>(view.num_consts));
    Items carry(in.begin() + static_cast<std::ptrdiff_t>(view.num_consts),
                in.begin() + static_cast<std::ptrdiff_t>(first_x));
    const std::size_t num_ys = n.outputs.size() - view.num_carry;
    std::vector<Items> ys(num_ys, Items(static_cast<std::size_t>(view.length)));
    for (std::int64_t s = 0; s < view.length; ++s) {
      const std::int64_t t = view.reverse ? view.length - 1 - s : s;
      Items step = consts;
      step.insert(step.end(), carry.begin(), carry.end());
      for (std::size_t k = first_x; k < in.size(); ++k)
        step.push_back({squeeze(slice_axis(in[k].value, 0, t, 1), 0), in[k].taint});
      Items out = run(*view.body, step, hidden_outputs(*view.body, produces_hidden));
      carry.assign(out.begin(),
                   out.begin() + static_cast<std::ptrdiff_t>(view.num_carry));
      for (std::size_t j = 0; j < num_ys; ++j)
        ys[j][static_cast<std::size_t>(t)] = out[view.num_carry + j];
    }
    note_unrolled(n, view, why);
    Items out = carry;
    for (const Items& y : ys) out.push_back({stack(values_of(y), 0), joined(y)});
    return out;
  }

  void note_unrolled(const Node& n, const ScanView& v, const std::string& why) {
    diagnostics_.note({.kind = DiagnosticKind::scan_unrolled,
                       .level = DiagnosticLevel::info,
                       .message = fmt::format("scan{} of length {} was unrolled: {}",
                                              at(n), v.length, why),
                       .context = {{"length", fmt::format("{}", v.length)},
                                   {"num_consts", fmt::format("{}", v.num_consts)},
                                   {"num_carry", fmt::format("{}", v.num_carry)},
                                   {"reverse", v.reverse ? "True" : "False"},
                                   {"reason", python_string(why)}}});
  }

  Items skip_scan(const Node& n, const Items& in, const ScanView& v) {
    const ControlFlowPolicy& p = options_.control_flow;
    const bool descends = v.length > p.scan_unroll_limit && p.scan_descent == "auto";
    const std::string why =
        p.scan_unroll_limit <= 0 ? "unrolling is off"
        : v.length == 0          ? "its length is 0"
        : v.length > p.scan_unroll_limit
            ? fmt::format("length {} > {}", v.length, p.scan_unroll_limit)
            : "its body contains a while loop";
    diagnostics_.note(
        {.kind = DiagnosticKind::scan_unroll_skipped,
         .level = descends ? DiagnosticLevel::info : DiagnosticLevel::warning,
         .message = fmt::format("scan{} was not unrolled: {}", at(n), why),
         .context = {{"length", fmt::format("{}", v.length)},
                     {"reason", python_string(why)}}});
    return copy(n, in);
  }

  Items refuse_sliced_weight(const Node& n, const Items& in) {
    diagnostics_.note({.kind = DiagnosticKind::relation_excluded_sliced_weight,
                       .level = DiagnosticLevel::warning,
                       .message = fmt::format(
                           "scan{} iterates over a weight and stays a loop", at(n))});
    return copy(n, in);
  }

  static std::string at(const Node& n) {
    return n.loc ? fmt::format(" at {}", to_string(n.loc)) : "";
  }

  const CompileOptions& options_;
  Diagnostics& diagnostics_;
  std::vector<Frame> frames_;
};

Items tainted_inputs(const StepModel& step, Builder& builder) {
  Items items;
  for (ValueId v : step.program.inputs())
    items.push_back({builder.input(step.program.type(v)), {}});
  for (const StepState& s : step.states) {
    for (ValueId v : s.in) {
      Taint& t = items[v.index].taint;
      t.weight = t.only_weight = s.kind == StateKind::param;
      t.hidden = is_hidden(s.kind);
    }
  }
  return items;
}

// A hidden output that is a program input, a literal or another state's output gets a
// copy, so that "the value of this state at step exit" names exactly one state.
void separate_hidden_outputs(const StepModel& step, std::size_t num_outputs, Items& out,
                             const Items& in) {
  std::vector<Value> taken;
  for (const Item& i : in) taken.push_back(i.value);
  auto is_taken = [&](const Value& v) {
    return std::any_of(taken.begin(), taken.end(), [&](const Value& t) {
      return t.builder() == v.builder() && t.id() == v.id();
    });
  };
  std::size_t next = num_outputs;
  for (const StepState& s : step.states) {
    for (std::size_t i = 0; i < s.out.size(); ++i, ++next) {
      if (!is_hidden(s.kind)) continue;
      Value& v = out[next].value;
      if (v.is_concrete()) v = in[0].value.builder()->constant(v.array());
      if (is_taken(v)) v = braintrace::copy(v);
      taken.push_back(v);
    }
  }
}

}  // namespace

// The step with another program of the same inputs and outputs.
static StepModel with_program(StepModel step, Graph program) {
  step.program = std::move(program);
  std::size_t arg = step.num_args, exit = step.num_outputs;
  for (StepState& s : step.states)
    for (std::size_t i = 0; i < s.in.size(); ++i) {
      s.in[i] = step.program.inputs()[arg++];
      s.out[i] = step.program.outputs()[exit++];
    }
  return step;
}

StepModel canonical_step(const StepModel& traced, const CompileOptions& options,
                         Diagnostics& diagnostics) {
  const bool counted =
      options.counted_loops == CountedLoops::scan && has_while(traced.program);
  const StepModel step =
      counted ? with_program(traced, count_loops(traced.program)) : traced;
  const auto builder = Builder::create();
  const Items in = tainted_inputs(step, *builder);
  std::set<ValueId> makes_hidden;
  for (const StepState& s : step.states)
    if (is_hidden(s.kind)) makes_hidden.insert(s.out[0]);
  Items out = Canonicalizer(options, diagnostics).run(step.program, in, makes_hidden);
  separate_hidden_outputs(step, step.num_outputs, out, in);
  std::vector<Value> values;
  for (const Item& i : out) values.push_back(i.value);
  return with_program(step, builder->finish(values));
}

}  // namespace braintrace
