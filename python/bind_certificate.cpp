// SPDX-License-Identifier: Apache-2.0
// How good online gradients are, as records.
#include "records.h"

#include "braintrace/base/certificate.h"
#include "braintrace/view/certificate_text.h"

namespace braintrace::python {

using namespace py::literals;

void init_certificate(py::module_& m) {
  using Row = CertificateRow;
  auto row =
      py::class_<Row>(
          m, "CertificateRow",
          "One leaf of a parameter.\n\n"
          ">>> learner = bt.compile(bt.nn.GRUCell(3, 4), 'd_rtrl', bt.zeros(3))\n"
          ">>> c = learner.certificate(bt.ones((5, 3)), step_fn=lambda x: "
          "bt.sum(learner(x)))\n"
          ">>> c.rows[0].parameter, c.rows[0].verdict\n('Wh/weight/bias', 'approximate')")
          .def_readonly("parameter", &Row::parameter)
          .def_readonly("verdict", &Row::verdict)
          .def_readonly("because", &Row::because)
          .def_readonly("cosine", &Row::cosine)
          .def_readonly("error", &Row::error)
          .def_readonly("norm", &Row::norm)
          .def_readonly("bptt_norm", &Row::bptt_norm)
          .def_readonly("trace_max", &Row::trace_max)
          .def_readonly("zero", &Row::zero, "Both gradients are zero up to rounding.");
  def_record(row, &Row::parameter, &Row::verdict, &Row::because, &Row::cosine,
             &Row::error, &Row::norm, &Row::bptt_norm, &Row::trace_max, &Row::zero);
  using State = CertificateState;
  auto state =
      py::class_<State>(
          m, "CertificateState",
          "Signs of life of one hidden state.\n\n"
          ">>> learner = bt.compile(bt.nn.GRUCell(3, 4), 'd_rtrl', bt.zeros(3))\n"
          ">>> c = learner.certificate(bt.ones((5, 3)), step_fn=lambda x: "
          "bt.sum(learner(x)))\n"
          ">>> c.states[0].state, c.states[0].largest > 0\n('h', True)")
          .def_readonly("state", &State::state)
          .def_readonly("largest", &State::largest)
          .def_readonly("change", &State::change)
          .def_readonly("rate", &State::rate);
  def_record(state, &State::state, &State::largest, &State::change, &State::rate);
  using C = CertificateData;
  auto whole =
      py::class_<C>(
          m, "Certificate",
          "Online gradients beside back-propagation.\n\n"
          ">>> learner = bt.compile(bt.nn.GRUCell(3, 4), 'd_rtrl', bt.zeros(3))\n"
          ">>> c = learner.certificate(bt.ones((5, 3)), step_fn=lambda x: "
          "bt.sum(learner(x)))\n"
          ">>> c.algorithm, c.steps, 0.5 < c.cosine <= 1\n('D_RTRL', 5, True)")
          .def_readonly("algorithm", &C::algorithm)
          .def_readonly("history", &C::history)
          .def_readonly("steps", &C::steps)
          .def_readonly("window", &C::window)
          .def_readonly("loss", &C::loss)
          .def_readonly("cosine", &C::cosine)
          .def_readonly("error", &C::error)
          .def_readonly("rows", &C::rows)
          .def_readonly("states", &C::states)
          .def_readonly("warnings", &C::warnings)
          .def("holds", &C::holds, "tolerance"_a,
               "Whether every exact row is that close and nothing was refused.")
          .def("__str__", [](const C& c) { return to_text(c); })
          .def("__repr__", [](const C& c) { return to_text(c); });
  def_record(whole, &C::algorithm, &C::history, &C::steps, &C::window, &C::loss,
             &C::cosine, &C::error, &C::rows, &C::states, &C::warnings);
}

}  // namespace braintrace::python
