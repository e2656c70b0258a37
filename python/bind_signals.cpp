// SPDX-License-Identifier: Apache-2.0
// Stand-alone pieces of learning signals: a low-pass filter and fixed random feedback.
#include "convert.h"

#include "braintrace/algo/fixed_random_feedback.h"
#include "braintrace/algo/kappa_filter.h"

namespace braintrace::python {
namespace {

using namespace py::literals;

void def_kappa_filter(py::module_& m) {
  py::class_<KappaFilter>(
      m, "KappaFilter",
      "A low-pass filter of signals: v <- kappa v + (1 - kappa) x.\n\n"
      ">>> f = bt.KappaFilter(bt.zeros(2), 0.75)\n"
      ">>> f.update(bt.ones(2)).tolist(), f(bt.ones(2)).tolist()\n"
      "([0.25, 0.25], [0.4375, 0.4375])")
      .def(py::init<Array, double>(), "init"_a, "kappa"_a)
      .def(
          "update", [](KappaFilter& f, const Array& x) { return f.update(x); }, "x"_a,
          "The filtered value after x.")
      .def(
          "__call__", [](KappaFilter& f, const Array& x) { return f.update(x); }, "x"_a)
      .def("reset", &KappaFilter::reset, "batch_size"_a = py::none(),
           "Back to the initial value; with a batch size, one copy of it per sample.")
      .def_property_readonly("value", [](const KappaFilter& f) { return f.value(); })
      .def_property_readonly("kappa", &KappaFilter::kappa);
}

void def_fixed_feedback(py::module_& m) {
  using F = FixedRandomFeedback;
  py::class_<F>(m, "FixedRandomFeedback",
                "A fixed random projection from targets to a layer: y B.\n\n"
                ">>> bt.FixedRandomFeedback(2, 5, 0).project(bt.ones((3, 2))).shape\n"
                "(3, 5)")
      .def(py::init([](std::int64_t n_target, std::int64_t n_layer, std::uint64_t key,
                       double init_scale) {
             return F(n_target, n_layer, key, {.init_scale = init_scale});
           }),
           "n_target"_a, "n_layer"_a, "key"_a, "init_scale"_a = 0.1)
      .def_static(
          "from_matrix", [](Array matrix) { return F(std::move(matrix)); }, "matrix"_a,
          "The projection through a given matrix.")
      .def(
          "project", [](const F& f, const Arg& y) { return f.project(y.value); }, "y"_a,
          "(..., n_target) -> (..., n_layer). No gradient flows to B.")
      .def(
          "__call__", [](const F& f, const Arg& y) { return f.project(y.value); }, "y"_a)
      .def_property_readonly("matrix", [](const F& f) { return f.matrix(); });
}

}  // namespace

void init_signals(py::module_& m) {
  def_kappa_filter(m);
  def_fixed_feedback(m);
}

}  // namespace braintrace::python
