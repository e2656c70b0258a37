// SPDX-License-Identifier: Apache-2.0
// Training runs: a loop that can be watched, stopped and taken up again, and what
// happened.
#include "made.h"
#include "py_learner.h"
#include "records.h"
#include <fmt/format.h>

#include "braintrace/algo/memory_plan.h"
#include "braintrace/train/run_log_json.h"
#include "braintrace/train/training_run.h"
#include "braintrace/view/html.h"

namespace braintrace::python {
namespace {

using namespace py::literals;
using PyTask = Recorded<Task>;

// Points of a growing log: read one by one, so that a callback after every update costs
// the same at the end as at the beginning.
struct Points {
  std::shared_ptr<RunLog> log;
  std::vector<RunPoint> RunLog::*which;
  const std::vector<RunPoint>& all() const { return (*log).*which; }
};

auto points(std::vector<RunPoint> RunLog::*which) {
  return [which](const std::shared_ptr<RunLog>& log) { return Points{log, which}; };
}

class PyRun {
 public:
  PyRun(const PyTask& task, const py::object& model, const Algorithm& algorithm,
        const Optimizer& optimizer, std::int64_t batch, const std::string& update,
        const py::dict& options)
      : model_object_(model), model_(module_of(model)) {
    BT_REQUIRE(optimizer.num_updates() == 0,
               fmt::format("TrainingRun: the optimiser must be new, this one has made {} "
                           "updates",
                           optimizer.num_updates()));
    TrainingOptions o{.batch = batch,
                      .update = update_at_from_string(update),
                      .optimizer = optimizer.options(),
                      .learner = with_default_dtype(learner_options(options), *model_)};
    run_ = std::make_shared<TrainingRun>(task, *model_, algorithm, optimizer.rule(), o);
  }

  std::unique_ptr<PyLearner> learner() const {
    return std::make_unique<PyLearner>(model_object_, model_,
                                       std::shared_ptr<Learner>(run_, &run_->learner()));
  }
  std::shared_ptr<RunLog> log() const { return {run_, &run_->log()}; }
  std::shared_ptr<Optimizer> optimizer() const { return {run_, &run_->optimizer()}; }
  void check_model(const char* who) { require_same_states(*model_, who); }
  TrainingRun& run() { return *run_; }
  const TrainingRun& run() const { return *run_; }

  double update() {
    check_model("TrainingRun.update");
    py::gil_scoped_release release;
    const auto mine = run_->learner().claim("TrainingRun.update");
    return run_->update();
  }

  py::tuple gradient(const TaskBatch& b) {
    check_model("TrainingRun.gradient");
    GradResult r;
    {
      py::gil_scoped_release release;
      const auto mine = run_->learner().claim("TrainingRun.gradient");
      r = run_->gradient(b);
    }
    return py::make_tuple(r.grads, r.losses.at(0));
  }

  bool train(TrainingLength length, const py::object& on_update,
             const py::object& on_evaluation, const py::object& progress) {
    check_model("TrainingRun.train");
    const auto watch = progress_of(progress, run_->updates());
    const auto note = keep(on_update), note_evaluation = keep(on_evaluation);
    length.on_update = [&](std::int64_t done, const RunLog&) {
      const bool go_on = watch(done, length.updates);
      py::gil_scoped_acquire gil;
      if (note->is_none()) return go_on;
      const py::object answer = (*note)(done, log());
      return go_on && (answer.is_none() || answer.cast<bool>());
    };
    if (!on_evaluation.is_none())
      length.on_evaluation = [&](const RunLog&) {
        py::gil_scoped_acquire gil;
        (*note_evaluation)(log());
      };
    py::gil_scoped_release release;
    const auto mine = run_->learner().claim("TrainingRun.train");
    return run_->train(length);
  }

  CertificateData certificate(std::int64_t window) {
    check_model("TrainingRun.certificate");
    py::gil_scoped_release release;
    const auto mine = run_->learner().claim("TrainingRun.certificate");
    return run_->certificate(window);
  }

  std::string page(const std::string& title, bool with_certificate) {
    const Learner& l = run_->learner();
    const bool whole = l.algorithm().engine == Engine::bptt;
    HtmlOptions o{.title = title, .algorithm = l.algorithm(), .log = run_->log()};
    o.memory = {memory_plan(l.graph(), l.algorithm(),
                            {.window = whole ? run_->task().shape().steps : 0})};
    if (with_certificate) o.certificate = certificate(1);
    return to_html(l.graph(), o);
  }

