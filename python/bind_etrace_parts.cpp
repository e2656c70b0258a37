// SPDX-License-Identifier: Apache-2.0
// The parts of a compiled graph, with the reference's names.
#include "convert.h"
#include "etrace_parts.h"
#include "py_module.h"
#include <fmt/format.h>

#include "braintrace/etrace/perturbation.h"
#include "braintrace/etrace/scan_descent.h"

namespace braintrace::python {

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

std::vector<Array> leaf_arrays(const py::iterable& items) {
  std::vector<Value> leaves;
  flatten(py::tuple(items), leaves);
  std::vector<Array> out;
  for (const Value& v : leaves) out.push_back(v.array());
  return out;
}

namespace {

using namespace py::literals;
using Arrays = std::vector<Array>;

// A dict in the order of the rows.
template <class Rows>
py::dict table(const Rows& rows) {
  py::dict out;
  for (const auto& [key, value] : rows) out[py::cast(key)] = py::cast(value);
  return out;
}

py::object attr_object(const Attr& a) {
  return std::visit(
      [](const auto& v) -> py::object {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, Ints>)
          return py::tuple(py::cast(v));
        else if constexpr (std::is_same_v<T, IndexList>)
          return py::tuple(py::cast(std::vector<std::int64_t>(v.begin(), v.end())));
        else if constexpr (std::is_same_v<T, GraphPtr>)
          return py::cast(*v);
        else
          return py::cast(v);
      },
      a);
}

py::dict params_of(const Attrs& attrs) {
  py::dict out;
  for (const auto& [name, value] : attrs.entries())
    out[py::str(name)] = attr_object(value);
  return out;
}

// The tables of a traced step, by path, by value or by state.
void def_state_tables(py::class_<ModuleInfo, std::shared_ptr<ModuleInfo>>& c) {
  using I = ModuleInfo;
  c.def_property_readonly(
       "retrieved_model_states",
       [](const py::object& self) {
         py::dict out;
         for (const NamedState& s : self.cast<const I&>().retrieved_model_states())
           out[py::cast(s.path)] = wrap_state(*s.state, self);
         return out;
       })
      .def_property_readonly(
          "compiled_model_states",
          [](const py::object& self) {
            py::list out;
            for (State* s : self.cast<const I&>().compiled_model_states())
              out.append(wrap_state(*s, self));
            return out;
          })
      .def_property_readonly("state_id_to_path",
                             [](const py::object& self) {
                               // By the identity a state shows: the same for every object
                               // of one state.
                               const auto& info = self.cast<const I&>();
                               py::dict out;
                               for (const auto& [state, path] : info.state_id_to_path())
                                 out[wrap_state(const_cast<State&>(*state), self)] =
                                     py::cast(path);
                               return out;
                             })
      .def_property_readonly("state_tree_invars", &I::state_tree_invars)
      .def_property_readonly("state_tree_outvars", &I::state_tree_outvars)
      .def_property_readonly("hidden_path_to_invar",
                             [](const I& i) { return table(i.hidden_path_to_invar()); })
      .def_property_readonly("hidden_path_to_outvar",
                             [](const I& i) { return table(i.hidden_path_to_outvar()); })
      .def_property_readonly("invar_to_hidden_path",
                             [](const I& i) { return table(i.invar_to_hidden_path()); })
      .def_property_readonly("outvar_to_hidden_path",
                             [](const I& i) { return table(i.outvar_to_hidden_path()); })
      .def_property_readonly("hidden_outvar_to_invar",
                             [](const I& i) { return table(i.hidden_outvar_to_invar()); })
      .def_property_readonly("weight_invars", &I::weight_invars)
      .def_property_readonly("weight_path_to_invars",
                             [](const I& i) { return table(i.weight_path_to_invars()); })
      .def_property_readonly("invar_to_weight_path",
                             [](const I& i) { return table(i.invar_to_weight_path()); })
      .def_readonly("unused_params", &I::unused_params);
}

void def_module_info(py::module_& m) {
  py::class_<ModuleInfo, std::shared_ptr<ModuleInfo>> c(
      m, "ModuleInfo",
      "A traced step, ready to compile.\n\n"
      ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4), seed=1)\n"
      ">>> graph = bt.compile_etrace_graph(gru, bt.zeros(3))\n"
      ">>> graph.module_info.hidden_paths\n[('h',)]");
  c.def_property_readonly("program", &ModuleInfo::program)
      .def_property_readonly("jaxpr", &ModuleInfo::program)
      .def_property_readonly("closed_jaxpr", &ModuleInfo::closed_jaxpr)
      .def_readonly("step", &ModuleInfo::step)
      .def_property_readonly("stateful_model", &ModuleInfo::stateful_model)
      .def_readonly("control_flow", &ModuleInfo::control_flow)
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
      .def(
          "jaxpr_call",
          [](const ModuleInfo& i, const py::args& args, const py::object& old) {
            return call_result(i.jaxpr_call(leaf_arrays(args), state_arrays(i, old)));
          },
          "old_state_vals"_a = py::none(), "One step; stores nothing.")
      .def("add_jaxpr_outs", &ModuleInfo::add_jaxpr_outs, "values"_a,
           py::keep_alive<0, 1>())
      .def("split_state_outvars",
           [](const ModuleInfo& i) {
             const auto s = i.split_state_outvars();
             return py::make_tuple(s.weight, s.hidden, s.other);
           })
      .def("dict", [](const py::object& s) {
        return fields_of(s, s.cast<const ModuleInfo&>().dict());
      });
  def_state_tables(c);
}

