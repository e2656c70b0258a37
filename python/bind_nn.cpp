// SPDX-License-Identifier: Apache-2.0
// What layers are given: surrogates, synapse outputs and initialisers.
#include "convert.h"
#include "py_module.h"
#include "reader.h"
#include <fmt/format.h>

#include "braintrace/nn/initializers.h"
#include "braintrace/nn/model_registry.h"

namespace braintrace::python {
namespace {

using namespace py::literals;

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

using Scaled = Initializer (*)(nn::init::ScalingOptions);

void def_scaled(py::module_& m, const char* name, Scaled f) {
  m.def(
      name,
      [name, f](const std::optional<double>& scale, bool plain) {
        nn::init::ScalingOptions o =
            plain ? nn::init::plain(scale) : nn::init::ScalingOptions{};
        if (scale) o.scale = scale;
        return NamedInitializer{f(o), fmt::format("{}()", name)};
      },
      "scale"_a = py::none(), "plain"_a = false,
      fmt::format("Variance scale / fan. plain: untruncated, fans as (out, in, ...).\n\n"
                  ">>> bt.nn.init.{}()(bt.random_key(0), (3, 4)).shape\n(3, 4)",
                  name)
          .c_str());
}

}  // namespace

void init_nn(py::module_& m) {
  py::class_<nn::Surrogate>(
      m, "Surrogate",
      "The spike function: a step with a smooth stand-in derivative.\n\n"
      ">>> bt.nn.Surrogate('Sigmoid', alpha=2.0)\nSigmoid(alpha=2)")
      .def(py::init(&make_surrogate), "name"_a = "ReluGrad")
      .def("__call__", [](const nn::Surrogate& s, Arg x) { return s(x.value); })
      .def("derivative",
           [](const nn::Surrogate& s, Arg x) { return s.derivative(x.value); })
      .def("__repr__", &nn::Surrogate::to_string)
      .def("__eq__",
           [](const nn::Surrogate& a, const nn::Surrogate& b) { return a == b; })
      .def_property_readonly(
          "name", [](const nn::Surrogate& s) { return std::string(s.name()); });
  m.def("surrogate_names", [] {
    std::vector<std::string> names;
    for (const std::string_view n : nn::surrogate_names()) names.emplace_back(n);
    return names;
  });
  m.def("activation_names", &nn::activation_names);
  py::class_<nn::SynapseOutput>(
      m, "SynapseOutput", "From a conductance to a current; see CUBA, COBA, MgBlock.")
      .def_property_readonly("name", &nn::SynapseOutput::name);
  m.def("CUBA", &nn::CUBA, "scale"_a = 1.0,
        "I = g scale.\n\n>>> bt.nn.CUBA().name[:4]\n'CUBA'");
  m.def(
      "COBA", [](double E, double scale) { return nn::COBA(E, {scale}); }, "E"_a,
      "scale"_a = 1e-3, "I = scale g (E - V).\n\n>>> bt.nn.COBA(0.0).name[:4]\n'COBA'");
  m.def(
      "MgBlock",
      [](double E, double cc_Mg, double alpha, double beta, double V_offset,
         double scale) {
        return nn::MgBlock({E, cc_Mg, alpha, beta, V_offset, scale});
      },
      "E"_a = 0.0, "cc_Mg"_a = 1.2, "alpha"_a = 0.062, "beta"_a = 3.57,
      "V_offset"_a = 0.0, "scale"_a = 1e-3);
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
  m.def("model_kinds", &nn::model_kinds);
}

static void def_plain_initializers(py::module_& m) {
  const auto named = [](Initializer f, std::string text) {
    return NamedInitializer{std::move(f), std::move(text)};
  };
  m.def(
      "orthogonal",
      [=](double s) {
        return named(nn::init::orthogonal(s), fmt::format("orthogonal({})", s));
      },
      "scale"_a = 1.0,
      "Rows or columns at right angles.\n\n>>> bt.init.orthogonal(2.0)(bt.random_key(0), "
      "(2, 2)).shape\n(2, 2)");
  m.def(
      "zero", [=] { return named(nn::init::zero(), "zero()"); },
      "Zeros.\n\n>>> bt.init.zero()(bt.random_key(0), (2, 2)).shape\n(2, 2)");
  m.def(
      "constant",
      [=](double v) {
        return named(nn::init::constant(v), fmt::format("constant({})", v));
      },
      "value"_a,
      "One number everywhere.\n\n>>> bt.init.constant(0.5)(bt.random_key(0), (2, "
      "2)).shape\n(2, 2)");
  m.def(
      "normal",
      [=](double a, double b) {
        return named(nn::init::normal(a, b), fmt::format("normal({}, {})", a, b));
      },
      "mean"_a = 0.0, "std"_a = 1.0,
      "Normal numbers.\n\n>>> bt.init.normal(0.0, 0.1)(bt.random_key(0), (2, "
      "2)).shape\n(2, 2)");
  m.def(
      "truncated_normal",
      [=](double a, double b) {
        return named(nn::init::truncated_normal(a, b),
                     fmt::format("truncated_normal({}, {})", a, b));
      },
      "mean"_a = 0.0, "std"_a = 1.0,
      "Normal, within two standard deviations.\n\n>>> bt.init.truncated_normal(0.0, "
      "0.1)(bt.random_key(0), (2, 2)).shape\n(2, 2)");
  m.def(
      "uniform",
      [=](double a, double b) {
        return named(nn::init::uniform(a, b), fmt::format("uniform({}, {})", a, b));
      },
      "low"_a = 0.0, "high"_a = 1.0,
      "Uniform in [low, high).\n\n>>> bt.init.uniform(-1.0, 1.0)(bt.random_key(0), (2, "
      "2)).shape\n(2, 2)");
  m.def(
      "identity",
      [=](double s) {
        return named(nn::init::identity(s), fmt::format("identity({})", s));
      },
      "scale"_a = 1.0,
      "The identity matrix, scaled.\n\n>>> bt.init.identity()(bt.random_key(0), (2, "
      "2)).shape\n(2, 2)");
  m.def(
      "given",
      [](const Array& v) {
        return NamedInitializer{nn::init::given(v), "given(...)"};
      },
      "values"_a,
      "These numbers.\n\n>>> bt.init.given([[1.0, 2.0], [3.0, 4.0]])(bt.random_key(0), "
      "(2, 2)).shape\n(2, 2)");
}

void init_initializers(py::module_& m) {
  py::class_<NamedInitializer>(m, "Initializer", "How a parameter starts.")
      .def(
          "__call__",
          [](const NamedInitializer& i, const Array& key, const Size& shape,
             const DType& dtype) { return i.f(key_from_array(key), shape, dtype); },
          "key"_a, "shape"_a, "dtype"_a = DType::f32)
      .def("__repr__", [](const NamedInitializer& i) { return i.text; });
  const std::pair<const char*, Scaled> scaled[] = {
      {"kaiming_normal", nn::init::kaiming_normal},
      {"kaiming_uniform", nn::init::kaiming_uniform},
      {"xavier_normal", nn::init::xavier_normal},
      {"xavier_uniform", nn::init::xavier_uniform},
      {"lecun_normal", nn::init::lecun_normal},
      {"lecun_uniform", nn::init::lecun_uniform}};
  for (const auto& [name, f] : scaled) def_scaled(m, name, f);
  def_plain_initializers(m);
}

}  // namespace braintrace::python
