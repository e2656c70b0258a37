// SPDX-License-Identifier: Apache-2.0
#include "py_learner.h"

#include "convert.h"
#include "named_option.h"
#include "py_source.h"
#include "value_object.h"
#include <fmt/format.h>
#include <pybind11/numpy.h>

namespace braintrace::python {
namespace {

std::shared_ptr<Learner> compile_model(Module& m, const Algorithm& a,
                                       const py::args& examples,
                                       const LearnerOptions& o) {
  const auto dtype = o.dtype ? o.dtype : dtype_of_parameters(m);
  const FloatsAs width(dtype.value_or(default_float()));  // for constants of its step
  return std::make_shared<Learner>(m, a, arrays_of(bind_inputs(m, examples)), o);
}

Reduction reduction_of(const std::string& name) {
  BT_REQUIRE(name == "mean" || name == "sum",
             fmt::format("etrace_grad: reduction must be mean or sum, got '{}'", name));
  return name == "mean" ? Reduction::mean : Reduction::sum;
}

LossOutput loss_output_of(const std::string& name) {
  if (name == "per_step") return LossOutput::per_step;
  if (name == "masked") return LossOutput::masked;
  BT_REQUIRE(name == "scalar", fmt::format("etrace_grad: loss_output must be per_step, "
                                           "masked or scalar, got '{}'",
                                           name));
  return LossOutput::scalar;
}

GradOptions grad_options(const py::dict& d, DType floats) {
  GradOptions o;
  const auto get = [&](const char* name) { return py::object(d[name]); };
  const FloatsAs width(floats);
  if (!get("mask").is_none()) o.mask = to_array(get("mask"));
  if (!get("modulators").is_none()) o.modulators = to_array(get("modulators"));
  const auto integer = [&](const char* name) {
    return option_as<std::int64_t>("etrace_grad", name, an_integer, get(name));
  };
  const auto text = [&](const char* name) {
    return option_as<std::string>("etrace_grad", name, a_name, get(name));
  };
  o.chunk_size = get("chunk_size").cast<std::optional<std::int64_t>>();
  o.window = integer("window");
  o.window_bytes = integer("window_bytes");
  BT_REQUIRE(
      o.window_bytes >= 0,
      fmt::format("etrace_grad: window_bytes must be >= 0, got {}", o.window_bytes));
  o.carry_traces = get("carry_traces").cast<bool>();
  o.weights = get("weights").cast<std::vector<std::string>>();
  o.reduction = reduction_of(text("reduction"));
  o.loss_output = loss_output_of(text("loss_output"));
  o.progress = progress_of(get("progress"));
  if (const py::object sink = get("loss_sink"); !sink.is_none()) {
    if (!PyCallable_Check(sink.ptr()))
      throw UserError(ErrorKind::type,
                      fmt::format("etrace_grad: loss_sink must be a function (t, loss), "
                                  "got {}",
                                  py::repr(sink).cast<std::string>()));
    const auto held = keep(sink);
    o.loss_sink = [held](std::int64_t t, double loss) {
      py::gil_scoped_acquire gil;
      (*held)(t, loss);
    };
  }
  return o;
}

std::vector<Value> values_of(const std::vector<Array>& arrays) {
  return {arrays.begin(), arrays.end()};
}

py::tuple result_of(const GradResult& r, const Tree& aux) {
  py::object more = py::none();
  if (aux.num_leaves() == r.aux.size() && !r.aux.empty())
    more = unflatten(aux, values_of(r.aux));
  return py::make_tuple(r.grads, r.losses, more, r.steps);
}

}  // namespace

std::function<bool(std::int64_t, std::int64_t)> progress_of(py::handle watcher,
                                                            std::int64_t first) {
  auto signals = std::make_shared<SignalCheck>();
  if (watcher.is_none())
    return [signals](std::int64_t, std::int64_t) { return (*signals)(), true; };
  const auto held = keep(py::reinterpret_borrow<py::object>(watcher));
  const bool is_bar = py::hasattr(watcher, "update");
  BT_REQUIRE_KIND(is_bar || PyCallable_Check(watcher.ptr()) != 0, ErrorKind::type,
                  fmt::format("progress must be a function (done, total) or have "
                              "update(n), got {}",
                              py::repr(watcher).cast<std::string>()));
  auto last = std::make_shared<std::int64_t>(first);
  return [=](std::int64_t done, std::int64_t total) {
    py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (is_bar) {
      held->attr("update")(done - *last);
      *last = done;
      return true;
    }
    const py::object go_on = (*held)(done, total);
    return go_on.is_none() || go_on.cast<bool>();
  };
}

void SignalCheck::operator()() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(20)) return;
  last_ = now;
  py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