void def_descent(py::module_& m) {
  using D = ScanDescentInfo;
  py::class_<D, std::shared_ptr<D>>(
      m, "ScanDescentInfo",
      "A long loop whose body is analysed on its own: `descent` of a group,\n"
      "`control_flow_context` of a relation.\n\n"
      ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4))\n"
      ">>> graph = bt.compile_etrace_graph(gru, bt.zeros(3))\n"
      ">>> graph.hidden_groups[0].descent is None\nTrue")
      .def_readonly("length", &D::length)
      .def_readonly("num_consts", &D::num_consts)
      .def_readonly("num_carry", &D::num_carry)
      .def_property_readonly("body_jaxpr", &D::body_jaxpr)
      .def_property_readonly("scan_eqn_id", &D::scan_eqn_id)
      .def_property_readonly("stacked_var_map",
                             [](const D& d) { return table(d.stacked_var_map()); });
  py::class_<SnapPattern>(
      m, "SnapPattern",
      "Which positions a position influences within n steps.\n\n"
      ">>> rnn = bt.nn.init_all_states(bt.nn.ValinaRNNCell(3, 4))\n"
      ">>> graph = bt.compile_etrace_graph(\n"
      "...     rnn, bt.zeros(3), sparse_n=2, include_recurrent_mixing=True)\n"
      ">>> graph.hidden_groups[0].snap.num_neighbour\n4")
      .def_readonly("n", &SnapPattern::n)
      .def_property_readonly("varshape",
                             [](const SnapPattern& p) { return to_tuple(p.varshape); })
      .def_property_readonly("axes",
                             [](const SnapPattern& p) { return p.adjacency.axes; })
      .def_readonly("neighbours", &SnapPattern::neighbours)
      .def_readonly("valid", &SnapPattern::valid)
      .def_readonly("conservative", &SnapPattern::conservative)
      .def_readonly("reason", &SnapPattern::reason)
      .def_property_readonly("num_position", &SnapPattern::num_position)
      .def_property_readonly("num_neighbour", &SnapPattern::num_neighbour)
      .def_property_readonly("is_degenerate", &SnapPattern::is_degenerate)
      .def_property_readonly("is_saturated", &SnapPattern::is_saturated);
}

void def_group(py::module_& m) {
  py::class_<HiddenGroup, std::shared_ptr<HiddenGroup>>(
      m, "HiddenGroup",
      "Hidden states that feed each other within one step.\n\n"
      ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4), seed=1)\n"
      ">>> graph = bt.compile_etrace_graph(gru, bt.zeros(3))\n"
      ">>> graph.hidden_groups[0].varshape\n(4,)")
      .def_readonly("index", &HiddenGroup::index)
      .def_readonly("is_diagonal_recurrence", &HiddenGroup::is_diagonal_recurrence)
      .def_readonly("has_recurrence", &HiddenGroup::has_recurrence)
      .def_readonly("transition_program", &HiddenGroup::transition_program)
      .def_property_readonly("transition_jaxpr", &HiddenGroup::transition_jaxpr)
      .def_property_readonly("transition_jaxpr_constvars",
                             &HiddenGroup::transition_jaxpr_constvars)
      .def_property_readonly("trace_state_width", &HiddenGroup::trace_state_width)
      .def_readonly("snap", &HiddenGroup::snap)
      .def_readonly("descent", &HiddenGroup::descent)
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
      .def("full_jacobian", &HiddenGroup::full_jacobian, "hidden_vals"_a, "const_vals"_a)
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

// The groups stand in the attribute that wrap_relations gives.
py::list y_to_hidden_groups(const py::object& self, const Array& y,
                            const std::vector<Arrays>& const_vals, bool concat) {
  const auto& r = self.cast<const HiddenParamOpRelation&>();
  const py::list groups = self.attr("hidden_groups");
  py::list out;
  for (const Arrays& members : r.y_to_hidden_states(y, const_vals)) {
    const auto& g = groups[out.size()].cast<const HiddenGroup&>();
    out.append(concat ? py::cast(g.concat_hidden(members)) : py::cast(members));
  }
  return out;
}

