// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/scan_descent.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "braintrace/etrace/evaluation.h"
#include "braintrace/etrace/graph_index.h"
#include "braintrace/etrace/scan_prologue.h"
#include "braintrace/ops/region_view.h"

namespace braintrace {
namespace {

bool is_region(const Node& n) { return as_scan(n) || as_while(n) || as_cond(n); }
bool nested(const Node& n) { return any_node(n, is_region); }

// Why the loop stays closed, whatever it carries; "" when it need not.
std::string blocker(const ModuleInfo& info, const CompileOptions& options, const Node& n,
                    const ScanView& view) {
  const ControlFlowPolicy& p = options.control_flow;
  if (p.scan_descent == "off") return "scan_descent is off";
  if (view.length <= p.scan_unroll_limit) return "it is short";
  if (view.reverse) return "it runs backwards";
  const auto body = view.body->nodes();
  if (std::any_of(body.begin(), body.end(), nested))
    return "its body contains control flow";
  for (std::size_t k = view.num_consts + view.num_carry; k < n.inputs.size(); ++k)
    if (info.weight_at(n.inputs[k])) return "it reads a weight slice by slice";
  return "";
}

bool may_open(const ModuleInfo& info, const CompileOptions& options, const Node& n) {
  const auto view = as_scan(n);
  if (!view || !blocker(info, options, n, *view).empty()) return false;
  return std::any_of(n.outputs.begin(),
                     n.outputs.begin() + static_cast<std::ptrdiff_t>(view->num_carry),
                     [&](ValueId v) { return info.hidden_at_output(v) != nullptr; });
}

class Descender : public GraphEvaluation {
 public:
  Descender(const ModuleInfo& info, const CompileOptions& options, Diagnostics& d)
      : info_(info), options_(options), diagnostics_(d) {}

  // What can be opened, in program order; `node` still counts in the given program.
  std::vector<ScanDescentInfo> find() {
    evaluate(info_.program());
    return std::move(opened_);
  }

 private:
  void eval_scan(std::size_t i, const Node& n) override {
    if (auto opened = open(i, n, *as_scan(n))) opened_.push_back(std::move(*opened));
  }

  std::optional<ScanDescentInfo> open(std::size_t i, const Node& n,
                                      const ScanView& view) {
    const bool uses_weight =
        std::any_of(n.inputs.begin(), n.inputs.end(),
                    [&](ValueId v) { return info_.weight_at(v) != nullptr; });
    if (!uses_weight && !any_node(n, is_etp)) return std::nullopt;
    if (const std::string why = blocker(info_, options_, n, view); !why.empty()) {
      const ControlFlowPolicy& p = options_.control_flow;
      if (view.length > p.scan_unroll_limit && p.scan_descent == "auto") skip(n, why);
      return std::nullopt;
    }
    ScanDescentInfo d{.length = view.length,
                      .num_consts = view.num_consts,
                      .num_carry = view.num_carry,
                      .node = i};
    if (!bind_body(d, n, view)) return std::nullopt;
    analyse(d);
    return d;
  }

  void skip(const Node& n, const std::string& why) {
    diagnostics_.note(
        {.kind = DiagnosticKind::scan_descent_skipped,
         .level = DiagnosticLevel::warning,
         .message = fmt::format("the body of the scan{} is not analysed: {}",
                                n.loc ? " at " + to_string(n.loc) : "", why)});
  }

  // False when no hidden state is carried, or one does not start at its own value.
  bool bind_body(ScanDescentInfo& d, const Node& n, const ScanView& view) {
    StepModel step{.program = *view.body};
    std::vector<HiddenVar> hidden;
    std::vector<WeightVar> weights;
    for (std::size_t k = 0; k < view.num_carry; ++k) {
      const HiddenVar* exit = info_.hidden_at_output(n.outputs[k]);
      const HiddenVar* entry = info_.hidden_at_input(n.inputs[view.num_consts + k]);
      if (!exit) continue;
      if (entry != exit) {
        skip(n,
             fmt::format("{} does not enter the loop unchanged", to_string(exit->path)));
        return false;
      }
      HiddenVar h = *exit;
      h.in = view.body->inputs()[view.num_consts + k];
      h.out = view.body->outputs()[k];
      hidden.push_back(std::move(h));
    }
    if (hidden.empty()) {
      if (options_.weight_source == WeightSource::all)  // the reference is silent
        skip(n, "no hidden state leaves it as it is carried");
      return false;
    }
    for (std::size_t k = 0; k < view.num_consts; ++k)
      if (const WeightVar* w = info_.weight_at(n.inputs[k])) {
        WeightVar inner = *w;
        inner.id = view.body->inputs()[k];
        weights.push_back(std::move(inner));
      }
    step.states = info_.step.states;  // for names and owners; ids are in the tables
    d.body = bind_tables(std::move(step), info_.control_flow, std::move(hidden),
                         std::move(weights));
    if (options_.weight_source == WeightSource::all) note_made_outside(d, n, view);
    return true;
  }

