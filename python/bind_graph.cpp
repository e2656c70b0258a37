// SPDX-License-Identifier: Apache-2.0
// Programs: traced steps as text, code and pictures.
#include "convert.h"
#include "py_module.h"

#include "braintrace/ir/evaluate.h"
#include "braintrace/ir/print.h"
#include "braintrace/model/step_model.h"
#include "braintrace/ops/registry.h"
#include "braintrace/view/code.h"
#include "braintrace/view/dot.h"
#include "braintrace/view/program_text.h"
#include "braintrace/view/svg.h"

namespace braintrace::python {
namespace {

using namespace py::literals;

void def_program(py::module_& m) {
  py::class_<ValueId>(m, "ValueId",
                      "A value of a program.\n\n"
                      ">>> info = bt.extract_module_info(bt.nn.init_all_states("
                      "bt.nn.GRUCell(3, 4)), bt.zeros(3))\n"
                      ">>> out, traced, other, values = info.jaxpr_call(bt.zeros(3))\n"
                      ">>> all(isinstance(v, bt.ValueId) for v in values)\nTrue")
      .def_readonly("index", &ValueId::index)
      .def(
          "__eq__", [](ValueId a, ValueId b) { return a == b; }, py::is_operator())
      .def("__hash__", [](ValueId a) { return a.index; })
      .def("__repr__", [](ValueId a) { return fmt::format("%{}", a.index); });
  py::class_<Graph, std::shared_ptr<Graph>>(m, "Graph",
                                            "A program: a list of op calls.\n\n"
                                            ">>> bt.parse_graph('in %0:f32[2]  %1:f32[2] "
                                            "= tanh %0  out %1')\n"
                                            "Graph(1 inputs, 1 nodes, 1 outputs)")
      .def("__str__", [](const Graph& g) { return print(g); })
      .def("__repr__",
           [](const Graph& g) {
             return fmt::format("Graph({} inputs, {} nodes, {} outputs)",
                                g.inputs().size(), g.nodes().size(), g.outputs().size());
           })
      .def("__len__", [](const Graph& g) { return g.nodes().size(); })
      .def(
          "__call__",
          [](const Graph& g, const py::args& args) {
            std::vector<Array> in;
            for (py::handle a : args) in.push_back(to_array(a));
            py::gil_scoped_release release;
            return eval_graph(g, in);
          },
          "Runs the program on arrays.")
      .def(
          "__eq__", [](const Graph& a, const Graph& b) { return a == b; },
          py::is_operator())
      .def(
          "to_code", [](const Graph& g) { return to_code(g); }, "The program as code.")
      .def(
          "to_dot", [](const Graph& g) { return to_dot(g); }, "The program for Graphviz.")
      .def("_repr_svg_", [](const Graph& g) { return dot_to_svg(to_dot(g)); });
  m.def(
      "parse_graph", [](const std::string& text) { return parse(text, op_table()); },
      "text"_a,
      "A program from its text.\n\n"
      ">>> g = bt.parse_graph('in %0:f32[2]  %1:f32[2] = tanh %0  out %1')\n"
      ">>> len(g)\n1");
}

}  // namespace

void init_graph(py::module_& m) {
  def_program(m);
  py::class_<StepModel, std::shared_ptr<StepModel>>(
      m, "StepModel",
      "One traced step of a model; made by trace_step."
      "\n\n>>> cell = bt.nn.init_all_"
      "states(bt.nn.Linear(2, 3))\n"
      ">>> bt.trace_step(cell, bt.zeros(2"
      ")).num_args\n1")
      .def_readonly("program", &StepModel::program)
      .def_readonly("num_args", &StepModel::num_args)
      .def_readonly("num_outputs", &StepModel::num_outputs)
      .def_readonly("unused", &StepModel::unused)
      .def("__str__", [](const StepModel& s) { return program_text(s); })
      .def("describe_states", [](const StepModel& s) { return describe_states(s); })
      .def("to_code", [](const StepModel& s) { return to_code(s); })
      .def("to_dot", [](const StepModel& s) { return to_dot(s); })
      .def("_repr_svg_", [](const StepModel& s) { return dot_to_svg(to_dot(s)); });
  m.def(
      "trace_step",
      [](const py::object& model, const py::args& examples) {
        const auto m = module_of(model);
        const std::vector<Array> in = arrays_of(bind_inputs(*m, examples));
        return with_model(m, trace_step(*m, in));
      },
      "model"_a,
      "Runs the model's step once on symbolic values.\n\n"
      ">>> cell = bt.nn.init_all_states(bt.nn.Linear(2, 3))\n"
      ">>> bt.trace_step(cell, bt.zeros(2)).num_outputs\n1");
}

}  // namespace braintrace::python
