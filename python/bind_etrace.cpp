// SPDX-License-Identifier: Apache-2.0
// The compiled graph: hidden groups, relations, perturbation, with the reference's names.
#include "convert.h"
#include "etrace_options.h"
#include "etrace_parts.h"
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

std::optional<std::vector<Array>> state_arrays(const ModuleInfo& info,
                                               const py::object& values) {
  if (values.is_none()) return std::nullopt;
  const std::vector<State*> states = info.compiled_model_states();
  std::vector<Array> out;
  std::size_t i = 0;
  for (py::handle value : values) {
    const State* s = i < states.size() ? states[i] : nullptr;
    ++i;
    if (!py::isinstance<py::dict>(value) || s == nullptr) {
      out.push_back(to_array(value));
      continue;
    }
    for (std::size_t k = 0; k < s->num_leaves(); ++k)
      out.push_back(to_array(value[py::str(s->spec(k).key)]));
  }
  return out;
}

namespace {

using namespace py::literals;
using Arrays = std::vector<Array>;

ExplainFilter filter_of(const std::optional<Path>& weight,
                        const std::optional<Path>& hidden,
                        const std::optional<DiagnosticKind>& kind) {
  return {weight, hidden, kind};
}

std::string to_svg(const ETraceGraph& g) { return dot_to_svg(to_dot(g)); }

py::list relations_of(const py::object& self) {
  const auto& graph = self.cast<const ETraceGraph&>();
  return wrap_relations(graph.hidden_param_op_relations, self.attr("hidden_groups"),
                        graph.module_info, self);
}

// Parts of a graph that it keeps alive.
template <class T>
py::tuple part_tuple(const py::object& self, std::vector<T> ETraceGraph::*parts) {
  return py::tuple(py::cast(self.cast<const ETraceGraph&>().*parts,
                            py::return_value_policy::reference_internal, self));
}

// A result that keeps the Python object it refers to alive.
template <class T>
std::shared_ptr<T> with_owner(const py::object& owner, T result) {
  auto both = std::make_shared<std::pair<std::shared_ptr<py::object>, T>>(
      keep(owner), std::move(result));
  return {both, &both->second};
}

// As a named tuple: its fields in order.
py::tuple fields(const py::object& self) {
  const py::tuple names = self.attr("_fields");
  py::tuple out(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) out[i] = py::getattr(self, names[i]);
  return out;
}

void replace_field(ETraceGraph& g, const std::string& name, const py::object& value) {
  if (name == "module_info")
    g.module_info = value.cast<ModuleInfo>();
  else if (name == "hidden_groups")
    g.hidden_groups = value.cast<std::vector<HiddenGroup>>();
  else if (name == "hidden_param_op_relations")
    g.hidden_param_op_relations = value.cast<std::vector<HiddenParamOpRelation>>();
  else if (name == "hidden_perturb")
    g.hidden_perturb = value.cast<std::optional<HiddenPerturbation>>();
  else if (name == "diagnostics")
    g.diagnostics = value.cast<std::vector<CompilationRecord>>();
  else
    throw UserError(
        fmt::format("ETraceGraph._replace: '{}' is no field that can be replaced", name));
}

// The values stay alive with the graph: they may refer to other models.
py::object replaced(const py::object& self, const py::kwargs& fields) {
  ETraceGraph g = self.cast<const ETraceGraph&>();
  for (const auto& [name, value] : fields)
    replace_field(g, name.cast<std::string>(), py::reinterpret_borrow<py::object>(value));
  return py::cast(with_owner(py::make_tuple(self, fields), std::move(g)));
}

void def_tuple(py::class_<ETraceGraph, std::shared_ptr<ETraceGraph>>& c) {
  c.def("__len__", [](const py::object& s) { return py::len(s.attr("_fields")); })
      .def("__iter__", [](const py::object& s) { return py::iter(fields(s)); })
      .def("__getitem__",
           [](const py::object& s, const py::object& i) -> py::object {
             return fields(s)[i];
           })
      .def("_replace", &replaced, "A copy with other fields.")
      .def(
          "_asdict",
          [](const py::object& s) {
            py::dict out;
            for (py::handle name : s.attr("_fields")) out[name] = py::getattr(s, name);
            return out;
          },
          "Fields by name.");
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
      .def("__repr__", [](const G& g) {
        const std::string text = CompilationReport(g).one_line();
        return "ETraceGraph" + text.substr(text.find('('));
      });
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
      .def_property_readonly(
          "diagnostics",
          [](const py::object& self) { return part_tuple(self, &G::diagnostics); })
      .def_readonly("verdicts", &G::verdicts)
      .def_property_readonly(
          "hid_path_to_group",
          [](const py::object& self) {
            const py::list groups = self.attr("hidden_groups");
            py::dict out;
            for (const auto& [path, i] : self.cast<const G&>().hid_path_to_group)
              out[py::cast(path)] = groups[static_cast<std::size_t>(i)];
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
            return py::tuple(py::cast(g.explain(filter_of(w, h, k))));
          },
          py::kw_only(), "weight_path"_a = py::none(), "hidden_path"_a = py::none(),
          "kind"_a = py::none(), "Records that match every given filter.")
      .def(
          "call_hidden_perturb",
          [](const G& g, const py::iterable& args, const Arrays& p,
             const py::object& old) {
            return call_result(g.call_hidden_perturb(leaf_arrays(args), p,
                                                     state_arrays(g.module_info, old)));
          },
          "args"_a, "perturb_data"_a, "old_state_vals"_a = py::none())
      .def(
          "dict",
          [](const py::object& s) { return fields_of(s, s.cast<const G&>().dict()); },
          "Fields by name.");
  def_pictures(c);
  def_tuple(c);
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

// Groups as Python objects that keep what they were found in alive, and by path.
py::tuple wrap_groups(const std::shared_ptr<std::vector<HiddenGroup>>& groups) {
  py::list list;
  py::dict by_path;
  for (HiddenGroup& g : *groups) {
    const py::object o = py::cast(std::shared_ptr<HiddenGroup>(groups, &g));
    list.append(o);
    for (const Path& p : g.hidden_paths()) by_path[py::cast(p)] = o;
  }
  return py::make_tuple(list, by_path);
}

// Options for a step that is traced already; it keeps its own control-flow policy.
CompileOptions options_of(const ModuleInfo& info, Options keywords) {
  CompileOptions o = compile_options(keywords);
  o.control_flow = info.control_flow;
  return o;
}

py::tuple groups_of_info(const py::object& minfo, Options keywords) {
  const auto& info = minfo.cast<const ModuleInfo&>();
  Diagnostics records;
  return wrap_groups(with_owner(
      minfo, find_hidden_groups_from_minfo(info, options_of(info, keywords), records)));
}

// Groups in order of their index, from a list or from a dict by path.
std::vector<HiddenGroup> listed_groups(const py::object& groups, py::list& objects) {
  std::map<std::int64_t, py::object> by_index;
  const bool is_dict = py::isinstance<py::dict>(groups);
  for (py::handle g : is_dict ? py::object(groups.attr("values")()) : groups)
    by_index[g.cast<const HiddenGroup&>().index] = py::reinterpret_borrow<py::object>(g);
  std::vector<HiddenGroup> out;
  for (const auto& [index, o] : by_index) {
    objects.append(o);
    out.push_back(o.cast<const HiddenGroup&>());
  }
  return out;
}

py::list relations_of_info(const py::object& minfo, const py::object& groups,
                           Options keywords) {
  const auto& info = minfo.cast<const ModuleInfo&>();
  py::list objects;
  Diagnostics records;
  const auto found = with_owner(minfo, find_hidden_param_op_relations_from_minfo(
                                           info, listed_groups(groups, objects),
                                           options_of(info, keywords), records));
  // Every relation keeps the list it is in alive.
  const py::capsule owner(new std::shared_ptr<void>(found),
                          [](void* p) { delete static_cast<std::shared_ptr<void>*>(p); });
  return wrap_relations(*found, objects, info, owner);
}

std::shared_ptr<ModuleInfo> info_of_model(Model model, Examples examples,
                                          Options options) {
  return on_model(model, examples, options,
                  [](Module& m, const Arrays& a, const CompileOptions& o) {
                    return extract_module_info(m, a, o);
                  });
}

void def_passes(py::module_& m) {
  m.def("extract_module_info", &info_of_model, "model"_a,
        "Traces the model's step and makes its control flow canonical.\n\n"
        ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4))\n"
        ">>> bt.extract_module_info(gru, bt.zeros(3)).weight_path_to_invars.keys()\n"
        "dict_keys([('Wh', 'weight'), ('Wr', 'weight'), ('Wz', 'weight')])");
  m.def("find_hidden_groups_from_minfo", &groups_of_info, "minfo"_a,
        "(groups, group by path) of a traced step.\n\n"
        ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4))\n"
        ">>> minfo = bt.extract_module_info(gru, bt.zeros(3))\n"
        ">>> groups, by_path = bt.find_hidden_groups_from_minfo(minfo)\n"
        ">>> by_path[('h',)].varshape\n(4,)");
  m.def(
      "find_hidden_groups_from_module",
      [](Model model, Examples examples, Options options) {
        return groups_of_info(py::cast(info_of_model(model, examples, options)), options);
      },
      "model"_a,
      "(groups, group by path) of a model.\n\n"
      ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4))\n"
      ">>> groups, _ = bt.find_hidden_groups_from_module(gru, bt.zeros(3))\n"
      ">>> groups[0].hidden_paths\n[('h',)]");
  m.def("find_hidden_param_op_relations_from_minfo", &relations_of_info, "minfo"_a,
        "hid_path_to_group"_a,
        "Relations of a traced step to its groups, given as a list or by path.\n\n"
        ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4))\n"
        ">>> minfo = bt.extract_module_info(gru, bt.zeros(3))\n"
        ">>> groups, by_path = bt.find_hidden_groups_from_minfo(minfo)\n"
        ">>> found = bt.find_hidden_param_op_relations_from_minfo(minfo, by_path)\n"
        ">>> found[0].trainable_leaf_indices\n{'weight': 1, 'bias': 0}");
  m.def(
      "find_hidden_param_op_relations_from_module",
      [](Model model, Examples examples, Options options) {
        const py::object info = py::cast(info_of_model(model, examples, options));
        return relations_of_info(info, groups_of_info(info, options)[0], options);
      },
      "model"_a,
      "Relations of a model.\n\n"
      ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4))\n"
      ">>> bt.find_hidden_param_op_relations_from_module(gru, bt.zeros(3))[0].path\n"
      "('Wz', 'weight')");
}

