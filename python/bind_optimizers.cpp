// SPDX-License-Identifier: Apache-2.0
// Optimisers.
#include "convert.h"
#include "py_learner.h"
#include "py_module.h"
#include "reader.h"
#include "schedules.h"
#include <fmt/format.h>

#include "braintrace/train/optimizers.h"

namespace braintrace::python {
namespace {

using namespace py::literals;

// Calls f(name, field) for every argument of a rule, in their order.
template <class F>
void for_each_argument(SGD& o, F f) {
  f("lr", o.lr);
  f("momentum", o.momentum);
  f("nesterov", o.nesterov);
  f("weight_decay", o.weight_decay);
}

template <class F>
void for_each_argument(RMSprop& o, F f) {
  f("lr", o.lr);
  f("alpha", o.alpha);
  f("eps", o.eps);
  f("momentum", o.momentum);
  f("centered", o.centered);
  f("weight_decay", o.weight_decay);
}

template <class Adaptive, class F>
void for_each_argument(Adaptive& o, F f) {
  f("lr", o.lr);
  f("beta1", o.beta1);
  f("beta2", o.beta2);
  if constexpr (requires { o.eps; }) f("eps", o.eps);
  f("weight_decay", o.weight_decay);
  if constexpr (requires { o.amsgrad; }) f("amsgrad", o.amsgrad);
}

constexpr const char* rule_names[] = {"SGD", "Adam", "AdamW", "RMSprop", "Lion"};

UpdateRule rule_by_name(const std::string& name) {
  const UpdateRule rules[] = {SGD{}, Adam{}, AdamW{}, RMSprop{}, Lion{}};
  for (const UpdateRule& r : rules)
    if (name == rule_names[r.index()]) return r;
  throw UserError(fmt::format("Optimizer: no rule '{}'; there are {}", name,
                              fmt::join(rule_names, ", ")));
}

UpdateRule read_rule(const std::string& name, Reader& r) {
  UpdateRule rule = rule_by_name(name);
  const auto take = [&r](const char* key, auto& field) { r.take(key, field); };
  std::visit([&](auto& o) { for_each_argument(o, take); }, rule);
  return rule;
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

std::unique_ptr<Optimizer> make_optimizer(const std::string& rule, const py::args& args,
                                          const py::kwargs& kwargs) {
  Reader r(rule, args, kwargs);
  UpdateRule u = read_rule(rule, r);
  OptimizerOptions o = read_options(r);
  r.done();
  return std::make_unique<Optimizer>(std::move(u), std::move(o));
}

// (rule, keywords): an optimiser like this one, before its first update.
py::tuple arguments_of(const Optimizer& optimizer) {
  py::dict d;
  UpdateRule rule = optimizer.rule();
  const auto store = [&d](const char* key, auto& field) { d[key] = field; };
  std::visit([&](auto& o) { for_each_argument(o, store); }, rule);
  const OptimizerOptions& o = optimizer.options();
  if (o.clip_norm) d["clip_norm"] = *o.clip_norm;
  if (o.clip_value) d["clip_value"] = *o.clip_value;
  if (o.schedule) d["schedule"] = schedule_object(o.schedule);
  if (o.manual_schedule) d["manual_schedule"] = true;
  return py::make_tuple(rule_names[rule.index()], d);
}

// In the width they have: the optimiser brings them to that of the parameters.
StateDict arrays_by_name(const py::dict& given) {
  StateDict out;
  for (const auto& [name, numbers] : given) {
    if (!py::isinstance<py::str>(name))
      throw UserError(ErrorKind::type,
                      fmt::format("Optimizer: arrays stand under paths such as "
                                  "'rnn/weight', got {}",
                                  py::repr(name).cast<std::string>()));
    out.emplace(name.cast<std::string>(), to_array_exact(numbers));
  }
  return out;
}

py::object update_model_or_values(Optimizer& o, const py::object& target,
                                  const py::dict& given) {
  const StateDict grads = arrays_by_name(given);
  if (!is_module(target)) return py::cast(o.update(target.cast<StateDict>(), grads));
  o.update(*module_of(target), grads);
  return py::none();
}

// The model, kept alive as it is now: the optimiser refers to its states.
Module& kept_by(const py::object& optimizer, py::handle model) {
  auto* m = new std::shared_ptr<Module>(module_of(model));
  const py::capsule held(m, [](void* p) { delete static_cast<decltype(m)>(p); });
  py::detail::keep_alive_impl(optimizer, held);
  return **m;
}

void attach(const py::object& self, const py::object& target) {
  auto& o = self.cast<Optimizer&>();
  if (is_module(target) || !py::hasattr(target, "_learner"))
    return o.attach(kept_by(self, target));
  const py::object compiled = target.attr("_learner");
  BT_REQUIRE_KIND(!compiled.is_none(), ErrorKind::runtime,
                  "Optimizer.attach: the learner is not compiled yet; call "
                  "compile_graph(*example_inputs) first");
  auto& learner = compiled.cast<PyLearner&>();
  learner.check_model("Optimizer.attach");
  o.attach(kept_by(self, learner.model()), learner.learner().threads());
}

}  // namespace

void init_optimizers(py::module_& m) {
  m.def("_optimizer_signature", &optimizer_signature, "rule"_a);
  py::class_<Optimizer, std::shared_ptr<Optimizer>>(
      m, "Optimizer",
      "Turns gradients by path into new parameters.\n\n"
      ">>> opt = bt.SGD(lr=0.5)\n"
      ">>> opt.update({'w': bt.ones(1)}, {'w': bt.ones(1)})['w'].tolist()\n"
      "[0.5]")
      .def(py::init(&make_optimizer), "rule"_a)
      .def("update", &update_model_or_values, "model_or_params"_a, "grads"_a,
           "Updates a model in place, or returns the new values of a dict of parameters.")
      .def("attach", &attach, "model_or_learner"_a, py::keep_alive<1, 2>(),
           "Looks the model's parameters up once, for update(grads) after every step. "
           "With a\n"
           "learner instead of its model, updates run on the learner's threads.\n\n"
           ">>> model, opt = bt.nn.init_all_states(bt.nn.Linear(1, 1)), bt.SGD(lr=0.5)\n"
           ">>> opt.attach(model)\n"
           ">>> opt.update({'weight/bias': bt.ones(1)})\n"
           ">>> model.weight.value['bias'].tolist()\n[-0.5]")
      .def(
          "update",
          [](Optimizer& o, const py::dict& grads) { o.update(arrays_by_name(grads)); },
          "grads"_a)
      .def_property_readonly("learning_rate", &Optimizer::learning_rate)
      .def("__repr__",
           [](const Optimizer& o) {
             return fmt::format("{}(lr={}, {} updates)", rule_names[o.rule().index()],
                                o.learning_rate(), o.num_updates());
           })
      .def_property_readonly("num_updates", &Optimizer::num_updates)
      .def("advance_schedule", &Optimizer::advance_schedule)
      .def_property_readonly("_arguments", &arguments_of)
      .def("state_dict", &Optimizer::state_dict)
      .def(
          "load_state_dict",
          [](Optimizer& o, const py::dict& s) { o.load_state_dict(arrays_by_name(s)); },
          "state"_a);
}

}  // namespace braintrace::python
