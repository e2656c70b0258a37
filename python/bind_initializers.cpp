// SPDX-License-Identifier: Apache-2.0
// How parameters start.
#include "convert.h"
#include "reader.h"
#include <fmt/format.h>

#include "braintrace/nn/initializers.h"

namespace braintrace::python {
namespace {

using namespace py::literals;

using Scaled = Initializer (*)(nn::init::ScalingOptions);

void def_scaled(py::module_& m, const char* name, Scaled f) {
  m.def(
      name,
      [name, f](const std::optional<double>& scale, bool plain) {
        nn::init::ScalingOptions o =
            plain ? nn::init::plain(scale) : nn::init::ScalingOptions{};
        if (scale) o.scale = scale;
        Made made{fmt::format("init.{}", name)};
        if (scale) made.kwargs["scale"] = *scale;
        if (plain) made.kwargs["plain"] = true;
        return NamedInitializer{f(o), std::move(made)};
      },
      "scale"_a = py::none(), "plain"_a = false,
      fmt::format("Variance scale / fan. plain: untruncated, fans as (out, in, ...).\n\n"
                  ">>> bt.nn.init.{}()(bt.random_key(0), (3, 4)).shape\n(3, 4)",
                  name)
          .c_str());
}

// A function of plain arguments; `example` is how the documentation calls it.
template <class... A, class... Extra>
void def_initializer(py::module_& m, const char* name, Initializer (*f)(A...),
                     const char* doc, const char* example, const Extra&... extra) {
  m.def(
      name,
      [name, f](A... a) {
        return NamedInitializer{f(a...),
                                {fmt::format("init.{}", name), py::make_tuple(a...)}};
      },
      extra...,
      fmt::format("{}\n\n>>> bt.init.{}{}(bt.random_key(0), (2, 2)).shape\n(2, 2)", doc,
                  name, example)
          .c_str());
}

void def_plain_initializers(py::module_& m) {
  namespace init = nn::init;
  using Number = Initializer (*)(double);
  using Two = Initializer (*)(double, double);
  def_initializer(m, "orthogonal", Number([](double s) { return init::orthogonal(s); }),
                  "Rows or columns at right angles.", "(2.0)", "scale"_a = 1.0);
  def_initializer(
      m, "zero", +[] { return init::zero(); }, "Zeros.", "()");
  def_initializer(m, "constant", Number([](double v) { return init::constant(v); }),
                  "One number everywhere.", "(0.5)", "value"_a);
  def_initializer(m, "normal", Two([](double a, double b) { return init::normal(a, b); }),
                  "Normal numbers.", "(0.0, 0.1)", "mean"_a = 0.0, "std"_a = 1.0);
  def_initializer(m, "truncated_normal",
                  Two([](double a, double b) { return init::truncated_normal(a, b); }),
                  "Normal, within two standard deviations.", "(0.0, 0.1)", "mean"_a = 0.0,
                  "std"_a = 1.0);
  def_initializer(
      m, "uniform", Two([](double a, double b) { return init::uniform(a, b); }),
      "Uniform in [low, high).", "(-1.0, 1.0)", "low"_a = 0.0, "high"_a = 1.0);
  def_initializer(m, "identity", Number([](double s) { return init::identity(s); }),
                  "The identity matrix, scaled.", "()", "scale"_a = 1.0);
  def_initializer(
      m, "given", +[](const Array& v) { return init::given(v); }, "These numbers.",
      "([[1.0, 2.0], [3.0, 4.0]])", "values"_a);
}

}  // namespace

void init_initializers(py::module_& m) {
  py::class_<NamedInitializer>(
      m, "Initializer",
      "How a parameter starts: a function of a key, a shape and an element type.\n\n"
      ">>> bt.init.constant(0.5)\nconstant(0.5)\n"
      ">>> bt.init.constant(0.5)(bt.random_key(0), (2,)).tolist()\n[0.5, 0.5]")
      .def(
          "__call__",
          [](const NamedInitializer& i, const Array& key, const Size& shape,
             const std::optional<DType>& dtype) {
            return i.f(key_from_array(key), shape, dtype.value_or(default_float()));
          },
          "key"_a, "shape"_a, "dtype"_a = py::none())
      .def_property_readonly("_made",
                             [](const NamedInitializer& i) { return i.made.parts(); })
      .def("__repr__", [](const NamedInitializer& i) { return i.made.text(); });
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