void def_perturbations(py::module_& m) {
  m.def(
      "add_hidden_perturbation_from_minfo",
      [](const py::object& minfo) {
        return with_owner(
            minfo, add_hidden_perturbation_from_minfo(minfo.cast<const ModuleInfo&>()));
      },
      "minfo"_a,
      "The traced step with p added to every hidden state at exit.\n\n"
      ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4))\n"
      ">>> minfo = bt.extract_module_info(gru, bt.zeros(3))\n"
      ">>> len(bt.add_hidden_perturbation_from_minfo(minfo).perturb_vars)\n1");
  m.def(
      "add_hidden_perturbation_in_module",
      [](Model model, Examples examples, Options options) {
        return on_model(model, examples, options,
                        [](Module& m, const Arrays& a, const CompileOptions& o) {
                          return add_hidden_perturbation_in_module(m, a, o);
                        });
      },
      "model"_a,
      "The model's step with p added to every hidden state at exit.\n\n"
      ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4))\n"
      ">>> p = bt.add_hidden_perturbation_in_module(gru, bt.zeros(3))\n"
      ">>> p.init_perturb_data()[0].shape\n(4,)");
}

}  // namespace

void init_etrace(py::module_& m) {
  init_etrace_records(m);
  init_etrace_parts(m);
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
  m.def("compile_option_names", &option_names,
        "What compile_etrace_graph takes as keywords with a name as value.\n\n"
        ">>> 'mixing' in bt.compile_option_names()\nTrue");
  def_passes(m);
  def_perturbations(m);
}

}  // namespace braintrace::python
