// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/control_flow.h"

#include <functional>
#include <set>

#include <fmt/format.h>

#include "braintrace/etrace/evaluation.h"
#include "braintrace/etrace/graph_index.h"
#include "braintrace/etrace/weight_source.h"
#include "braintrace/ops/region_view.h"

namespace braintrace {
namespace {

std::string at(const Node& n) { return n.loc ? " at " + to_string(n.loc) : ""; }

// Visits the loops and branches that are left closed, with their index.
class ClosedControlFlow : public GraphEvaluation {
 public:
  using Visit = std::function<void(std::size_t, const Node&, std::string_view kind)>;
  static void visit(const ModuleInfo& info, Visit visit) {
    ClosedControlFlow(info, std::move(visit)).evaluate(info.program());
  }

 private:
  ClosedControlFlow(const ModuleInfo& info, Visit visit)
      : info_(info), visit_(std::move(visit)) {}
  void eval_control_flow(std::size_t i, const Node& n, std::string_view kind) override {
    if (!info_.descended_nodes.contains(i)) visit_(i, n, kind);
  }

  const ModuleInfo& info_;
  const Visit visit_;
};

class ControlFlowCheck {
 public:
  ControlFlowCheck(const ModuleInfo& info, const CompileOptions& options, Diagnostics& d)
      : info_(info),
        options_(options),
        diagnostics_(d),
        enclosed_(enclosed_weights(info, options)) {}

  void check(std::size_t i, const Node& n, std::string_view kind) {
    for (const EnclosedWeight& w : enclosed_)
      if (w.node == i) weight(w);
    for (ValueId v : n.outputs)
      if (const HiddenVar* h = info_.hidden_at_output(v)) hidden(n, kind, *h);
  }

 private:
  void weight(const EnclosedWeight& w) {
    const bool loop = w.kind == "while";
    const bool goes_on = options_.control_flow.etp_in_control_flow == "local" &&
                         (!loop || options_.on_refused == OnRefused::freeze);
    const std::string_view remedy =
        loop ? "apply the weight outside the loop, or use a scan of fixed length"
             : "apply the weight outside, or raise ControlFlowPolicy.scan_unroll_limit";
    const std::string message = fmt::format("weight {} is used inside a {}; {}",
                                            to_string(w.path), w.place, remedy);
    diagnostics_.note(
        {.kind = loop ? DiagnosticKind::weight_in_while
                      : DiagnosticKind::weight_in_control_flow,
         .level = goes_on ? DiagnosticLevel::warning : DiagnosticLevel::error,
         .message = message,
         .primitive = w.kind,
         .weight_path = w.path});
    BT_REQUIRE_KIND(goes_on, ErrorKind::not_implemented, message);
  }

  void hidden(const Node& n, std::string_view kind, const HiddenVar& h) {
    const std::string message = fmt::format("hidden state {} is the result of a {}{}",
                                            to_string(h.path), kind, at(n));
    BT_REQUIRE_KIND(options_.control_flow.while_hidden == "opaque-fwd",
                    ErrorKind::not_implemented,
                    message + "; ControlFlowPolicy.while_hidden is 'error'");
    CompilationRecord r{.kind = DiagnosticKind::control_flow_opaque_fwd,
                        .level = DiagnosticLevel::info,
                        .message = message + "; it is kept as one opaque forward node",
                        .primitive = std::string(kind)};
    if (options_.opaque_records == OpaqueRecords::once) r.hidden_paths = {h.path};
    diagnostics_.note(std::move(r));
  }

  const ModuleInfo& info_;
  const CompileOptions& options_;
  Diagnostics& diagnostics_;
  const std::vector<EnclosedWeight> enclosed_;
};

// Trainable ops in bodies of any kind, calls included.
class ClosedBodies : public GraphEvaluation {
 public:
  ClosedBodies(const ModuleInfo& info, Diagnostics& d) : info_(info), diagnostics_(d) {}

 private:
  void eval_pjit(std::size_t i, const Node& n) override {
    eval_control_flow(i, n, n.op->name);
  }
  void eval_control_flow(std::size_t i, const Node& n, std::string_view kind) override {
    if (info_.descended_nodes.contains(i) || !any_node(n, is_etp)) return;
    const std::string message = fmt::format(
        "a trainable op sits inside a {}{} that the compiler does not open", kind, at(n));
    const bool refuse = info_.control_flow.etp_in_control_flow == "error";
    diagnostics_.note(
        {.kind = DiagnosticKind::primitive_inside_control_flow,
         .level = refuse ? DiagnosticLevel::error : DiagnosticLevel::warning,
         .message = message});
    BT_REQUIRE_KIND(!refuse, ErrorKind::not_implemented, message);
  }

  const ModuleInfo& info_;
  Diagnostics& diagnostics_;
};

// The parameters a value is, or is made of alone.
std::vector<Path> weights_behind(const ModuleInfo& info, ValueId v,
                                 const CompileOptions& options) {
  if (const WeightVar* w = info.weight_at(v)) return {w->path};
  if (options.weight_source == WeightSource::first_found) return {};
  const Prologue p = prologue_of(info, v);
  std::vector<Path> paths;
  for (const WeightVar& w : p.parameters)
    if (!p.dynamic) paths.push_back(w.path);
  return paths;
}

}  // namespace

std::vector<EnclosedWeight> enclosed_weights(const ModuleInfo& info,
                                             const CompileOptions& options) {
  std::vector<EnclosedWeight> out;
  ClosedControlFlow::visit(
      info, [&](std::size_t i, const Node& n, std::string_view kind) {
        std::set<Path> seen;
        for (ValueId v : n.inputs)
          for (const Path& p : weights_behind(info, v, options))
            if (seen.insert(p).second)
              out.push_back({p, i, std::string(kind), std::string(kind) + at(n)});
      });
  return out;
}

void check_control_flow(const ModuleInfo& info, const CompileOptions& options,
                        Diagnostics& diagnostics) {
  ControlFlowCheck check(info, options, diagnostics);
  ClosedControlFlow::visit(info, [&](std::size_t i, const Node& n,
                                     std::string_view kind) { check.check(i, n, kind); });
}

void note_opaque_perturbation(const ModuleInfo& info, const CompileOptions& options,
                              Diagnostics& diagnostics) {
  if (options.opaque_records == OpaqueRecords::once) return;
  ClosedControlFlow::visit(info, [&](std::size_t, const Node& n, std::string_view kind) {
    for (ValueId v : n.outputs) {
      const HiddenVar* h = info.hidden_at_output(v);
      if (!h) continue;
      CompilationRecord r{
          .kind = DiagnosticKind::control_flow_opaque_fwd,
          .level = DiagnosticLevel::info,
          .message = fmt::format("hidden state {} is the result of a {}{}",
                                 to_string(h->path), kind, at(n))};
      diagnostics.note(r);
      if (kind != "while") continue;
      r.level = DiagnosticLevel::warning;
      r.message += "; its inputs are detached for reverse mode";
      r.context = {{"site", "'perturbation'"}};
      diagnostics.note(std::move(r));
    }
  });
}

void check_etp_in_control_flow(const ModuleInfo& info, Diagnostics& diagnostics) {
  ClosedBodies(info, diagnostics).evaluate(info.program());
}

}  // namespace braintrace
