// SPDX-License-Identifier: Apache-2.0
// The compiled graph: hidden groups, relations, perturbation, with the reference's names.
#include "convert.h"
#include "etrace_options.h"
#include "py_module.h"
#include <fmt/format.h>

#include "braintrace/etrace/cut_set.h"
#include "braintrace/etrace/etrace_graph.h"
#include "braintrace/etrace/report.h"
#include "braintrace/view/dot.h"
#include "braintrace/view/html.h"
#include "braintrace/view/json.h"
#include "braintrace/view/svg.h"

namespace braintrace::python {
namespace {

using namespace py::literals;
using Arrays = std::vector<Array>;

// Fields by name in the reference's order, as the objects themselves.
py::dict fields_of(const py::object& self,
                   const std::vector<std::pair<std::string, std::string>>& names) {
  py::dict out;
  for (const auto& [name, text] : names)
    out[py::str(name)] = py::hasattr(self, name.c_str()) ? self.attr(name.c_str())
                                                         : py::object(py::str(text));
  return out;
}

py::tuple call_result(const ModuleInfo::CallResult& r) {
  py::dict temps;
  for (const auto& [id, array] : r.temps) temps[py::cast(id)] = py::cast(array);
  py::object out = r.out.size() == 1 ? py::cast(r.out.front())
                                     : py::object(py::tuple(py::cast(r.out)));
  return py::make_tuple(out, r.etrace_vals, r.other_state_vals, temps);
}

Arrays to_arrays(const py::iterable& items) {
  std::vector<Value> leaves;
  flatten(py::tuple(items), leaves);
  Arrays out;
  for (const Value& v : leaves) out.push_back(v.array());
  return out;
}

void def_module_info(py::module_& m) {
  py::class_<ModuleInfo, std::shared_ptr<ModuleInfo>>(m, "ModuleInfo",
                                                      "A traced step, ready to compile.")
      .def_property_readonly("program", &ModuleInfo::program)
      .def_property_readonly("jaxpr", &ModuleInfo::program)
      .def_readonly("step", &ModuleInfo::step)
      .def_readonly("num_var_out", &ModuleInfo::num_var_out)
      .def_readonly("num_var_state", &ModuleInfo::num_var_state)
      .def_property_readonly("param_paths", &ModuleInfo::param_paths)
      .def_property_readonly("hidden_paths",
                             [](const ModuleInfo& i) {
                               std::vector<Path> paths;
                               for (const HiddenVar& h : i.hidden)
                                 paths.push_back(h.path);
                               return paths;
                             })
      .def("jaxpr_call",
           [](const ModuleInfo& i, const py::args& args) {
             return call_result(i.jaxpr_call(to_arrays(args)));
           })
      .def("dict", [](const py::object& s) {
        return fields_of(s, s.cast<const ModuleInfo&>().dict());
      });
}

void def_group(py::module_& m) {
  py::class_<HiddenGroup, std::shared_ptr<HiddenGroup>>(
      m, "HiddenGroup", "Hidden states that feed each other within one step.")
      .def_readonly("index", &HiddenGroup::index)
      .def_readonly("is_diagonal_recurrence", &HiddenGroup::is_diagonal_recurrence)
      .def_readonly("has_recurrence", &HiddenGroup::has_recurrence)
      .def_readonly("transition_program", &HiddenGroup::transition_program)
      .def_property_readonly("transition_jaxpr",
                             [](const HiddenGroup& g) { return g.transition_program; })
      .def_property_readonly("hidden_paths", &HiddenGroup::hidden_paths)
      .def_property_readonly(
          "hidden_states",
          [](const py::object& self) {
            py::list states;
            for (HiddenState* s : self.cast<const HiddenGroup&>().hidden_states())
              states.append(wrap_state(*s, self));
            return states;
          })
      .def_property_readonly("hidden_invars", &HiddenGroup::hidden_invars)
      .def_property_readonly("hidden_outvars", &HiddenGroup::hidden_outvars)
      .def_property_readonly("varshape",
                             [](const HiddenGroup& g) { return to_tuple(g.varshape()); })
      .def_property_readonly("num_state", &HiddenGroup::num_state)
      .def("check_consistent_varshape", &HiddenGroup::check_consistent_varshape)
      .def("transition", &HiddenGroup::transition, "hidden_vals"_a, "const_vals"_a)
      .def("diagonal_jacobian", &HiddenGroup::diagonal_jacobian, "hidden_vals"_a,
           "const_vals"_a)
      .def("concat_hidden",
           [](const HiddenGroup& g, const Arrays& v) { return g.concat_hidden(v); })
      .def("split_hidden",
           [](const HiddenGroup& g, const Array& v) { return g.split_hidden(v); })
      .def("dict",
           [](const py::object& s) {
             return fields_of(s, s.cast<const HiddenGroup&>().dict());
           })
      .def("__repr__", [](const HiddenGroup& g) {
        return fmt::format(
            "HiddenGroup(index={}, hidden_paths={}, varshape={}, num_state={})", g.index,
            path_list(g.hidden_paths()), to_string(g.varshape()), g.num_state());
      });
}

void def_relation(py::module_& m) {
  using R = HiddenParamOpRelation;
  py::class_<R, std::shared_ptr<R>>(
      m, "HiddenParamOpRelation", py::dynamic_attr(),
      "A trainable op, its weights and the groups it feeds.")
      .def_readonly("primitive", &R::primitive)
      .def_readonly("group_indices", &R::group_indices)
      .def_readonly("connected_hidden_paths", &R::connected_hidden_paths)
      .def_readonly("x", &R::x)
      .def_readonly("y", &R::y)
      .def_readonly("reason", &R::reason)
      .def_property_readonly(
          "kind",
          [](const R& r) { return r.kind == RelationKind::direct ? "direct" : "dense"; })
      .def_property_readonly("path", &R::path)
      .def_property_readonly("weight_path", &R::weight_path)
      .def_property_readonly("trainable_paths",
                             [](const R& r) {
                               std::map<std::string, Path> paths;
                               for (const Trainable& t : r.trainables)
                                 paths.emplace(t.key, t.path);
                               return paths;
                             })
      .def_property_readonly("path_classification",
                             [](const R& r) {
                               py::dict out;
                               for (const auto& [path, c] : r.path_classification)
                                 out[py::cast(path)] = std::string(to_string(c));
                               return out;
                             })
      .def("dict",
           [](const py::object& s) { return fields_of(s, s.cast<const R&>().dict()); })
      .def("__repr__", [](const R& r) {
        return fmt::format("HiddenParamOpRelation(path={}, primitive={}, groups={})",
                           to_string(r.path()), r.primitive,
                           fmt::join(r.group_indices, ","));
      });
}

void def_perturbation(py::module_& m) {
  using P = HiddenPerturbation;
  py::class_<P, std::shared_ptr<P>>(
      m, "HiddenPerturbation", "The step with p added to every hidden state at exit.")
      .def_readonly("program", &P::program)
      .def_readonly("perturb_hidden_paths", &P::perturb_hidden_paths)
      .def("init_perturb_data", &P::init_perturb_data)
      .def("eval", &P::eval, "inputs"_a, "perturb_data"_a);
}

ExplainFilter filter_of(const std::optional<Path>& weight,
                        const std::optional<Path>& hidden,
                        const std::optional<DiagnosticKind>& kind) {
  return {weight, hidden, kind};
}

std::string to_svg(const ETraceGraph& g) { return dot_to_svg(to_dot(g)); }

// Relations, each with the groups it feeds in its attribute `hidden_groups`.
py::list relations_of(const py::object& self) {
  const auto& graph = self.cast<const ETraceGraph&>();
  const py::list groups = self.attr("hidden_groups");
  py::list out;
  for (const HiddenParamOpRelation& r : graph.hidden_param_op_relations) {
    py::object o = py::cast(&r, py::return_value_policy::reference_internal, self);
    py::list fed;
    for (const std::int64_t i : r.group_indices)
      fed.append(groups[static_cast<std::size_t>(i)]);
    o.attr("hidden_groups") = fed;
    out.append(o);
  }
  return out;
}

void def_pictures(py::class_<ETraceGraph, std::shared_ptr<ETraceGraph>>& c) {
  using G = ETraceGraph;
  c.def("to_dot", [](const G& g) { return to_dot(g); })
      .def("to_json", [](const G& g) { return to_json(g); })
      .def("to_svg", &to_svg)
      .def(
          "to_html",
          [](const G& g, const std::string& title) {
            return to_html(g, {.title = title});
          },
          "title"_a = "braintrace")
      .def("_repr_svg_", &to_svg)
      .def("_repr_html_", &to_svg)
      .def("__repr__", [](const G& g) { return CompilationReport(g).one_line(); });
}

void def_graph(py::module_& m) {
  using G = ETraceGraph;
  py::class_<G, std::shared_ptr<G>> c(
      m, "ETraceGraph",
      "Which weights reach which hidden states, through which ops.\n\n"
      ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4))\n"
      ">>> graph = bt.compile_etrace_graph(gru, bt.zeros(3))\n"
      ">>> isinstance(graph, bt.ETraceGraph)\nTrue");
  c.def_readonly("module_info", &G::module_info)
      .def_readonly("hidden_groups", &G::hidden_groups)
      .def_property_readonly("hidden_param_op_relations", &relations_of)
      .def_readonly("hidden_perturb", &G::hidden_perturb)
      .def_readonly("diagnostics", &G::diagnostics)
      .def_readonly("verdicts", &G::verdicts)
      .def_property_readonly("hid_path_to_group",
                             [](const G& g) {
                               py::dict out;
                               for (const auto& [path, i] : g.hid_path_to_group)
                                 out[py::cast(path)] = py::cast(
                                     g.hidden_groups[static_cast<std::size_t>(i)]);
                               return out;
                             })
      .def_property_readonly("cuts",
                             [](const G& g) {
                               return cut_set(g.module_info, g.hidden_groups,
                                              g.hidden_param_op_relations);
                             })
      .def_property_readonly("report", [](const G& g) { return CompilationReport(g); })
      .def("group_of", &G::group_of, "hidden_path"_a)
      .def(
          "explain",
          [](const G& g, const std::optional<Path>& w, const std::optional<Path>& h,
             const std::optional<DiagnosticKind>& k) {
            return g.explain(filter_of(w, h, k));
          },
          py::kw_only(), "weight_path"_a = py::none(), "hidden_path"_a = py::none(),
          "kind"_a = py::none(), "Records that match every given filter.")
      .def(
          "call_hidden_perturb",
          [](const G& g, const py::iterable& args, const Arrays& p,
             const std::optional<Arrays>& old) {
            return call_result(g.call_hidden_perturb(to_arrays(args), p, old));
          },
          "args"_a, "perturb_data"_a, "old_state_vals"_a = py::none())
      .def(
          "dict",
          [](const py::object& s) { return fields_of(s, s.cast<const G&>().dict()); },
          "Fields by name.");
  def_pictures(c);
  c.attr("_fields") =
      py::make_tuple("module_info", "hidden_groups", "hid_path_to_group",
                     "hidden_param_op_relations", "hidden_perturb", "diagnostics");
}

