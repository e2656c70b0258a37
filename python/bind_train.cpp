// SPDX-License-Identifier: Apache-2.0
// Losses, metrics, optimisers, schedules and what is done with gradients.
#include "convert.h"
#include "py_module.h"
#include "reader.h"
#include <fmt/format.h>

#include "braintrace/train/gradients.h"
#include "braintrace/train/losses.h"
#include "braintrace/train/metrics.h"
#include "braintrace/train/optimizers.h"

namespace braintrace::python {
namespace {

using namespace py::literals;

struct PySchedule {
  Schedule rate;
};

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

// A schedule is a number (none), a Schedule, or a function of the count.
Schedule to_schedule(const py::object& o) {
  if (o.is_none()) return {};
  if (py::isinstance<PySchedule>(o)) return o.cast<const PySchedule&>().rate;
  const auto held = keep(o);
  return [held](std::int64_t n) {
    py::gil_scoped_acquire gil;
    return (*held)(n).cast<double>();
  };
}

void def_schedules(py::module_& m) {
  py::module_ s = m.def_submodule("schedule", "Learning rates as functions of a count.");
  py::class_<PySchedule>(s, "Schedule", "n -> learning rate.")
      .def("__call__", [](const PySchedule& p, std::int64_t n) { return p.rate(n); });
  s.def(
      "constant", [](double r) { return PySchedule{schedule::constant(r)}; }, "rate"_a,
      "Always the same.\n\n>>> bt.schedule.constant(0.1)(7)\n0.1");
  s.def(
      "step",
      [](double b, std::int64_t n, double g) {
        return PySchedule{schedule::step(b, n, g)};
      },
      "base"_a, "every"_a, "gamma"_a = 0.1,
      "base times gamma after every so many.\n\n>>> bt.schedule.step(1.0, 10, "
      "0.5)(20)\n0.25");
  s.def(
      "multistep",
      [](double b, std::vector<std::int64_t> n, double g) {
        return PySchedule{schedule::multistep(b, std::move(n), g)};
      },
      "base"_a, "milestones"_a, "gamma"_a = 0.1,
      "base times gamma at every milestone.\n\n>>> bt.schedule.multistep(1.0, [5, 9], "
      "0.5)(6)\n0.5");
  s.def(
      "exponential",
      [](double b, std::int64_t n, double r) {
        return PySchedule{schedule::exponential(b, n, r)};
      },
      "base"_a, "steps"_a, "rate"_a,
      "base rate^(n / steps).\n\n>>> bt.schedule.exponential(1.0, 10, 0.5)(20)\n0.25");
  s.def(
      "cosine",
      [](double b, std::int64_t n, double last) {
        return PySchedule{schedule::cosine(b, n, last)};
      },
      "base"_a, "steps"_a, "last"_a = 0.0,
      "Half a cosine from base to last.\n\n>>> bt.schedule.cosine(1.0, 10)(0)\n1.0");
  s.def(
      "polynomial",
      [](double b, std::int64_t n, double p, double last) {
        return PySchedule{schedule::polynomial(b, n, p, last)};
      },
      "base"_a, "steps"_a, "power"_a = 1.0, "last"_a = 0.0,
      "From base to last along a power.\n\n>>> bt.schedule.polynomial(1.0, 10)(5)\n0.5");
  s.def(
      "warmup",
      [](std::int64_t n, const py::object& rate) {
        return PySchedule{schedule::warmup(n, to_schedule(rate))};
      },
      "steps"_a, "rate"_a,
      "From 0 to the rate over the first steps, then the rate.\n\n"
      ">>> bt.schedule.warmup(10, bt.schedule.constant(1.0))(50)\n1.0");
}

OptimizerOptions read_options(Reader& r) {
  OptimizerOptions o;
  py::object rate = py::none();
  r.take("clip_norm", o.clip_norm);
  r.take("clip_value", o.clip_value);
  r.take("schedule", rate);
  r.take("manual_schedule", o.manual_schedule);
  o.schedule = to_schedule(rate);
  return o;
}

UpdateRule read_rule(const std::string& name, Reader& r) {
  if (name == "SGD") {
    SGD o;
    r.take("lr", o.lr);
    r.take("momentum", o.momentum);
    r.take("nesterov", o.nesterov);
    r.take("weight_decay", o.weight_decay);
    return o;
  }
  if (name == "RMSprop") {
    RMSprop o;
    r.take("lr", o.lr);
    r.take("alpha", o.alpha);
    r.take("eps", o.eps);
    r.take("momentum", o.momentum);
    r.take("centered", o.centered);
    r.take("weight_decay", o.weight_decay);
    return o;
  }
  const auto adaptive = [&r](auto o) {
    r.take("lr", o.lr);
    r.take("beta1", o.beta1);
    r.take("beta2", o.beta2);
    if constexpr (requires { o.eps; }) r.take("eps", o.eps);
    r.take("weight_decay", o.weight_decay);
    if constexpr (requires { o.amsgrad; }) r.take("amsgrad", o.amsgrad);
    return UpdateRule(o);
  };
  if (name == "Adam") return adaptive(Adam{});
  if (name == "AdamW") return adaptive(AdamW{});
  if (name == "Lion") return adaptive(Lion{});
  throw UserError(
      fmt::format("Optimizer: no rule '{}'; there are SGD, Adam, AdamW, RMSprop, "
                  "Lion",
                  name));
}

// "(lr=0.001, ...)", as the documentation and the type stubs show it.
std::string optimizer_signature(const std::string& rule) {
  Reader r(rule);
  read_rule(rule, r);
  read_options(r);
  try {
    r.done();
  } catch (const Reader::Described& d) {
    return d.signature;
  }
  return {};
}

const char* name_of(const UpdateRule& rule) {
  constexpr const char* names[] = {"SGD", "Adam", "AdamW", "RMSprop", "Lion"};
  return names[rule.index()];
}

std::unique_ptr<Optimizer> make_optimizer(const std::string& rule, const py::args& args,
                                          const py::kwargs& kwargs) {
  Reader r(rule, args, kwargs);
  UpdateRule u = read_rule(rule, r);
  OptimizerOptions o = read_options(r);
  r.done();
  return std::make_unique<Optimizer>(std::move(u), std::move(o));
}

void def_optimizers(py::module_& m) {
  py::class_<Optimizer, std::shared_ptr<Optimizer>>(
      m, "Optimizer",
      "Turns gradients by path into new parameters.\n\n"
      ">>> opt = bt.SGD(lr=0.5)\n"
      ">>> opt.update({'w': bt.ones(1)}, {'w': bt.ones(1)})['w'].tolist()\n"
      "[0.5]")
      .def(py::init(&make_optimizer), "rule"_a)
      .def(
          "update",
          [](Optimizer& o, const py::object& target, const StateDict& grads) {
            if (!is_module(target))
              return py::cast(o.update(target.cast<StateDict>(), grads));
            o.update(*module_of(target), grads);
            return py::object(py::none());
          },
          "model_or_params"_a, "grads"_a,
          "Updates a model in place, or returns the new values of a dict of parameters.")
      .def(
          "attach",
          [](Optimizer& o, const py::object& model) { o.attach(*module_of(model)); },
          "model"_a, py::keep_alive<1, 2>(),
          "Looks the model's parameters up once, for update(grads) after every step.\n\n"
          ">>> model, opt = bt.nn.init_all_states(bt.nn.Linear(1, 1)), bt.SGD(lr=0.5)\n"
          ">>> opt.attach(model)\n"
          ">>> opt.update({'weight/bias': bt.ones(1)})\n"
          ">>> model.weight.value['bias'].tolist()\n[-0.5]")
      .def(
          "update", [](Optimizer& o, const StateDict& grads) { o.update(grads); },
          "grads"_a)
      .def_property_readonly("learning_rate", &Optimizer::learning_rate)
      .def("__repr__",
           [](const Optimizer& o) {
             return fmt::format("{}(lr={}, {} updates)", name_of(o.rule()),
                                o.learning_rate(), o.num_updates());
           })
      .def_property_readonly("num_updates", &Optimizer::num_updates)
      .def("advance_schedule", &Optimizer::advance_schedule)
      .def("state_dict", &Optimizer::state_dict)
      .def("load_state_dict", &Optimizer::load_state_dict, "state"_a);
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
      .def("reset", &GradExpon::reset);
}

}  // namespace

void init_train(py::module_& m) {
  def_losses(m);
  def_spiking_measures(m);
  def_schedules(m);
  def_optimizers(m);
  m.def("_optimizer_signature", &optimizer_signature, "rule"_a);
  def_gradients(m);
}

}  // namespace braintrace::python