 private:
  py::object model_object_;
  std::shared_ptr<Module> model_;
  std::shared_ptr<TrainingRun> run_;
};

void def_points(py::module_& m) {
  auto point =
      py::class_<RunPoint>(
          m, "RunPoint",
          "What was measured after some updates.\n\n"
          ">>> net = bt.nn.Sequential(bt.nn.GRUCell(1, 4), bt.nn.Linear(4, 1))\n"
          ">>> run = bt.TrainingRun(bt.tasks.integrator(), net, 'd_rtrl', bt.Adam())\n"
          ">>> _ = run.train(2)\n"
          ">>> run.log.training[0].update\n1")
          .def_readonly("update", &RunPoint::update)
          .def_readonly("loss", &RunPoint::loss)
          .def_readonly("accuracy", &RunPoint::accuracy)
          .def_readonly("firing_rate", &RunPoint::firing_rate)
          .def("__repr__", [](const RunPoint& p) {
            return fmt::format("RunPoint(update={}, loss={})", p.update, p.loss);
          });
  def_record(point, &RunPoint::update, &RunPoint::loss, &RunPoint::accuracy,
             &RunPoint::firing_rate);
  py::class_<Points>(
      m, "RunPoints",
      "Points of a log, oldest first.\n\n"
      ">>> net = bt.nn.Sequential(bt.nn.GRUCell(1, 4), bt.nn.Linear(4, 1))\n"
      ">>> run = bt.TrainingRun(bt.tasks.integrator(), net, 'd_rtrl', bt.Adam())\n"
      ">>> _ = run.train(2)\n"
      ">>> [p.update for p in run.log.training]\n[1, 2]")
      .def("__len__", [](const Points& p) { return p.all().size(); })
      .def("__getitem__", [](const Points& p, std::int64_t i) {
        const auto n = static_cast<std::int64_t>(p.all().size());
        if (i < -n || i >= n) throw py::index_error("no such point");
        return p.all()[static_cast<std::size_t>(i < 0 ? i + n : i)];
      });
  auto raster =
      py::class_<SpikeRaster>(
          m, "SpikeRaster",
          "(step, unit) of every spike of a population.\n\n"
          ">>> net = bt.nn.Sequential(bt.nn.Linear(4, 6), bt.nn.LIF(6), bt.nn.Linear(6, "
          "2))\n"
          ">>> task = bt.tasks.delayed_match(channels=4)\n"
          ">>> found = bt.evaluate(task, bt.nn.init_all_states(net), samples=8, "
          "raster_units=6)\n"
          ">>> found.rasters[0].units\n6")
          .def_readonly("population", &SpikeRaster::population)
          .def_readonly("steps", &SpikeRaster::steps)
          .def_readonly("units", &SpikeRaster::units)
          .def_readonly("spikes", &SpikeRaster::spikes);
  def_record(raster, &SpikeRaster::population, &SpikeRaster::steps, &SpikeRaster::units,
             &SpikeRaster::spikes);
}

void def_log(py::module_& m) {
  auto log =
      py::class_<RunLog, std::shared_ptr<RunLog>>(
          m, "RunLog",
          "What happened in a run; grows while it trains.\n\n"
          ">>> net = bt.nn.Sequential(bt.nn.GRUCell(1, 4), bt.nn.Linear(4, 1))\n"
          ">>> run = bt.TrainingRun(bt.tasks.integrator(), net, 'd_rtrl', bt.Adam())\n"
          ">>> _ = run.train(2)\n"
          ">>> run.log\nRunLog(2 updates, 0 evaluations)")
          .def_property_readonly("training", points(&RunLog::training), "One per update.")
          .def_property_readonly("evaluations", points(&RunLog::evaluations),
                                 "On data that was not trained on.")
          .def_readonly("constant_loss", &RunLog::constant_loss)
          .def_readonly("constant_accuracy", &RunLog::constant_accuracy)
          .def_readonly("rasters", &RunLog::rasters)
          .def_readonly("seconds", &RunLog::seconds)
          .def_readonly("time_steps", &RunLog::time_steps)
          .def("to_json", [](const RunLog& l) { return run_log_to_json(l); })
          .def("__repr__", [](const RunLog& l) {
            return fmt::format("RunLog({} updates, {} evaluations)", l.training.size(),
                               l.evaluations.size());
          });
  def_record(log, &RunLog::facts, &RunLog::training, &RunLog::evaluations,
             &RunLog::constant_loss, &RunLog::constant_accuracy, &RunLog::rasters,
             &RunLog::seconds, &RunLog::time_steps);
}

void def_evaluate(py::module_& m) {
  py::class_<Evaluation>(
      m, "Evaluation",
      "How well a model does on a task; made by evaluate.\n\n"
      ">>> net = bt.nn.Sequential(bt.nn.GRUCell(1, 4), bt.nn.Linear(4, 1))\n"
      ">>> found = bt.evaluate(bt.tasks.integrator(), bt.nn.init_all_states(net))\n"
      ">>> found.loss > 0, found.constant_loss > 0\n(True, True)")
      .def_readonly("loss", &Evaluation::loss)
      .def_readonly("accuracy", &Evaluation::accuracy)
      .def_readonly("firing_rate", &Evaluation::firing_rate)
      .def_readonly("rasters", &Evaluation::rasters)
      .def_property_readonly("constant_loss",
                             [](const Evaluation& e) { return e.constant.loss; })
      .def_property_readonly("constant_accuracy",
                             [](const Evaluation& e) { return e.constant.accuracy; })
      .def("__repr__", [](const Evaluation& e) {
        return fmt::format("Evaluation(loss={}, constant_loss={})", e.loss,
                           e.constant.loss);
      });
  m.def(
      "evaluate",
      [](const PyTask& task, const py::object& model, std::int64_t samples,
         std::int64_t first, std::int64_t batch, bool test, std::int64_t raster_units) {
        const auto module = module_of(model);
        const EvaluateOptions o{.split = test ? Split::test : Split::train,
                                .first = first,
                                .samples = samples,
                                .batch = batch,
                                .raster_units = raster_units,
                                .pause = SignalCheck()};
        py::gil_scoped_release release;
        return evaluate(task, *module, o);
      },
      "task"_a, "model"_a, "samples"_a = 256, "first"_a = 0, "batch"_a = 64,
      "test"_a = true, "raster_units"_a = 0,
      "Loss, accuracy and firing rate of a model, without traces; beside them those of "
      "the "
      "best constant.\n\n"
      ">>> model = bt.nn.init_all_states(bt.nn.Sequential(bt.nn.GRUCell(1, 4), "
      "bt.nn.Linear(4, 1)))\n"
      ">>> bt.evaluate(bt.tasks.integrator(), model, samples=8).loss > 0\nTrue");
}

TrainingLength length_of(std::int64_t updates, std::int64_t evaluate_every,
                         std::int64_t samples, std::int64_t raster_units) {
  BT_REQUIRE(updates >= 0,
             fmt::format("TrainingRun.train: updates must be >= 0, got {}", updates));
  TrainingLength l{.updates = updates, .evaluate_every = evaluate_every};
  l.evaluation.samples = samples;
  l.evaluation.raster_units = raster_units;
  return l;
}

}  // namespace

void init_run(py::module_& m) {
  def_points(m);
  def_log(m);
  def_evaluate(m);
  py::class_<PyRun>(m, "_TrainingRun")
      .def(py::init<const PyTask&, const py::object&, const Algorithm&, const Optimizer&,
                    std::int64_t, const std::string&, const py::dict&>(),
           "task"_a, "model"_a, "algorithm"_a, "optimizer"_a, "batch"_a, "update"_a,
           "options"_a)
      .def_property_readonly("learner", &PyRun::learner)
      .def_property_readonly("optimizer", &PyRun::optimizer)
      .def_property_readonly("log", &PyRun::log)
      .def_property_readonly("updates", [](const PyRun& r) { return r.run().updates(); })
      .def("update", &PyRun::update)
      .def("gradient", &PyRun::gradient)
      .def(
          "train",
          [](PyRun& r, std::int64_t updates, std::int64_t every, std::int64_t samples,
             std::int64_t raster_units, const py::object& on_update,
             const py::object& on_evaluation, const py::object& progress) {
            return r.train(length_of(updates, every, samples, raster_units), on_update,
                           on_evaluation, progress);
          },
          "updates"_a, "evaluate_every"_a, "samples"_a, "raster_units"_a, "on_update"_a,
          "on_evaluation"_a, "progress"_a)
      .def("certificate", &PyRun::certificate)
      .def("page", &PyRun::page)
      .def("checkpoint",
           [](PyRun& r) {
             r.check_model("TrainingRun.checkpoint");
             return r.run().checkpoint();
           })
      .def("restore", [](PyRun& r, const Checkpoint& c, const std::string& log) {
        r.check_model("TrainingRun.restore");
        r.run().restore(c);
        r.run().log() = log.empty() ? RunLog{} : run_log_from_json(log);
      });
}

}  // namespace braintrace::python