  // Constants that stay outside because they read data as well.
  void note_made_outside(ScanDescentInfo& d, const Node& n, const ScanView& view) const {
    for (std::size_t k = 0; k < view.num_consts; ++k) {
      if (info_.weight_at(n.inputs[k])) continue;
      for (const WeightVar& w : prologue_of(info_, n.inputs[k]).parameters)
        d.body.made_outside[view.body->inputs()[k]].push_back(w.path);
    }
  }

  void analyse(ScanDescentInfo& d) {
    CompileOptions inner = options_;
    inner.include_recurrent_mixing = false;
    inner.sparse_n.reset();
    // Sensitivities do not roll through sub-steps: such weights are local, on record.
    if (inner.weight_paths != WeightPaths::exclude)
      inner.weight_paths = WeightPaths::local;
    d.groups = find_hidden_groups_from_minfo(d.body, inner, diagnostics_);
    d.relations =
        find_hidden_param_op_relations_from_minfo(d.body, d.groups, inner, diagnostics_);
    std::set<Path> used, related;
    for (const WeightVar& w : d.body.weights) used.insert(w.path);
    for (const HiddenParamOpRelation& r : d.relations)
      for (const Trainable& t : r.trainables) related.insert(t.path);
    std::vector<Path> lost;
    std::set_difference(used.begin(), used.end(), related.begin(), related.end(),
                        std::back_inserter(lost));
    for (const Path& p : lost)
      diagnostics_.note({.kind = DiagnosticKind::scan_descent_no_relations,
                         .level = DiagnosticLevel::warning,
                         .message = fmt::format(
                             "no trainable op of a long scan takes weight {} to a hidden "
                             "state of its body",
                             to_string(p)),
                         .weight_path = p});
    std::vector<Path> hidden;
    for (const HiddenVar& h : d.body.hidden) hidden.push_back(h.path);
    diagnostics_.note(
        {.kind = DiagnosticKind::scan_descent_applied,
         .level = DiagnosticLevel::info,
         .message = fmt::format("the body of a scan of length {} is analysed as "
                                "a step of its own",
                                d.length),
         .hidden_paths = hidden,
         .context = {{"length", fmt::format("{}", d.length)},
                     {"weight_paths", path_list({used.begin(), used.end()})}}});
  }

