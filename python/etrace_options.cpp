// SPDX-License-Identifier: Apache-2.0
#include "etrace_options.h"

#include <algorithm>

#include "named_option.h"
#include "records.h"
#include <fmt/format.h>

#include "braintrace/etrace/cut_set.h"
#include "braintrace/etrace/etrace_graph.h"
#include "braintrace/etrace/report.h"

namespace braintrace::python {
namespace {

constexpr const char* a_policy = "a ControlFlowPolicy or a dict of its knobs";

// An option with what messages say of it.
struct Option {
  const char* who;
  std::string name;
  py::handle value;

  bool flag() const { return option_as<bool>(who, name, a_truth, value); }
  std::string text() const { return option_as<std::string>(who, name, a_name, value); }
  std::int64_t integer() const {
    return option_as<std::int64_t>(who, name, an_integer, value);
  }
};

ControlFlowPolicy policy_of(const py::dict& d) {
  ControlFlowPolicy p;
  for (const auto& [key, knob] : d) {
    const Option value{"control_flow", key.cast<std::string>(), knob};
    const std::string& name = value.name;
    if (name == "cond")
      p.cond = value.text();
    else if (name == "while_hidden")
      p.while_hidden = value.text();
    else if (name == "etp_in_control_flow")
      p.etp_in_control_flow = value.text();
    else if (name == "scan_descent")
      p.scan_descent = value.text();
    else if (name == "scan_unroll_limit")
      p.scan_unroll_limit = value.integer();
    else if (name == "fixpoint_iteration_limit")
      p.fixpoint_iteration_limit = value.integer();
    else
      throw UserError(ErrorKind::type, "control_flow has no knob '" + name + "'");
  }
  validate(p);
  return p;
}

py::dict knobs_of(const ControlFlowPolicy& p) {
  py::dict d;
  d["cond"] = p.cond;
  d["scan_unroll_limit"] = p.scan_unroll_limit;
  d["while_hidden"] = p.while_hidden;
  d["etp_in_control_flow"] = p.etp_in_control_flow;
  d["scan_descent"] = p.scan_descent;
  d["fixpoint_iteration_limit"] = p.fixpoint_iteration_limit;
  return d;
}

void def_policy(py::module_& m) {
  using P = ControlFlowPolicy;
  py::class_<P>(m, "ControlFlowPolicy",
                "How loops and branches are treated; given as control_flow=...\n\n"
                ">>> bt.ControlFlowPolicy(scan_unroll_limit=4).cond\n'convert'")
      .def(py::init([](const py::kwargs& knobs) { return policy_of(knobs); }))
      .def_readonly("cond", &P::cond)
      .def_readonly("scan_unroll_limit", &P::scan_unroll_limit)
      .def_readonly("while_hidden", &P::while_hidden)
      .def_readonly("etp_in_control_flow", &P::etp_in_control_flow)
      .def_readonly("scan_descent", &P::scan_descent)
      .def_readonly("fixpoint_iteration_limit", &P::fixpoint_iteration_limit)
      .def(
          "__eq__", [](const P& a, const P& b) { return a == b; }, py::is_operator())
      .def("__hash__", [](const P& p) { return py::hash(py::repr(knobs_of(p))); })
      .def("__repr__", [](const P& p) {
        std::string text;
        for (const auto& [name, value] : knobs_of(p))
          text +=
              fmt::format("{}{}={}", text.empty() ? "" : ", ", name.cast<std::string>(),
                          py::repr(value).cast<std::string>());
        return "ControlFlowPolicy(" + text + ")";
      });
}

void def_kinds(py::module_& m) {
  py::enum_<DiagnosticKind> kind(m, "DiagnosticKind",
                                 "What a record of the compiler is about.\n\n"
                                 ">>> bt.DiagnosticKind.RELATION_INCLUDED.name\n"
                                 "'RELATION_INCLUDED'");
  for (const DiagnosticKind k : all_diagnostic_kinds()) {
    std::string name(to_string(k));
    std::transform(name.begin(), name.end(), name.begin(), ::toupper);
    kind.value(name.c_str(), k);
  }
  py::enum_<DiagnosticLevel>(m, "DiagnosticLevel",
                             "How much a record matters.\n\n"
                             ">>> bt.DiagnosticLevel.WARNING.name"
                             "\n'WARNING'")
      .value("INFO", DiagnosticLevel::info)
      .value("WARNING", DiagnosticLevel::warning)
      .value("ERROR", DiagnosticLevel::error);
}

}  // namespace

bool set_compile_option(CompileOptions& o, const std::string& name,
                        const py::object& given) {
  const auto names = option_names();
  const Option value{"compile", name, given};
  if (name == "include_hidden_perturb") {
    o.include_hidden_perturb = value.flag();
  } else if (name == "include_recurrent_mixing") {
    o.include_recurrent_mixing = value.flag();
  } else if (name == "sparse_n") {
    o.sparse_n =
        option_as<std::optional<std::int64_t>>("compile", name, an_integer, given);
  } else if (name == "snap_max_jacobian_elements") {
    o.snap_max_jacobian_elements = value.integer();
  } else if (name == "batched") {
    o.batched = value.flag();
  } else if (name == "control_flow") {
    o.control_flow =
        py::isinstance<ControlFlowPolicy>(given)
            ? given.cast<ControlFlowPolicy>()
            : policy_of(option_as<py::dict>("compile", name, a_policy, given));
  } else if (std::find(names.begin(), names.end(), name) != names.end()) {
    set_option(o, name, value.text());
  } else {
    return false;
  }
  return true;
}

CompileOptions compile_options(const py::dict& keywords) {
  const bool reference = keywords.contains("compat") &&
                         Option{"compile", "compat", keywords["compat"]}.flag();
  CompileOptions o = reference ? compat() : CompileOptions{};
  for (const auto& [key, value] : keywords) {
    const auto name = key.cast<std::string>();
    if (name == "compat") continue;
    if (!set_compile_option(o, name, py::reinterpret_borrow<py::object>(value)))
      throw UserError(
          ErrorKind::type,
          fmt::format(
              "compile: no option '{}'; there are compat, include_hidden_perturb, "
              "include_recurrent_mixing, sparse_n, snap_max_jacobian_elements, batched, "
              "control_flow, {}",
              name, fmt::join(option_names(), ", ")));
  }
  return o;
}

namespace {

py::tuple fields_of(const ParameterVerdict& v) {
  return py::make_tuple(v.path, static_cast<int>(v.verdict), v.reason);
}

ParameterVerdict verdict_of(const py::tuple& t) {
  require_fields<ParameterVerdict>(t, 3);
  return {t[0].cast<Path>(), static_cast<Verdict>(t[1].cast<int>()),
          t[2].cast<std::string>()};
}

}  // namespace

void init_etrace_records(py::module_& m) {
  def_kinds(m);
  def_policy(m);
  using R = CompilationRecord;
  auto record =
      py::class_<R>(m, "CompilationRecord",
                    "One decision of the compiler.\n\n"
                    ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4), seed=1)\n"
                    ">>> graph = bt.compile_etrace_graph(gru, bt.zeros(3))\n"
                    ">>> graph.diagnostics[0].kind.name\n'RELATION_INCLUDED'")
          .def_readonly("kind", &R::kind)
          .def_readonly("level", &R::level)
          .def_readonly("message", &R::message)
          .def_readonly("primitive", &R::primitive)
          .def_readonly("weight_path", &R::weight_path)
          .def_readonly("hidden_paths", &R::hidden_paths)
          .def_property_readonly("context",
                                 [](const R& r) {
                                   return std::map<std::string, std::string>(
                                       r.context.begin(), r.context.end());
                                 })
          .def("__repr__", [](const R& r) { return to_string(r); });
  def_record(record, &R::kind, &R::level, &R::message, &R::primitive, &R::weight_path,
             &R::hidden_paths, &R::more_weights, &R::context);
  record.def("__hash__",
             [](const R& r) { return std::hash<std::string>()(to_string(r)); });
  auto verdict =
      py::class_<ParameterVerdict>(
          m, "ParameterVerdict",
          "What becomes of a parameter.\n\n"
          ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4), seed=1)\n"
          ">>> graph = bt.compile_etrace_graph(gru, bt.zeros(3))\n"
          ">>> graph.verdicts[0]\n('Wh', 'weight'): direct")
          .def_readonly("path", &ParameterVerdict::path)
          .def_readonly("reason", &ParameterVerdict::reason)
          .def_property_readonly(
              "verdict",
              [](const ParameterVerdict& v) { return std::string(to_string(v.verdict)); })
          .def("__repr__", [](const ParameterVerdict& v) {
            return fmt::format("{}: {}", to_string(v.path), to_string(v.verdict));
          });
  def_as_tuple(verdict, fields_of, verdict_of);
  py::class_<CutEntry>(m, "CutEntry",
                       "Where past credit stops.\n\n"
                       ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4), seed=1)\n"
                       ">>> graph = bt.compile_etrace_graph(gru, bt.zeros(3))\n"
                       ">>> graph.cuts[0].weight_path\n('Wz', 'weight')")
      .def_readonly("op", &CutEntry::op)
      .def_readonly("where", &CutEntry::where)
      .def_readonly("weight_path", &CutEntry::weight_path)
      .def_readonly("from_", &CutEntry::from)
      .def_readonly("weights", &CutEntry::weights)
      .def_readonly("to", &CutEntry::to)
      .def("__repr__", [](const CutEntry& c) { return to_string(c); });
}

}  // namespace braintrace::python