void def_relation(py::module_& m) {
  using R = HiddenParamOpRelation;
  py::class_<R, std::shared_ptr<R>>(
      m, "HiddenParamOpRelation", py::dynamic_attr(),
      "A trainable op, its weights and the groups it feeds.\n\n"
      ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4), seed=1)\n"
      ">>> graph = bt.compile_etrace_graph(gru, bt.zeros(3))\n"
      ">>> graph.hidden_param_op_relations[0].path\n('Wz', 'weight')")
      .def_readonly("primitive", &R::primitive)
      .def_readonly("group_indices", &R::group_indices)
      .def_readonly("connected_hidden_paths", &R::connected_hidden_paths)
      .def_readonly("x", &R::x)
      .def_readonly("y", &R::y)
      .def_property_readonly("x_var", &R::x_var)
      .def_property_readonly("y_var", &R::y_var)
      .def_property_readonly("y_to_hidden_group_jaxprs", &R::y_to_hidden_group_jaxprs)
      .def_readonly("tail_constants", &R::tail_constants)
      .def_readonly("control_flow_context", &R::control_flow_context)
      .def_readonly("reason", &R::reason)
      .def_property_readonly(
          "kind",
          [](const R& r) { return r.kind == RelationKind::direct ? "direct" : "dense"; })
      .def_property_readonly("path", &R::path)
      .def_property_readonly("weight_path", &R::weight_path)
      .def_property_readonly("trainable_vars",
                             [](const R& r) { return table(r.trainable_vars()); })
      .def_property_readonly("trainable_paths",
                             [](const R& r) { return table(r.trainable_paths()); })
      .def_property_readonly("trainable_leaf_indices",
                             [](const R& r) { return table(r.trainable_leaf_indices()); })
      .def_property_readonly(
          "trainable_param_states",
          [](const py::object& self) {
            py::dict out;
            for (const auto& [key, s] : self.cast<const R&>().trainable_param_states())
              out[py::str(key)] = wrap_state(*s, self);
            return out;
          })
      .def_property_readonly(
          "trainable_processing_chains",
          [](const R& r) { return table(r.trainable_processing_chains()); })
      .def_property_readonly("path_classification",
                             [](const R& r) {
                               py::dict out;
                               for (const auto& [path, c] : r.path_classification)
                                 out[py::cast(path)] = std::string(to_string(c));
                               return out;
                             })
      .def("y_to_hidden_groups", &y_to_hidden_groups, "y_val"_a, "const_vals"_a,
           "concat_hidden_vals"_a = true,
           "Runs every tail: one array per group, or a list of its members.")
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
      m, "HiddenPerturbation",
      "The step with p added to every hidden state at exit.\n\n"
      ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4), seed=1)\n"
      ">>> graph = bt.compile_etrace_graph(gru, bt.zeros(3))\n"
      ">>> graph.hidden_perturb.perturb_hidden_paths\n[('h',)]")
      .def_readonly("program", &P::program)
      .def_property_readonly("perturb_jaxpr", &P::perturb_jaxpr)
      .def_property_readonly("perturb_vars", &P::perturb_vars)
      .def_readonly("perturb_hidden_paths", &P::perturb_hidden_paths)
      .def_property_readonly(
          "perturb_hidden_states",
          [](const py::object& self) {
            py::list states;
            for (HiddenState* s : self.cast<const P&>().perturb_hidden_states)
              states.append(wrap_state(*s, self));
            return states;
          })
      .def("init_perturb_data", &P::init_perturb_data)
      .def("eval", &P::eval, "inputs"_a, "perturb_data"_a)
      .def("eval_jaxpr", &P::eval_jaxpr, "inputs"_a, "perturb_data"_a)
      .def(
          "perturb_data_to_hidden_group_data",
          [](const P& p, const Arrays& data, const py::iterable& groups) {
            std::vector<HiddenGroup> all;
            for (py::handle g : groups) all.push_back(g.cast<const HiddenGroup&>());
            return p.perturb_data_to_hidden_group_data(data, all);
          },
          "perturb_data"_a, "groups"_a, "One array (*varshape, num_state) per group.");
}

}  // namespace

py::list wrap_relations(const std::vector<HiddenParamOpRelation>& relations,
                        const py::list& groups, const ModuleInfo& info,
                        const py::object& owner) {
  py::list out;
  for (const HiddenParamOpRelation& r : relations) {
    py::object o = py::cast(&r, py::return_value_policy::reference_internal, owner);
    py::list fed;
    for (const std::int64_t i : r.group_indices)
      fed.append(groups[static_cast<std::size_t>(i)]);
    o.attr("hidden_groups") = fed;
    o.attr("eqn_params") = params_of(r.eqn_params(info));
    out.append(o);
  }
  return out;
}

void init_etrace_parts(py::module_& m) {
  def_descent(m);
  def_module_info(m);
  def_group(m);
  def_relation(m);
  def_perturbation(m);
}

}  // namespace braintrace::python
