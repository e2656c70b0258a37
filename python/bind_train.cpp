// SPDX-License-Identifier: Apache-2.0
// Losses, metrics and what is done with gradients.
#include "convert.h"

#include "braintrace/train/gradients.h"
#include "braintrace/train/losses.h"
#include "braintrace/train/metrics.h"

namespace braintrace::python {
namespace {

using namespace py::literals;

void def_losses(py::module_& m) {
  using Loss = Value (*)(const Value&, const Value&);
  struct Row {
    const char* name;
    Loss f;
    const char* second;
    const char* doc;
  };
  const Row rows[] = {
      {"mse", mse, "target",
       "mean (p - t)^2.\n\n>>> float(bt.mse([1.0, 2.0], [1.0, 4.0]))\n2.0"},
      {"l1", l1, "target",
       "mean |p - t|.\n\n>>> float(bt.l1([1.0, 2.0], [1.0, 4.0]))\n1.0"},
      {"softmax_cross_entropy", softmax_cross_entropy, "labels",
       "mean of -log softmax(logits)[label].\n\n"
       ">>> round(float(bt.softmax_cross_entropy([[0.0, 0.0]], [1])), 4)\n0.6931"},
      {"nll", nll, "labels",
       "mean of -log_probs[label].\n\n"
       ">>> float(bt.nll([[-1.0, -2.0]], [1]))\n2.0"},
      {"binary_cross_entropy", binary_cross_entropy, "target",
       "From logits.\n\n>>> round(float(bt.binary_cross_entropy([0.0], [1.0])), "
       "4)\n0.6931"},
      {"accuracy", accuracy, "labels",
       "Share of rows whose largest score stands at the label.\n\n"
       ">>> float(bt.accuracy([[0.0, 1.0]], [1]))\n1.0"},
      {"accuracy_over_time", accuracy_over_time, "labels",
       "The same for the mean score over time.\n\n"
       ">>> float(bt.accuracy_over_time([[[0.0, 1.0]]], [1]))\n1.0"}};
  for (const Row& r : rows)
    m.def(
        r.name, [f = r.f](Arg a, Arg b) { return f(a.value, b.value); }, "prediction"_a,
        py::arg(r.second), r.doc);
  m.def(
      "huber", [](Arg p, Arg t, double d) { return huber(p.value, t.value, d); },
      "prediction"_a, "target"_a, "delta"_a = 1.0,
      "Squared near 0, linear beyond delta.\n\n>>> float(bt.huber([3.0], [0.0]))\n2.5");
  m.def(
      "cosine_loss",
      [](Arg p, Arg t, std::int64_t axis) { return cosine_loss(p.value, t.value, axis); },
      "prediction"_a, "target"_a, "axis"_a = -1,
      "mean of 1 - cos(angle).\n\n>>> float(bt.cosine_loss([1.0, 0.0], [0.0, "
      "1.0]))\n1.0");
}

void def_spiking_measures(py::module_& m) {
  m.def(
      "firing_rate", [](Arg s, double dt) { return firing_rate(s.value, dt); },
      "spikes"_a, "dt"_a = 1.0,
      "Mean rate in Hz.\n\n>>> float(bt.firing_rate([1.0, 0.0]))\n500.0");
  m.def(
      "firing_rate_penalty",
      [](Arg s, double hz, double dt, double factor) {
        return firing_rate_penalty(s.value, {hz, dt, factor});
      },
      "spikes"_a, "target_hz"_a = 10.0, "dt"_a = 1.0, "factor"_a = 1.0,
      "factor (mean(spikes) - target)^2.\n\n"
      ">>> float(bt.firing_rate_penalty([1.0], target_hz=0.0))\n1.0");
  m.def(
      "potential_penalty",
      [](Arg V, double low, double high, double factor) {
        return potential_penalty(V.value, {low, high, factor});
      },
      "V"_a, "low"_a = -1.0, "high"_a = 1.0, "factor"_a = 1.0,
      "Keeps potentials bounded.\n\n>>> float(bt.potential_penalty([2.0]))\n1.0");
}

void def_gradients(py::module_& m) {
  m.def(
      "global_norm", &global_norm, "grads"_a, "p"_a = 2.0,
      "The norm of all entries together.\n\n>>> bt.global_norm({'w': [3.0, 4.0]})\n5.0");
  m.def("clip_grad_norm", &clip_grad_norm, "grads"_a, "max_norm"_a, "p"_a = 2.0,
        "Scales gradients down to a norm.\n\n"
        ">>> round(float(bt.clip_grad_norm({'w': [2.0]}, 1.0)['w'][0]), 3)\n1.0");
  m.def("clip_grad_value", &clip_grad_value, "grads"_a, "limit"_a,
        "Every entry into [-limit, limit].\n\n"
        ">>> bt.clip_grad_value({'w': [2.0]}, 1.0)['w'].tolist()\n[1.0]");
  m.def("add_grads", &add_grads, "a"_a, "b"_a,
        "a + b, path by path.\n\n>>> bt.add_grads({'w': [1.0]}, {'w': "
        "[2.0]})['w'].tolist()\n"
        "[3.0]");
  m.def("scale_grads", &scale_grads, "grads"_a, "factor"_a,
        "factor * grads.\n\n>>> bt.scale_grads({'w': [1.0]}, 2.0)['w'].tolist()\n[2.0]");
  m.def("gradient_cosine", &gradient_cosine, "a"_a, "b"_a,
        "Cosine of the angle between two gradients.\n\n"
        ">>> bt.gradient_cosine({'w': [1.0]}, {'w': [2.0]})\n1.0");
  m.def("gradient_cosines", &gradient_cosines, "a"_a, "b"_a,
        "Leaf by leaf.\n\n>>> bt.gradient_cosines({'w': [1.0]}, {'w': [-2.0]})\n{'w': "
        "-1.0}");
  py::class_<GradExpon>(
      m, "GradExpon",
      "A leaky sum of gradients.\n\n>>> g = bt.GradExpon(decay=0.5)\n"
      ">>> _ = g.update({'w': [1.0]})\n>>> g.update({'w': [1.0]})['w'].tolist()\n"
      "[1.5]")
      .def(py::init([](const std::optional<double>& decay,
                       const std::optional<double>& tau, double dt) {
             BT_REQUIRE(decay.has_value() != tau.has_value(),
                        "GradExpon: give either decay or tau");
             return decay ? GradExpon(*decay) : GradExpon::with_tau(*tau, dt);
           }),
           py::kw_only(), "decay"_a = py::none(), "tau"_a = py::none(), "dt"_a = 1.0)
      .def_property_readonly("decay", &GradExpon::decay)
      .def_property_readonly("value", &GradExpon::value)
      .def("update", &GradExpon::update, "grads"_a)
      .def("_restore", &GradExpon::restore, "value"_a)
      .def("reset", &GradExpon::reset);
}

}  // namespace

void init_train(py::module_& m) {
  def_losses(m);
  def_spiking_measures(m);
  def_gradients(m);
}

}  // namespace braintrace::python
