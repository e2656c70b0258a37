// SPDX-License-Identifier: Apache-2.0
// The summary of a compiled graph.
#include "convert.h"

#include "braintrace/etrace/report.h"

namespace braintrace::python {
namespace {

using Report = CompilationReport;

std::string escaped(const std::string& text) {
  return py::module_::import("html").attr("escape")(text).cast<std::string>();
}

std::string to_html_table(const Report& r) {
  std::string rows;
  for (const ParameterVerdict& v : r.verdicts)
    rows += "<tr><td><code>" + escaped(to_slashes(v.path)) + "</code></td><td>" +
            std::string(to_string(v.verdict)) + "</td><td>" + escaped(v.reason) +
            "</td></tr>";
  return "<p>" + escaped(r.one_line()) +
         "</p><table><tr><th>parameter</th><th>verdict</th><th>reason</th></tr>" + rows +
         "</table>";
}

}  // namespace

void init_report(py::module_& m) {
  using namespace py::literals;
  py::class_<Report>(m, "CompilationReport",
                     "A read-only summary of a compiled graph.\n\n"
                     ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4), seed=1)\n"
                     ">>> graph = bt.compile_etrace_graph(gru, bt.zeros(3))\n"
                     ">>> graph.report.counts['hidden_groups']\n1")
      .def_property_readonly("hidden_groups",
                             [](const Report& r) {
                               py::list out;
                               for (const auto& g : r.hidden_groups)
                                 out.append(py::make_tuple(g.index, g.paths));
                               return out;
                             })
      .def_property_readonly("etrace_weights",
                             [](const Report& r) {
                               py::list out;
                               for (const auto& w : r.etrace_weights)
                                 out.append(py::make_tuple(w.path, w.groups));
                               return out;
                             })
      .def_property_readonly("excluded_weights",
                             [](const Report& r) {
                               py::list out;
                               for (const auto& w : r.excluded_weights)
                                 out.append(py::make_tuple(w.path, w.reason));
                               return out;
                             })
      .def_readonly("dynamic_states", &Report::dynamic_states)
      .def_readonly("diagnostics", &Report::diagnostics)
      .def_readonly("verdicts", &Report::verdicts)
      .def_readonly("counts", &Report::counts)
      .def("to_str", &Report::to_str, "level"_a = 1, "The reference's layout.")
      .def("one_line", &Report::one_line)
      .def("verdict_table", &Report::verdict_table)
      .def("__str__", [](const Report& r) { return r.to_str(); })
      .def("__repr__", &Report::one_line)
      .def("_repr_html_", &to_html_table);
}

}  // namespace braintrace::python
