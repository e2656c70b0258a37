// SPDX-License-Identifier: Apache-2.0
// Tasks and readers of data files.
#include "convert.h"
#include "reader.h"

#include "braintrace/train/csv.h"
#include "braintrace/train/events.h"
#include "braintrace/train/npz.h"
#include "braintrace/train/spike_hdf5.h"
#include "braintrace/train/tasks.h"

namespace braintrace::python {
namespace {

using namespace py::literals;

void read_seed(Reader& r, TaskOptions& o) {
  std::int64_t seed = 0;
  r.take("seed", seed);
  o.seed = static_cast<std::uint64_t>(seed);
  r.done();
}

Task copying(Reader& r) {
  CopyingOptions o;
  r.take("symbols", o.symbols);
  r.take("length", o.length);
  r.take("delay", o.delay);
  read_seed(r, o.task);
  return copying_task(o);
}

Task integrator(Reader& r) {
  IntegratorOptions o;
  r.take("steps", o.steps);
  r.take("dt", o.dt);
  r.take("bias", o.bias);
  r.take("noise", o.noise);
  read_seed(r, o.task);
  return integrator_task(o);
}

Task delayed_match(Reader& r) {
  DelayedMatchOptions o;
  r.take("channels", o.channels);
  r.take("steps", o.steps);
  r.take("rate", o.rate);
  r.take("background", o.background);
  read_seed(r, o.task);
  return delayed_match_task(o);
}

Task adding(Reader& r) {
  AddingOptions o;
  r.take("steps", o.steps);
  read_seed(r, o.task);
  return adding_task(o);
}

Task digits(Reader& r) {
  DigitsOptions o;
  std::string scan = "rows";
  r.take("scan", scan);
  r.take("noise", o.noise);
  read_seed(r, o.task);
  BT_REQUIRE(scan == "rows" || scan == "pixels",
             "digits: scan must be rows or pixels, got " + scan);
  if (scan == "pixels") o.scan = DigitsOptions::Scan::pixels;
  return digits_task(o);
}

Task evidence(Reader& r) {
  EvidenceOptions o;
  r.take("cues", o.cues);
  r.take("cue_steps", o.cue_steps);
  r.take("gap_steps", o.gap_steps);
  r.take("delay_steps", o.delay_steps);
  r.take("recall_steps", o.recall_steps);
  r.take("group", o.group);
  r.take("rate", o.rate);
  r.take("noise_rate", o.noise_rate);
  r.take("p_minor", o.p_minor);
  read_seed(r, o.task);
  return evidence_task(o);
}

Task pattern(Reader& r) {
  PatternOptions o;
  r.take("patterns", o.patterns);
  r.take("steps", o.steps);
  r.take("cue_steps", o.cue_steps);
  r.take("outputs", o.outputs);
  r.take("harmonics", o.harmonics);
  read_seed(r, o.task);
  return pattern_task(o);
}

Task text(Reader& r) {
  TextOptions o;
  r.take("text", o.text);
  r.take("steps", o.steps);
  read_seed(r, o.task);
  return text_task(o);
}

using MakeTask = Task (*)(Reader&);
const std::pair<const char*, MakeTask> kTasks[] = {{"copying", copying},
                                                   {"integrator", integrator},
                                                   {"delayed_match", delayed_match},
                                                   {"adding", adding},
                                                   {"digits", digits},
                                                   {"evidence", evidence},
                                                   {"pattern", pattern},
                                                   {"text", text}};

void def_tasks(py::module_& m) {
  py::class_<TaskBatch>(m, "TaskBatch", "Samples: inputs, targets and what is scored.")
      .def_readonly("inputs", &TaskBatch::inputs)
      .def_readonly("targets", &TaskBatch::targets)
      .def_readonly("mask", &TaskBatch::mask);
  py::class_<Task>(m, "Task", "Generated data; the same numbers for the same seed.")
      .def_property_readonly("name", &Task::name)
      .def_property_readonly("loss",
                             [](const Task& t) {
                               return t.loss() == TaskLoss::mse ? "mse" : "softmax_xent";
                             })
      .def_property_readonly("steps", [](const Task& t) { return t.shape().steps; })
      .def_property_readonly("features", [](const Task& t) { return t.shape().features; })
      .def_property_readonly("outputs", [](const Task& t) { return t.shape().outputs; })
      .def_property_readonly("mask", &Task::mask)
      .def(
          "batch",
          [](const Task& t, std::int64_t count, std::int64_t first, bool test) {
            py::gil_scoped_release release;
            return t.batch(test ? Split::test : Split::train, first, count);
          },
          "count"_a, "first"_a = 0, "test"_a = false, "Samples first, first + 1, ...")
      .def(
          "baseline",
          [](const Task& t, const TaskBatch& b) {
            const Baseline base = constant_baseline(t, b);
            return py::make_tuple(base.loss, base.accuracy);
          },
          "batch"_a, "(loss, accuracy or None) of the best constant.");
  py::module_ tasks = m.def_submodule("tasks", "Generated data for sequence learning.");
  for (const auto& [name, make] : kTasks)
    tasks.def(
        name,
        [name = name, make = make](const py::args& a, const py::kwargs& k) {
          Reader r(name, a, k);
          return make(r);
        },
        fmt::format("The {} task.\n\n>>> bt.tasks.{}(seed=1).name\n'{}'", name, name,
                    name)
            .c_str());
  tasks.def("names", &task_names);
}

void def_readers(py::module_& m) {
  py::module_ data = m.def_submodule("data", "Readers of data files.");
  data.def("read_npy", &read_npy, "path"_a);
  data.def("read_npz", &read_npz, "path"_a);
  data.def(
      "read_csv",
      [](const std::string& path, const std::string& separator,
         const std::optional<bool>& header, const std::optional<double>& missing) {
        BT_REQUIRE(separator.size() == 1, "read_csv: separator must be one character");
        const CsvTable t = read_csv(path, {separator[0], header, missing});
        return py::make_tuple(t.header, t.values);
      },
      "path"_a, "separator"_a = ",", "header"_a = py::none(), "missing"_a = py::none(),
      "(header, values) of a table of numbers.");
  const auto events = [&data](const char* name, EventStream (*read)(const std::string&)) {
    data.def(
        name,
        [read](const std::string& path, std::int64_t steps, std::int64_t step_us,
               std::int64_t start_us, std::int32_t shrink) {
          return count_frames(read(path), {steps, step_us, start_us, shrink});
        },
        "path"_a, "steps"_a = 100, "step_us"_a = 1000, "start_us"_a = 0, "shrink"_a = 1,
        "Events per step, pixel and polarity.");
  };
  events("read_nmnist", read_nmnist);
  events("read_aedat", read_aedat);
  data.def("has_hdf5", &has_hdf5);
  data.def(
      "read_spike_trains",
      [](const std::string& path, std::int64_t first, std::int64_t limit,
         std::int64_t steps, std::int64_t units, double step) {
        py::list out;
        for (const SpikeTrain& t : read_spike_trains(path, first, limit))
          out.append(py::make_tuple(bin_spikes(t, {steps, units, step}), t.label));
        return out;
      },
      "path"_a, "first"_a = 0, "limit"_a = -1, "steps"_a = 100, "units"_a = 700,
      "step"_a = 0.01, "(spikes per step and unit, label) of SHD and SSC files.");
}

}  // namespace

void init_data(py::module_& m) {
  def_tasks(m);
  def_readers(m);
}

}  // namespace braintrace::python
