// SPDX-License-Identifier: Apache-2.0
// The summary of a compiled graph.
#include "records.h"

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

// Pairs in Python, structures here.
template <class Item, class A, class B>
py::list pairs_of(const std::vector<Item>& items, A Item::*first, B Item::*second) {
  py::list out;
  for (const Item& i : items) out.append(py::make_tuple(i.*first, i.*second));
  return out;
}

template <class Item, class A, class B>
std::vector<Item> items_of(const py::handle& pairs, A Item::*first, B Item::*second) {
  std::vector<Item> out;
  for (auto& [a, b] : pairs.cast<std::vector<std::pair<A, B>>>()) {
    Item i;
    i.*first = std::move(a);
    i.*second = std::move(b);
    out.push_back(std::move(i));
  }
  return out;
}

py::list groups(const Report& r) {
  return pairs_of(r.hidden_groups, &Report::Group::index, &Report::Group::paths);
}
py::list traced(const std::vector<Report::TracedWeight>& weights) {
  return pairs_of(weights, &Report::TracedWeight::path, &Report::TracedWeight::groups);
}
py::list excluded(const Report& r) {
  return pairs_of(r.excluded_weights, &Report::ExcludedWeight::path,
                  &Report::ExcludedWeight::reason);
}

py::tuple fields_of_report(const Report& r) {
  return py::make_tuple(groups(r), traced(r.relations), traced(r.etrace_weights),
                        excluded(r), r.dynamic_states, r.diagnostics, r.verdicts,
                        r.counts);
}

Report report_of(const py::tuple& t) {
  using Group = Report::Group;
  using Traced = Report::TracedWeight;
  using Excluded = Report::ExcludedWeight;
  require_fields<Report>(t, 8);
  Report r;
  r.hidden_groups = items_of(t[0], &Group::index, &Group::paths);
  r.relations = items_of(t[1], &Traced::path, &Traced::groups);
  r.etrace_weights = items_of(t[2], &Traced::path, &Traced::groups);
  r.excluded_weights = items_of(t[3], &Excluded::path, &Excluded::reason);
  r.dynamic_states = t[4].cast<decltype(r.dynamic_states)>();
  r.diagnostics = t[5].cast<decltype(r.diagnostics)>();
  r.verdicts = t[6].cast<decltype(r.verdicts)>();
  r.counts = t[7].cast<decltype(r.counts)>();
  return r;
}

}  // namespace

void init_report(py::module_& m) {
  using namespace py::literals;
  auto type =
      py::class_<Report>(m, "CompilationReport",
                         "A read-only summary of a compiled graph.\n\n"
                         ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4), seed=1)\n"
                         ">>> graph = bt.compile_etrace_graph(gru, bt.zeros(3))\n"
                         ">>> graph.report.counts['hidden_groups']\n1")
          .def_property_readonly("hidden_groups", &groups)
          .def_property_readonly("etrace_weights",
                                 [](const Report& r) { return traced(r.etrace_weights); })
          .def_property_readonly("excluded_weights", &excluded)
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
  def_as_tuple(type, fields_of_report, report_of);
}

}  // namespace braintrace::python
