// SPDX-License-Identifier: Apache-2.0
#pragma once
// A learner together with the Python model it was compiled from. Programs run without the
// GIL; functions written in Python get it back while they are traced.
#include <chrono>

#include "convert.h"
#include "py_module.h"
#include "step_room.h"

#include "braintrace/train/prepared_grad.h"

namespace braintrace::python {

class PyLearner {
 public:
  PyLearner(const py::object& model, const Algorithm& algorithm, const py::args& examples,
            const LearnerOptions& options);
  // On a learner that something else made from the model.
  PyLearner(py::object model, std::shared_ptr<Module> module,
            std::shared_ptr<Learner> learner);

  // One step, or inside a loss function the compiled step.
  py::object call(const py::tuple& args);
  py::object call_modulated(const py::object& modulator, const py::args& args);
  // (outputs, gradients) without a loss
  py::tuple modulated_grad(const py::object& modulator, const py::args& args);
  // Values have a leading time axis where `multi` says so; the others are repeated.
  py::object call_window(const py::args& args, const std::vector<bool>& multi);
  py::object step(const py::tuple& args);
  StepGradient step_update(LossHandle& loss, Optimizer& optimizer, double weight,
                           const py::tuple& args);
  StepGradient step_grad(LossHandle& loss, double weight, const py::tuple& args);

  // (grads, losses, aux, steps)
  py::tuple etrace_grad(const py::args& sequences, const py::object& step_fn,
                        const py::dict& options);
  TracedFn loss_of(const py::object& step_fn, const Tree& args, const py::dict& options,
                   Tree& aux) const;
  // A function (values...) -> loss or (loss, aux) as the library calls it. `args` holds
  // the structure of its arguments; that of aux is left in `aux`.
  TracedFn traced(const py::object& f, const Tree& args, bool has_aux, Tree& aux) const;
  // Arguments of step t are what `at(t)` returns: a tuple, or the only one.
  py::tuple etrace_grad_from(const py::function& at, std::int64_t steps,
                             const py::object& step_fn, const py::dict& options);
  CertificateData certificate(const py::args& sequences, const py::function& step_fn,
                              std::int64_t window);
  py::object etrace_evolve(const py::args& sequences,
                           const std::optional<std::int64_t>& chunk_size,
                           bool return_outputs);
  void etrace_evolve_from(const py::function& at, std::int64_t steps);

  // Outputs of the model as its `update` returns them.
  py::object outputs(const std::vector<Value>& leaves) const {
    return restore_outputs(*model_, leaves);
  }
  // UserError when the model's states are no longer those that were compiled.
  void check_model(const char* who) { require_same_states(*model_, who); }
  Learner& learner() { return *learner_; }
  const Learner& learner() const { return *learner_; }
  const py::object& model() const { return model_object_; }
  // Of its states: f64 keeps the digits of what it is given (FloatsAs).
  DType dtype() const { return learner_->rule().scalar_dtype(); }
  Tree read(py::handle given, std::vector<Value>& leaves) const;
  template <class T>
  T read_as(const py::object& given) const {
    const FloatsAs width(dtype());
    return given.cast<T>();
  }

 private:
  py::object model_object_;
  std::shared_ptr<Module> model_;
  std::shared_ptr<Learner> learner_;
  StepRoom step_room_, grad_room_;

  // Runs with the arguments as arrays, without the GIL.
  template <class F>
  void run_step(const char* caller, StepRoom& room, const py::tuple& args, const F& run);
};

// Options of compile() from keywords, and their names.
LearnerOptions learner_options(const py::dict& given);
// With the type of a model that has none yet (py_module.h).
LearnerOptions with_default_dtype(LearnerOptions options, const Module& m);
std::vector<std::string> learner_option_names();

// What a caller watches a long run with: f(done, total), which stops the run by returning
// False, or an object with update(n). Ctrl-C is seen either way. `first`: done before.
std::function<bool(std::int64_t, std::int64_t)> progress_of(py::handle watcher,
                                                            std::int64_t first = 0);

// etrace_grad with a loss function that was traced once. Stays where it is: the function
// refers to its parts.
class PyPrepared {
 public:
  PyPrepared(PyLearner& learner, py::object step_fn, const py::dict& options,
             const py::args& sequences);
  PyPrepared(const PyPrepared&) = delete;

  // (grads, losses, aux, steps); None: mask and modulators stay as they are.
  py::tuple grad(const py::args& sequences, const py::object& mask,
                 const py::object& modulators);

 private:
  PyLearner& learner_;
  py::object step_fn_;
  std::vector<Value> examples_;
  Tree args_, aux_;
  PreparedGrad prepared_;
};

// Arguments of one step; arrays are taken as they are.
std::vector<Array> step_arrays(const py::tuple& args);

// Turns a pending Ctrl-C into KeyboardInterrupt; asks Python at most every 20 ms.
class SignalCheck {
 public:
  void operator()();

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace braintrace::python
