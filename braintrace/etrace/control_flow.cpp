// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/control_flow.h"

#include <fmt/format.h>

#include "braintrace/etrace/evaluation.h"
#include "braintrace/etrace/weight_source.h"
#include "braintrace/ops/region_view.h"

namespace braintrace {
namespace {

std::string at(const Node& n) { return n.loc ? " at " + to_string(n.loc) : ""; }

bool is_etp(const Node& n) { return n.op->etp != nullptr; }

class ControlFlowCheck : public GraphEvaluation {
 public:
  ControlFlowCheck(const ModuleInfo& info, const CompileOptions& options, Diagnostics& d)
      : info_(info), options_(options), diagnostics_(d) {}

 protected:
  void eval_scan(std::size_t i, const Node& n) override { check(i, n, "scan"); }
  void eval_while(std::size_t i, const Node& n) override { check(i, n, "while"); }
  void eval_cond(std::size_t i, const Node& n) override { check(i, n, "cond"); }

 private:
  void check(std::size_t i, const Node& n, std::string_view kind) {
    if (info_.descended_nodes.contains(i)) return;
    for (ValueId v : n.inputs)
      if (const std::optional<WeightVar> w = weight_behind(v, kind))
        refuse_weight(n, kind, *w);
    for (ValueId v : n.outputs)
      if (const HiddenVar* h = info_.hidden_at_output(v)) hidden(n, kind, *h);
  }

  // The weight an input is, or, for loops without reverse mode, is made of alone.
  std::optional<WeightVar> weight_behind(ValueId v, std::string_view kind) const {
    if (const WeightVar* w = info_.weight_at(v)) return *w;
    if (kind != "while" || options_.weight_source == WeightSource::first_found) return {};
    const Prologue p = prologue_of(info_, v);
    if (p.parameters.empty() || p.dynamic) return {};
    return p.parameters.front();
  }

  void refuse_weight(const Node& n, std::string_view kind, const WeightVar& w) {
    const bool loop = kind == "while";
    const std::string message = fmt::format(
        "weight {} is used inside a {}{}; {}", to_string(w.path), kind, at(n),
        loop ? "apply the weight outside the loop, or use a scan of fixed length"
             : "apply the weight outside, or raise ControlFlowPolicy.scan_unroll_limit");
    diagnostics_.note({.kind = loop ? DiagnosticKind::weight_in_while
                                    : DiagnosticKind::weight_in_control_flow,
                       .level = DiagnosticLevel::error,
                       .message = message,
                       .primitive = std::string(kind),
                       .weight_path = w.path});
    throw UserError(ErrorKind::not_implemented, message);
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
};

}  // namespace

void check_control_flow(const ModuleInfo& info, const CompileOptions& options,
                        Diagnostics& diagnostics) {
  ControlFlowCheck(info, options, diagnostics).evaluate(info.program());
}

void note_opaque_perturbation(const ModuleInfo& info, const CompileOptions& options,
                              Diagnostics& diagnostics) {
  if (options.opaque_records == OpaqueRecords::once) return;
  for (std::size_t i = 0; i < info.program().nodes().size(); ++i) {
    const Node& n = info.program().nodes()[i];
    const bool opaque = as_scan(n) || as_while(n) || as_cond(n);
    if (!opaque || info.descended_nodes.contains(i)) continue;
    for (ValueId v : n.outputs) {
      const HiddenVar* h = info.hidden_at_output(v);
      if (!h) continue;
      CompilationRecord r{
          .kind = DiagnosticKind::control_flow_opaque_fwd,
          .level = DiagnosticLevel::info,
          .message = fmt::format("hidden state {} is the result of a {}{}",
                                 to_string(h->path), n.op->name, at(n))};
      diagnostics.note(r);
      if (!as_while(n)) continue;
      r.level = DiagnosticLevel::warning;
      r.message += "; its inputs are detached for reverse mode";
      r.context = {{"site", "'perturbation'"}};
      diagnostics.note(std::move(r));
    }
  }
}

void check_etp_in_control_flow(const ModuleInfo& info, Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < info.program().nodes().size(); ++i) {
    const Node& n = info.program().nodes()[i];
    if (!has(n.op->traits, Trait::region) || !any_node(n, is_etp)) continue;
    if (info.descended_nodes.contains(i)) continue;
    const std::string message =
        fmt::format("a trainable op sits inside a {}{} that the compiler does not open",
                    n.op->name, at(n));
    const bool refuse = info.control_flow.etp_in_control_flow == "error";
    diagnostics.note({.kind = DiagnosticKind::primitive_inside_control_flow,
                      .level = refuse ? DiagnosticLevel::error : DiagnosticLevel::warning,
                      .message = message});
    BT_REQUIRE_KIND(!refuse, ErrorKind::not_implemented, message);
  }
}

}  // namespace braintrace