// Calls f(module, example arrays, options); the result keeps the model alive.
template <class F>
auto on_model(const py::object& model, const py::args& examples,
              const py::kwargs& options, F f) {
  const CompileOptions o = compile_options(options);
  const auto m = module_of(model);
  const Arrays args = arrays_of(bind_inputs(*m, examples));
  return with_model(m, f(*m, args, o));
}

using Model = const py::object&;
using Examples = const py::args&;
using Options = const py::kwargs&;

}  // namespace

void init_etrace(py::module_& m) {
  init_etrace_records(m);
  def_module_info(m);
  def_group(m);
  def_relation(m);
  def_perturbation(m);
  def_graph(m);
  m.def(
      "compile_etrace_graph",
      [](Model model, Examples examples, Options options) {
        return on_model(model, examples, options,
                        [](Module& m, const Arrays& a, const CompileOptions& o) {
                          return compile_etrace_graph(m, a, o);
                        });
      },
      "model"_a,
      "The compiled graph of a model, for example inputs.\n\n"
      "Keywords: compat=True (behave as braintrace 0.2.6), include_hidden_perturb,\n"
      "batched, and the options of compile_option_names().\n\n"
      ">>> rnn = bt.nn.init_all_states(bt.nn.ValinaRNNCell(3, 4))\n"
      ">>> len(bt.compile_etrace_graph(rnn, bt.zeros(3)).hidden_groups)\n1");
  m.def("compile_option_names", &option_names);
  m.def(
      "extract_module_info",
      [](Model model, Examples examples, Options options) {
        return on_model(model, examples, options,
                        [](Module& m, const Arrays& a, const CompileOptions& o) {
                          return extract_module_info(m, a, o);
                        });
      },
      "model"_a);
  m.def(
      "find_hidden_groups_from_module",
      [](Model model, Examples examples, Options options) {
        const auto groups =
            on_model(model, examples, options,
                     [](Module& m, const Arrays& a, const CompileOptions& o) {
                       return find_hidden_groups_from_module(m, a, o);
                     });
        py::list out;
        for (HiddenGroup& g : *groups)
          out.append(std::shared_ptr<HiddenGroup>(groups, &g));
        return out;
      },
      "model"_a);
}

}  // namespace braintrace::python