namespace {

// The loss a function of Python returned.
Value loss_value(py::handle h) {
  const bool is_pair = py::isinstance<py::tuple>(h) || py::isinstance<py::list>(h);
  BT_REQUIRE_KIND(!h.is_none() && !is_pair, ErrorKind::type,
                  fmt::format("the loss function must return a scalar, got {}{}",
                              py::type::of(h).attr("__name__").cast<std::string>(),
                              is_pair ? "; for (loss, aux) give has_aux=True" : ""));
  return to_value(h);
}

}  // namespace

TracedFn PyLearner::traced(const py::object& f, const Tree& args, bool has_aux,
                           Tree& aux) const {
  return [&f, &args, has_aux, &aux, floats = dtype()](const Values& in) {
    py::gil_scoped_acquire gil;
    const FloatsAs width(floats);
    const py::object out = f(*py::tuple(unflatten(args, in)));
    if (!has_aux) return LossResult{loss_value(out), {}};
    const bool is_pair = py::isinstance<py::tuple>(out) || py::isinstance<py::list>(out);
    if (!is_pair || py::len(out) != 2)
      throw UserError(ErrorKind::type,
                      "with has_aux=True the loss function must return (loss, aux)");
    const auto pair = py::reinterpret_borrow<py::sequence>(out);
    LossResult r{loss_value(py::object(pair[0])), {}};
    aux = flatten(py::object(pair[1]), r.results);
    return r;
  };
}

std::vector<Array> step_arrays(const py::tuple& args) {
  std::vector<Array> out;
  out.reserve(args.size());
  for (py::handle h : args) {
    if (const Value* v = value_in(h); v != nullptr && v->is_concrete())
      out.push_back(v->array());
    else if (py::isinstance<py::array>(h))
      out.push_back(to_array(h));
    else
      break;
  }
  if (out.size() == args.size()) return out;
  std::vector<Value> leaves;
  flatten(args, leaves);
  return arrays_of(leaves);
}

PyLearner::PyLearner(const py::object& model, const Algorithm& algorithm,
                     const py::args& examples, const LearnerOptions& options)
    : model_object_(model),
      model_(module_of(model)),
      learner_(compile_model(*model_, algorithm, examples,
                             with_default_dtype(options, *model_))) {}

PyLearner::PyLearner(py::object model, std::shared_ptr<Module> module,
                     std::shared_ptr<Learner> learner)
    : model_object_(std::move(model)),
      model_(std::move(module)),
      learner_(std::move(learner)) {}

Tree PyLearner::read(py::handle given, std::vector<Value>& leaves) const {
  const FloatsAs width(dtype());
  return flatten(given, leaves);
}

py::object PyLearner::call_modulated(const py::object& modulator, const py::args& args) {
  check_model("update");
  const FloatsAs width(dtype());
  std::vector<Value> in;
  flatten(args, in);
  return restore_outputs(*model_, learner_->update(in, to_value(modulator)));
}

py::tuple PyLearner::modulated_grad(const py::object& modulator, const py::args& args) {
  check_model("modulated_grad");
  const FloatsAs width(dtype());
  const std::vector<Array> arrays = step_arrays(args);
  const Array m = to_array(modulator);
  StepGradient g;
  {
    py::gil_scoped_release release;
    g = learner_->modulated_grad(arrays, m);
  }
  return py::make_tuple(restore_outputs(*model_, {g.results.begin(), g.results.end()}),
                        *g.gradients);
}

namespace {

bool is_symbolic(const Value& v) { return !v.is_concrete(); }

bool is_concrete_array(py::handle h) {
  if (const Value* v = value_in(h)) return v->is_concrete();
  return py::isinstance<py::array>(h);
}

}  // namespace

py::object PyLearner::call(const py::tuple& args) {
  const bool recording = RecordingScope::innermost() != nullptr;
  if (!recording && std::all_of(args.begin(), args.end(), is_concrete_array))
    return step(args);
  check_model("learner");
  std::vector<Value> in;
  read(args, in);
  if (recording || std::any_of(in.begin(), in.end(), is_symbolic))
    return restore_outputs(*model_, (*learner_)(in));
  return step(args);
}

template <class F>
void PyLearner::run_step(const char* caller, StepRoom& room, const py::tuple& args,
                         const F& run) {
  check_model(caller);
  const FloatsAs width(dtype());
  {
    const auto mine = learner_->claim(caller);
    if (room.take(args)) {
      struct GiveBack {
        StepRoom& room;
        ~GiveBack() { room.give_back(); }
      } const after{room};
      py::gil_scoped_release release;
      return run(room.arrays());
    }
  }
  const std::vector<Array> arrays = step_arrays(args);
  py::gil_scoped_release release;
  run(arrays);
}

py::object PyLearner::step(const py::tuple& args) {
  std::vector<Array> out;
  run_step("learner.step", step_room_, args, [&](const std::vector<Array>& arrays) {
    const auto mine = learner_->claim("learner.step");  // what it gives is the learner's
    const std::span<const Array> results = learner_->step(arrays);
    out.assign(results.begin(), results.end());
  });
  return restore_outputs(*model_, values_of(out));
}

