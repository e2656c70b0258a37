// SPDX-License-Identifier: Apache-2.0
// What layers are given: surrogates and synapse outputs; models by name.
#include "convert.h"
#include "py_module.h"
#include "reader.h"
#include <fmt/format.h>

#include "braintrace/nn/model_registry.h"

namespace braintrace::python {
namespace {

using namespace py::literals;
using Output = Recorded<nn::SynapseOutput>;

nn::Surrogate make_surrogate(const std::string& name, const py::kwargs& parameters) {
  std::vector<std::string> keys;
  std::vector<nn::Surrogate::Parameter> list;
  keys.reserve(parameters.size());
  for (const auto& [key, value] : parameters) {
    keys.push_back(key.cast<std::string>());
    list.emplace_back(keys.back(), value.cast<double>());
  }
  return nn::Surrogate(name, std::span<const nn::Surrogate::Parameter>(list));
}

void def_surrogates(py::module_& m) {
  py::class_<nn::Surrogate>(
      m, "Surrogate",
      "The spike function: a step with a smooth stand-in derivative.\n\n"
      ">>> bt.nn.Surrogate('Sigmoid', alpha=2.0)\nSigmoid(alpha=2)")
      .def(py::init(&make_surrogate), "name"_a = "ReluGrad")
      .def("__call__", [](const nn::Surrogate& s, Arg x) { return s(x.value); })
      .def("derivative",
           [](const nn::Surrogate& s, Arg x) { return s.derivative(x.value); })
      .def("__repr__", &nn::Surrogate::to_string)
      .def(
          "__eq__", [](const nn::Surrogate& a, const nn::Surrogate& b) { return a == b; },
          py::is_operator())
      .def_property_readonly(
          "name", [](const nn::Surrogate& s) { return std::string(s.name()); });
  m.def(
      "surrogate_names",
      [] {
        std::vector<std::string> names;
        for (const std::string_view n : nn::surrogate_names()) names.emplace_back(n);
        return names;
      },
      "What Surrogate takes as a name.\n\n>>> 'Sigmoid' in bt.nn.surrogate_names()\n"
      "True");
  m.def("activation_names", &nn::activation_names,
        "What layers take as the name of an activation.\n\n"
        ">>> 'tanh' in bt.nn.activation_names()\nTrue");
}

Output recorded_output(nn::SynapseOutput o, const char* name, py::tuple args) {
  return {std::move(o), {name, std::move(args)}};
}

void def_outputs(py::module_& m) {
  py::class_<Output>(m, "SynapseOutput",
                     "From a conductance to a current; made by CUBA, COBA, MgBlock.\n\n"
                     ">>> isinstance(bt.nn.COBA(-80.0), bt.SynapseOutput)\nTrue")
      .def_property_readonly("name", &Output::name)
      .def_property_readonly("_made", [](const Output& o) { return o.made.parts(); })
      .def("__repr__", [](const Output& o) { return o.made.text(); });
  m.def(
      "CUBA",
      [](double scale) {
        return recorded_output(nn::CUBA(scale), "CUBA", py::make_tuple(scale));
      },
      "scale"_a = 1.0, "I = g scale.\n\n>>> bt.nn.CUBA(2.0)\nCUBA(2.0)");
  m.def(
      "COBA",
      [](double E, double scale) {
        return recorded_output(nn::COBA(E, {scale}), "COBA", py::make_tuple(E, scale));
      },
      "E"_a, "scale"_a = 1e-3,
      "I = scale g (E - V).\n\n>>> bt.nn.COBA(0.0)\nCOBA(0.0, 0.001)");
  m.def(
      "MgBlock",
      [](double E, double cc_Mg, double alpha, double beta, double V_offset,
         double scale) {
        return recorded_output(nn::MgBlock({E, cc_Mg, alpha, beta, V_offset, scale}),
                               "MgBlock",
                               py::make_tuple(E, cc_Mg, alpha, beta, V_offset, scale));
      },
      "E"_a = 0.0, "cc_Mg"_a = 1.2, "alpha"_a = 0.062, "beta"_a = 3.57,
      "V_offset"_a = 0.0, "scale"_a = 1e-3,
      "I = scale g (E - V) / (1 + cc_Mg / beta exp(alpha (V_offset - V))), as NMDA "
      "receptors.\n\n>>> bt.nn.MgBlock(cc_Mg=1.0).name[:7]\n'MgBlock'");
}

}  // namespace

void init_nn(py::module_& m) {
  def_surrogates(m);
  def_outputs(m);
  m.def(
      "build_model",
      [](const std::string& text) {
        std::shared_ptr<Module> model = nn::build_model(text);
        py::object out = py::module_::import("braintrace_cpp.nn").attr("Module")();
        out.cast<ModuleRef&>().layer = std::move(model);
        return out;
      },
      "text"_a,
      "A model of the registry, by kind or JSON description.\n\n"
      ">>> net = bt.nn.build_model('two_layer_gru')\n"
      ">>> len(bt.nn.init_all_states(net).states()) > 2\nTrue");
  m.def("model_kinds", &nn::model_kinds,
        "What build_model takes as a kind.\n\n"
        ">>> 'two_layer_gru' in bt.nn.model_kinds()\nTrue");
}

}  // namespace braintrace::python
