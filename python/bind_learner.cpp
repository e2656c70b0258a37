// SPDX-License-Identifier: Apache-2.0
// The compiled learner. The public class is written in Python on top (_learner.py).
#include "convert.h"
#include "etrace_options.h"
#include "named_option.h"
#include "py_learner.h"
#include "quick_methods.h"
#include "value_object.h"
#include <fmt/format.h>

#include "braintrace/train/learner_checkpoint.h"
#include "braintrace/train/optimizers.h"

namespace braintrace::python {
namespace {

using namespace py::literals;

// A loss function traced for streaming.
struct PyLoss {
  LossHandle handle;
  Tree args, aux;
  bool has_aux;
  std::map<std::string, py::str> names = {};  // of gradients, made once
};

std::shared_ptr<PyLoss> trace_loss(PyLearner& l, const py::function& f,
                                   const py::args& examples, bool has_aux) {
  l.check_model("trace_loss");
  std::vector<Value> leaves;
  Tree args = l.read(examples, leaves);
  Tree aux;
  const TracedFn fn = l.traced(f, args, has_aux, aux);
  LossHandle handle = l.learner().trace_loss(fn, arrays_of(leaves));
  return std::make_shared<PyLoss>(
      PyLoss{std::move(handle), std::move(args), aux, has_aux});
}

py::dict gradients_of(PyLoss& loss, const StateDict& gradients) {
  if (loss.names.size() != gradients.size())
    for (const auto& [path, a] : gradients) loss.names.emplace(path, py::str(path));
  py::dict out;
  auto name = loss.names.begin();
  for (const auto& [path, a] : gradients) {
    if (name->first != path) throw InternalError("step_grad: gradients changed places");
    const py::object value = value_object(a);
    if (PyDict_SetItem(out.ptr(), (name++)->second.ptr(), value.ptr()) != 0)
      throw py::error_already_set();
  }
  return out;
}

py::tuple step_grad(PyLearner& l, PyLoss& loss, double weight, const py::tuple& args) {
  const StepGradient g = l.step_grad(loss.handle, weight, args);
  py::dict grads = gradients_of(loss, *g.gradients);
  if (!loss.has_aux) return py::make_tuple(g.loss, std::move(grads));
  return py::make_tuple(g.loss, std::move(grads),
                        unflatten(loss.aux, {g.results.begin(), g.results.end()}));
}

py::object step_update(PyLearner& l, PyLoss& loss, Optimizer& optimizer, double weight,
                       const py::tuple& args) {
  const StepGradient g = l.step_update(loss.handle, optimizer, weight, args);
  if (!loss.has_aux) return py::float_(g.loss);
  return py::make_tuple(g.loss,
                        unflatten(loss.aux, {g.results.begin(), g.results.end()}));
}

// Methods with the arguments of a step in a tuple, as _learner.py calls them.
PyObject* quick_step_grad(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  if (count != 3 || !PyFloat_CheckExact(given[1]) || !PyTuple_CheckExact(given[2]))
    return nullptr;
  auto* learner = held<PyLearner>(self);
  auto* loss = held<PyLoss>(given[0]);
  if (learner == nullptr || loss == nullptr) return nullptr;
  const auto args = py::reinterpret_borrow<py::tuple>(given[2]);
  return step_grad(*learner, *loss, PyFloat_AS_DOUBLE(given[1]), args).release().ptr();
}

PyObject* quick_step_update(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  if (count != 4 || !PyFloat_CheckExact(given[2]) || !PyTuple_CheckExact(given[3]))
    return nullptr;
  auto* learner = held<PyLearner>(self);
  auto* loss = held<PyLoss>(given[0]);
  if (learner == nullptr || loss == nullptr || !py::isinstance<Optimizer>(given[1]))
    return nullptr;
  auto& optimizer = py::handle(given[1]).cast<Optimizer&>();
  const auto args = py::reinterpret_borrow<py::tuple>(given[3]);
  return step_update(*learner, *loss, optimizer, PyFloat_AS_DOUBLE(given[2]), args)
      .release()
      .ptr();
}

template <py::object (PyLearner::*method)(const py::tuple&)>
PyObject* quick_step(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  auto* learner = held<PyLearner>(self);
  if (learner == nullptr || count != 1 || !PyTuple_CheckExact(given[0])) return nullptr;
  return (learner->*method)(py::reinterpret_borrow<py::tuple>(given[0])).release().ptr();
}

TraceSpace trace_space_of(const std::string& name) {
  BT_REQUIRE(
      name == "effective" || name == "parameter",
      fmt::format("etraces: space must be effective or parameter, got '{}'", name));
  return name == "effective" ? TraceSpace::effective : TraceSpace::parameter;
}

py::list traces_of(const std::vector<TraceView>& views) {
  py::list out;
  for (const TraceView& t : views) {
    py::dict d;
    d["name"] = t.slot.name();
    d["kind"] = t.slot.kind;
    d["key"] = t.slot.key;
    d["relation"] = t.slot.relation;
    d["group"] = t.slot.group;
    d["value"] = py::cast(t.value);
    out.append(d);
  }
  return out;
}

void def_runs(py::class_<PyLearner>& c) {
  c.def(py::init([](const py::object& model, const Algorithm& a, const py::dict& options,
                    const py::args& examples) {
     return std::make_unique<PyLearner>(model, a, examples, learner_options(options));
   }))
      .def("call", &PyLearner::call)
      .def("call_modulated",
           [](PyLearner& l, const py::object& m, const py::args& args) {
             return l.call_modulated(m, args);
           })
      .def("modulated_grad",
           [](PyLearner& l, const py::object& m, const py::args& args) {
             return l.modulated_grad(m, args);
           })
      .def("step", &PyLearner::step)
      .def("call_window", [](PyLearner& l, const std::vector<bool>& multi,
                             const py::args& args) { return l.call_window(args, multi); })
      .def("trace_loss",
           [](PyLearner& l, const py::function& f, bool has_aux,
              const py::args& examples) { return trace_loss(l, f, examples, has_aux); })
      .def("step_grad", &step_grad, "loss"_a, "weight"_a, "args"_a)
      .def("step_update", &step_update, "loss"_a, "optimizer"_a, "weight"_a, "args"_a)
      .def("etrace_grad",
           [](PyLearner& l, const py::object& f, const py::dict& options,
              const py::args& sequences) { return l.etrace_grad(sequences, f, options); })
      .def("etrace_grad_from",
           [](PyLearner& l, const py::function& at, std::int64_t steps,
              const py::object& f, const py::dict& options) {
             return l.etrace_grad_from(at, steps, f, options);
           })
      .def("etrace_evolve_from", &PyLearner::etrace_evolve_from)
      .def(
          "prepare",
          [](PyLearner& l, py::object f, const py::dict& options,
             const py::args& sequences) {
            return std::make_unique<PyPrepared>(l, std::move(f), options, sequences);
          },
          py::keep_alive<0, 1>())
      .def("certificate",
           [](PyLearner& l, const py::function& f, std::int64_t window,
              const py::args& sequences) { return l.certificate(sequences, f, window); })
      .def("etrace_evolve",
           [](PyLearner& l, const std::optional<std::int64_t>& chunk, bool outputs,
              const py::args& sequences) {
             return l.etrace_evolve(sequences, chunk, outputs);
           })
      .def("report_text", [](const PyLearner& l, int verbose) {
        return l.learner().show_graph(verbose);
      });
}

void def_traces(py::class_<PyLearner>& c) {
  c.def("init_etrace_state", [](PyLearner& l) { l.learner().init_etrace_state(); })
      .def("reset_state",
           [](PyLearner& l, const std::optional<std::int64_t>& batch) {
             l.learner().reset_state(batch);
           })
      .def("etraces",
           [](const PyLearner& l, const std::string& space) {
             return traces_of(l.learner().etraces(trace_space_of(space)));
           })
      .def("get_etrace_of",
           [](const PyLearner& l, const Path& p) {
             return traces_of(l.learner().get_etrace_of(p));
           })
      .def("set_etrace",
           [](PyLearner& l, const std::string& name, const py::object& v) {
             l.learner().set_etrace(name, l.read_as<Array>(v));
           })
      .def("set_modulator",
           [](PyLearner& l, const py::object& v) {
             l.learner().set_modulator(l.read_as<std::optional<Array>>(v));
           })
      .def_property_readonly("modulator",
                             [](const PyLearner& l) { return l.learner().modulator(); })
      .def("set_rule_input",
           [](PyLearner& l, const std::string& name, const py::object& v) {
             l.learner().set_rule_input(name, l.read_as<Array>(v));
           })
      .def("set_feedback",
           [](PyLearner& l, const py::dict& f) {
             l.learner().set_feedback(l.read_as<FeedbackMatrices>(f));
           })
      .def(
          "set_synthesizer",
          [](PyLearner& l, const SyntheticGradient& s) {
            l.learner().set_synthesizer(s);
          },
          "predictor"_a)
      .def_property_readonly("synthesizer", [](const PyLearner& l) {
        return l.learner().rule().synthesizer;
      });
}

void def_progress(py::class_<PyLearner>& c) {
  c.def("restore",
        [](PyLearner& l, const Checkpoint& c, Optimizer* optimizer) {
          l.check_model("load");
          if (optimizer) return restore(l.learner(), *optimizer, c);
          restore(l.learner(), c);
        })
      .def("check_model", &PyLearner::check_model)
      .def("last_plan", [](const PyLearner& l) { return l.learner().last_plan(); })
      .def("set_counters",
           [](PyLearner& l, std::int64_t calls, std::int64_t steps) {
             l.learner().set_counters(calls, steps);
           })
      .def_property_readonly(
          "running_index", [](const PyLearner& l) { return l.learner().running_index(); })
      .def_property_readonly("trace_steps",
                             [](const PyLearner& l) { return l.learner().trace_steps(); })
      .def_property_readonly("algorithm",
                             [](const PyLearner& l) { return l.learner().algorithm(); })
      .def_property_readonly(
          "graph", [](const PyLearner& l) { return &l.learner().graph(); },
          py::return_value_policy::reference_internal);
}

ExecutorKind executor_of(const std::string& name) {
  BT_REQUIRE(
      name == "plan" || name == "interpreter",
      fmt::format("compile: executor must be plan or interpreter, got '{}'", name));
  return name == "plan" ? ExecutorKind::plan : ExecutorKind::interpreter;
}

}  // namespace

LearnerOptions learner_options(const py::dict& given) {
  LearnerOptions o;
  const auto flag = [&](const std::string& name) {
    return option_as<bool>("compile", name, a_truth, given[name.c_str()]);
  };
  if (given.contains("compat") && flag("compat")) o = compat(o);
  for (const auto& [key, item] : given) {
    const auto name = key.cast<std::string>();
    const auto value = py::reinterpret_borrow<py::object>(item);
    if (name == "compat") continue;
    if (name == "batch_size")
      o.batch_size =
          option_as<std::optional<std::int64_t>>("compile", name, an_integer, value);
    else if (name == "seed")
      o.seed = option_as<std::optional<std::uint64_t>>("compile", name, a_seed, value);
    else if (name == "dtype")
      o.dtype = value.cast<std::optional<DType>>();
    else if (name == "vmap")
      o.vmap = flag(name);
    else if (name == "threads")
      o.threads = option_as<int>("compile", name, an_integer, value);
    else if (name == "profile")
      o.profile = flag(name);
    else if (name == "check_finite")
      o.learning.check_finite = flag(name);
    else if (name == "executor")
      o.executor = executor_of(option_as<std::string>("compile", name, a_name, value));
    else if (set_compile_option(o.graph, name, value))
      continue;
    else if (!set_option(o.learning, name,
                         option_as<std::string>("compile", name, a_name, value)))
      throw UserError(ErrorKind::type, fmt::format("compile: no option '{}'", name));
  }
  return o;
}

LearnerOptions with_default_dtype(LearnerOptions options, const Module& m) {
  if (!options.dtype) options.dtype = dtype_before_parameters(m);
  return options;
}

std::vector<std::string> learner_option_names() {
  std::vector<std::string> names = {
      "compat",       "batch_size",   "seed",
      "dtype",        "vmap",         "threads",
      "executor",     "check_finite", "include_hidden_perturb",
      "control_flow", "profile"};
  for (const auto& part : {option_names(), braintrace::learning_option_names()})
    names.insert(names.end(), part.begin(), part.end());
  return names;
}

void init_learner(py::module_& m) {
  m.def("learner_option_names", &learner_option_names,
        "What compile takes as keywords, beside the arguments of the rule.\n\n"
        ">>> 'history' in bt.learner_option_names()\nTrue");
  py::class_<PyLoss, std::shared_ptr<PyLoss>>(
      m, "LossHandle",
      "A loss function traced once.\n\n"
      ">>> learner = bt.compile(bt.nn.GRUCell(3, 4), 'd_rtrl', bt.zeros(3))\n"
      ">>> loss = learner.trace_loss(lambda x: bt.sum(learner(x)), bt.ones(3))\n"
      ">>> value, grads = learner.step_grad(bt.ones(3), loss=loss)\n"
      ">>> grads['Wh/weight/bias'].shape\n(4,)")
      .def_property_readonly("program", [](const PyLoss& l) { return l.handle.graph(); });
  py::class_<PyPrepared>(m, "_PreparedGrad")
      .def("grad",
           [](PyPrepared& p, const py::object& mask, const py::object& modulators,
              const py::args& sequences) { return p.grad(sequences, mask, modulators); });
  py::class_<PyLearner> c(m, "_Learner");
  def_runs(c);
  def_progress(c);
  def_traces(c);
}

void init_quick_methods() {
  const py::handle type = py::type::of<PyLearner>();
  QuickMethod<quick_step_grad>::stand_before(type, "step_grad");
  QuickMethod<quick_step_update>::stand_before(type, "step_update");
  QuickMethod<quick_step<&PyLearner::step>>::stand_before(type, "step");
  QuickMethod<quick_step<&PyLearner::call>>::stand_before(type, "call");
}

}  // namespace braintrace::python