StepGradient PyLearner::step_grad(LossHandle& loss, double weight,
                                  const py::tuple& args) {
  StepGradient out;
  run_step("step_grad", grad_room_, args, [&](const std::vector<Array>& arrays) {
    out = learner_->step_grad(arrays, loss, weight);
  });
  return out;
}

StepGradient PyLearner::step_update(LossHandle& loss, Optimizer& optimizer, double weight,
                                    const py::tuple& args) {
  StepGradient out;
  run_step("step_update", grad_room_, args, [&](const std::vector<Array>& arrays) {
    out = learner_->step_update(arrays, loss, optimizer, weight);
  });
  return out;
}

py::object PyLearner::call_window(const py::args& args, const std::vector<bool>& multi) {
  check_model("learner");
  MultiStepData data;
  std::vector<bool> is_multi;
  std::int64_t steps = 0;
  for (std::size_t i = 0; i < args.size(); ++i) {
    read(args[i], data.values);
    is_multi.resize(data.values.size(), multi.at(i));
  }
  for (std::size_t i = 0; i < is_multi.size(); ++i)
    if (is_multi[i] && data.values[i].rank() > 0) steps = data.values[i].dim(0);
  for (std::size_t i = 0; i < is_multi.size(); ++i) {
    if (is_multi[i]) continue;
    Shape shape = data.values[i].shape();
    shape.insert(shape.begin(), steps);
    data.values[i] = broadcast_to(data.values[i], shape);
  }
  return restore_outputs(*model_, (*learner_)(data));
}

// None: without a loss, which modulators allow.
TracedFn PyLearner::loss_of(const py::object& step_fn, const Tree& args,
                            const py::dict& options, Tree& aux) const {
  if (step_fn.is_none()) return {};
  return traced(step_fn, args, py::object(options["has_aux"]).cast<bool>(), aux);
}

py::tuple PyLearner::etrace_grad(const py::args& sequences, const py::object& step_fn,
                                 const py::dict& options) {
  check_model("etrace_grad");
  std::vector<Value> leaves;
  const Tree args = read(sequences, leaves);
  const std::vector<Array> arrays = arrays_of(leaves);
  const GradOptions o = grad_options(options, dtype());
  Tree aux;
  const TracedFn loss = loss_of(step_fn, args, options, aux);
  GradResult r;
  {
    py::gil_scoped_release release;
    const auto mine = learner_->claim("etrace_grad");
    r = learner_->etrace_grad(arrays, loss, o);
  }
  return result_of(r, aux);
}

py::tuple PyLearner::etrace_grad_from(const py::function& at, std::int64_t steps,
                                      const py::object& step_fn,
                                      const py::dict& options) {
  check_model("etrace_grad");
  PySource source("etrace_grad", at, dtype());
  const GradOptions o = grad_options(options, dtype());
  Tree aux;
  const TracedFn loss = loss_of(step_fn, source.args(), options, aux);
  GradResult r;
  {
    py::gil_scoped_release release;
    const auto mine = learner_->claim("etrace_grad");
    r = learner_->etrace_grad({steps, std::ref(source)}, loss, o);
  }
  return result_of(r, aux);
}

PyPrepared::PyPrepared(PyLearner& learner, py::object step_fn, const py::dict& options,
                       const py::args& sequences)
    : learner_(learner),
      step_fn_(std::move(step_fn)),
      args_(learner.read(sequences, examples_)),
      prepared_(learner.learner().prepare(learner.loss_of(step_fn_, args_, options, aux_),
                                          arrays_of(examples_),
                                          grad_options(options, learner.dtype()))) {
  learner_.check_model("prepare");
  examples_.clear();
}

py::tuple PyPrepared::grad(const py::args& sequences, const py::object& mask,
                           const py::object& modulators) {
  learner_.check_model("PreparedGrad.grad");
  const FloatsAs width(learner_.dtype());
  if (!mask.is_none()) prepared_.set_mask(to_array(mask));
  if (!modulators.is_none()) prepared_.set_modulators(to_array(modulators));
  const std::vector<Array> arrays = step_arrays(sequences);
  GradResult r;
  {
    py::gil_scoped_release release;
    r = prepared_.grad(arrays);
  }
  return result_of(r, aux_);
}

CertificateData PyLearner::certificate(const py::args& sequences,
                                       const py::function& step_fn, std::int64_t window) {
  check_model("certificate");
  std::vector<Value> leaves;
  const Tree args = read(sequences, leaves);
  const std::vector<Array> arrays = arrays_of(leaves);
  Tree aux;
  const TracedFn loss = traced(step_fn, args, false, aux);
  py::gil_scoped_release release;
  const auto mine = learner_->claim("certificate");
  return learner_->certificate(arrays, loss, window);
}

}  // namespace braintrace::python