  const ModuleInfo& info_;
  const CompileOptions& options_;
  Diagnostics& diagnostics_;
  std::vector<ScanDescentInfo> opened_;
};

// Body values that must leave the loop, each once, in a fixed order.
std::vector<ValueId> wanted(const ScanDescentInfo& d) {
  std::vector<ValueId> out;
  auto add = [&](ValueId v) {
    if (std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
  };
  for (const HiddenParamOpRelation& r : d.relations) {
    if (r.x) add(*r.x);
    for (const auto& constants : r.tail_constants) {
      for (ValueId v : constants) add(v);
      add(r.y);
    }
  }
  for (const HiddenGroup& g : d.groups) {
    for (ValueId v : g.hidden_invars()) add(v);
    for (ValueId v : g.transition_constants) add(v);
  }
  return out;
}

// The program with the prologues of weights inside the loops that may be opened.
class SunkRewrite : public GraphRewrite {
 public:
  SunkRewrite(const ModuleInfo& info, const CompileOptions& options)
      : GraphRewrite(info.program()), info_(info), options_(options) {}

  std::optional<ModuleInfo> run() {
    evaluate(graph());
    if (!changed_) return std::nullopt;
    const std::vector<Value> outputs = values(graph().outputs());
    return rebind(info_, builder().finish(outputs), outputs.size());
  }

 private:
  void eval_scan(std::size_t i, const Node& n) override {
    const bool opens = may_open(info_, options_, n);
    const auto sunk = opens ? with_prologues_inside(info_, n) : std::nullopt;
    if (!sunk) return eval_node(i, n);
    changed_ = true;
    define(n, builder().record(*n.op, values(sunk->inputs), sunk->attrs, n.loc));
  }

  const ModuleInfo& info_;
  const CompileOptions& options_;
  bool changed_ = false;
};

// The program with every opened loop handing out its wanted values.
class StackedRewrite : public GraphRewrite {
 public:
  StackedRewrite(const ModuleInfo& info, std::vector<ScanDescentInfo>& opened)
      : GraphRewrite(info.program()),
        info_(info),
        opened_(opened),
        extra_(opened.size()) {}

  ModuleInfo run() {
    evaluate(graph());
    std::vector<Value> outputs = values(graph().outputs());
    const std::size_t fixed = outputs.size();
    for (const auto& list : extra_)
      outputs.insert(outputs.end(), list.begin(), list.end());
    ModuleInfo result = rebind(info_, builder().finish(outputs), fixed);
    std::size_t next = fixed;
    for (ScanDescentInfo& d : opened_)
      for (ValueId v : wanted(d)) d.stacked[v] = result.program().outputs()[next++];
    return result;
  }

 private:
  void eval_scan(std::size_t i, const Node& n) override {
    const auto d = std::find_if(opened_.begin(), opened_.end(),
                                [&](const ScanDescentInfo& s) { return s.node == i; });
    if (d == opened_.end()) return eval_node(i, n);
    const std::vector<Value> out = builder().record(
        *n.op, values(n.inputs), scan_attrs_with_ys(n, wanted(*d)), n.loc);
    extra_[static_cast<std::size_t>(d - opened_.begin())].assign(
        out.begin() + static_cast<std::ptrdiff_t>(n.outputs.size()), out.end());
    define(n, out);
  }

  const ModuleInfo& info_;
  std::vector<ScanDescentInfo>& opened_;
  std::vector<std::vector<Value>> extra_;  // per opened loop
};

}  // namespace

ScanDescent apply_scan_descent(ModuleInfo& info, const CompileOptions& options,
                               Diagnostics& diagnostics) {
  const bool sound = options.weight_source == WeightSource::all;
  if (sound)
    if (auto sunk = SunkRewrite(info, options).run()) info = std::move(*sunk);
  std::vector<ScanDescentInfo> opened = Descender(info, options, diagnostics).find();
  ScanDescent out;
  if (opened.empty()) return out;
  info = StackedRewrite(info, opened).run();
  for (ScanDescentInfo& d : opened) {
    info.descended_nodes.insert(d.node);
    for (const HiddenVar& h : d.body.hidden) info.descended_hidden.insert(h.path);
    out.push_back(std::make_shared<const ScanDescentInfo>(std::move(d)));
  }
  return out;
}

void append_groups(std::vector<HiddenGroup>& groups, const ScanDescent& descent) {
  for (const auto& d : descent)
    for (HiddenGroup g : d->groups) {
      g.index = static_cast<std::int64_t>(groups.size());
      g.descent = d;
      groups.push_back(std::move(g));
    }
}

void append_relations(std::vector<HiddenParamOpRelation>& relations,
                      const std::vector<HiddenGroup>& groups,
                      const ScanDescent& descent) {
  for (const HiddenParamOpRelation& r : relations)
    for (std::int64_t i : r.group_indices) {
      const bool inside = groups[static_cast<std::size_t>(i)].descent != nullptr;
      BT_REQUIRE_KIND(
          !inside || r.kind == RelationKind::dense, ErrorKind::not_implemented,
          fmt::format("{} of {} feeds a hidden state that a long scan updates; "
                      "move the op into the scan body",
                      r.primitive, to_string(r.path())));
    }
  for (const auto& d : descent)
    for (HiddenParamOpRelation r : d->relations) {
      r.control_flow_context = d;
      for (std::int64_t& i : r.group_indices) {
        const HiddenGroup& inner = d->groups[static_cast<std::size_t>(i)];
        for (const HiddenGroup& g : groups)
          if (g.descent == d && g.hidden_paths() == inner.hidden_paths()) i = g.index;
      }
      relations.push_back(std::move(r));
    }
}

std::vector<ValueId> stacked_values(const std::vector<HiddenGroup>& groups) {
  std::vector<ValueId> out;
  std::set<const ScanDescentInfo*> seen;
  for (const HiddenGroup& g : groups) {
    if (!g.descent || !seen.insert(g.descent.get()).second) continue;
    for (ValueId v : wanted(*g.descent)) out.push_back(g.descent->stacked.at(v));
  }
  return out;
}

}  // namespace braintrace
