// SPDX-License-Identifier: Apache-2.0
// Tasks and readers of data files.
#include "convert.h"
#include "made.h"
#include "py_learner.h"
#include "reader.h"

#include "braintrace/ops/ops.h"
#include "braintrace/train/csv.h"
#include "braintrace/train/events.h"
#include "braintrace/train/npz.h"
#include "braintrace/train/spike_hdf5.h"
#include "braintrace/train/task_settings.h"

namespace braintrace::python {
namespace {

using namespace py::literals;
using PyTask = Recorded<Task>;

// The options of a task, read in their order, then the seed.
Task read_task(const std::string& name, Reader& r) {
  return with_task_options(name, [&](auto o, auto make) {
    for_each_option(o, [&](const char* key, auto& field) {
      if constexpr (std::is_same_v<decltype(field), DigitsOptions::Scan&>) {
        std::string scan = "rows";
        r.take(key, scan);
        field = digits_scan_from_string(scan);
      } else {
        r.take(key, field);
      }
    });
    std::int64_t seed = 0;
    r.take("seed", seed);
    r.done();
    o.task.seed = static_cast<std::uint64_t>(seed);
    return make(o);
  });
}

// Samples between two looks for Ctrl-C.
constexpr std::int64_t kSamplesAtOnce = 1024;

TaskBatch samples_of(const Task& task, Split split, std::int64_t first,
                     std::int64_t count) {
  Values inputs, targets;
  TaskBatch b;
  std::int64_t done = 0;
  do {
    {
      py::gil_scoped_release release;
      const std::int64_t left = count - done;
      b = task.batch(split, first + done, std::min(left, kSamplesAtOnce));
    }
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (count <= kSamplesAtOnce) return b;
    inputs.push_back(b.inputs);
    targets.push_back(b.targets);
    done += kSamplesAtOnce;
  } while (done < count);
  return {concat(inputs, 1).array(), concat(targets, 1).array(), b.mask};
}

void def_task(py::module_& m) {
  py::class_<TaskBatch>(m, "TaskBatch",
                        "Samples: inputs, targets and what is scored.\n\n"
                        ">>> bt.tasks.copying().batch(2).inputs.shape\n(40, 2, 10)")
      .def_readonly("inputs", &TaskBatch::inputs)
      .def_readonly("targets", &TaskBatch::targets)
      .def_readonly("mask", &TaskBatch::mask)
      .def(py::pickle(
          [](const TaskBatch& b) { return py::make_tuple(b.inputs, b.targets, b.mask); },
          [](const py::tuple& t) {
            BT_REQUIRE(t.size() == 3, "TaskBatch: a pickled batch has 3 fields");
            return TaskBatch{t[0].cast<Array>(), t[1].cast<Array>(),
                             t[2].cast<std::vector<double>>()};
          }));
  py::class_<PyTask>(m, "Task",
                     "Generated data; the same numbers for the same seed.\n\n"
                     ">>> bt.tasks.copying(delay=5)\n"
                     "Task(copying, steps=25, features=10, outputs=10)")
      .def_property_readonly("name", &PyTask::name)
      .def_property_readonly("loss",
                             [](const PyTask& t) {
                               return t.loss() == TaskLoss::mse ? "mse" : "softmax_xent";
                             })
      .def_property_readonly("steps", [](const PyTask& t) { return t.shape().steps; })
      .def_property_readonly("features",
                             [](const PyTask& t) { return t.shape().features; })
      .def_property_readonly("outputs", [](const PyTask& t) { return t.shape().outputs; })
      .def_property_readonly("mask", &PyTask::mask)
      .def(
          "batch",
          [](const PyTask& t, std::int64_t count, std::int64_t first, bool test) {
            return samples_of(t, test ? Split::test : Split::train, first, count);
          },
          "count"_a, "first"_a = 0, "test"_a = false, "Samples first, first + 1, ...")
      .def(
          "baseline",
          [](const PyTask& t, const TaskBatch& b) {
            const Baseline base = [&] {
              py::gil_scoped_release release;
              return constant_baseline(t, b, SignalCheck());
            }();
            return py::make_tuple(base.loss, base.accuracy);
          },
          "batch"_a, "(loss, accuracy or None) of the best constant.")
      .def_property_readonly("_made", [](const PyTask& t) { return t.made.parts(); })
      .def("__repr__", [](const PyTask& t) {
        return fmt::format("Task({}, steps={}, features={}, outputs={})", t.name(),
                           t.shape().steps, t.shape().features, t.shape().outputs);
      });
}

void def_tasks(py::module_& m) {
  py::module_ tasks = m.def_submodule("tasks", "Generated data for sequence learning.");
  for (const std::string& name : task_names())
    tasks.def(
        name.c_str(),
        [name](const py::args& a, const py::kwargs& k) {
          Reader r(name, a, k);
          return PyTask{read_task(name, r), {"tasks." + name, a, k}};
        },
        fmt::format("The {} task: {}, seed.\n\n>>> bt.tasks.{}(seed=1).name\n'{}'", name,
                    fmt::join(task_setting_names(name), ", "), name, name)
            .c_str());
  tasks.def("names", &task_names,
            "The tasks.\n\n>>> 'copying' in bt.tasks.names()\nTrue");
}

void def_table_readers(py::module_& data) {
  data.def(
      "read_npy", [](const FileName& path) { return read_npy(path.bytes); }, "path"_a,
      "The array of a NumPy file.\n\n"
      ">>> import numpy\n"
      ">>> import os, tempfile\n"
      ">>> file = os.path.join(tempfile.mkdtemp(), 'a.npy')\n"
      ">>> numpy.save(file, numpy.ones(2, 'f4'))\n"
      ">>> bt.data.read_npy(file).tolist()\n[1.0, 1.0]");
  data.def(
      "read_npz", [](const FileName& path) { return read_npz(path.bytes); }, "path"_a,
      "The arrays of a NumPy archive by name.\n\n"
      ">>> import numpy\n"
      ">>> import os, tempfile\n"
      ">>> file = os.path.join(tempfile.mkdtemp(), 'a.npz')\n"
      ">>> numpy.savez(file, x=numpy.ones(2, 'f4'))\n"
      ">>> bt.data.read_npz(file)['x'].tolist()\n[1.0, 1.0]");
  data.def(
      "read_csv",
      [](const FileName& path, const std::string& separator,
         const std::optional<bool>& header, const std::optional<double>& missing) {
        BT_REQUIRE(separator.size() == 1, "read_csv: separator must be one character");
        const CsvTable t = read_csv(path.bytes, {separator[0], header, missing});
        return py::make_tuple(t.header, t.values);
      },
      "path"_a, "separator"_a = ",", "header"_a = py::none(), "missing"_a = py::none(),
      "(header, values) of a table of numbers.\n\n"
      ">>> import os, tempfile\n"
      ">>> file = os.path.join(tempfile.mkdtemp(), 'a.csv')\n"
      ">>> _ = open(file, 'w').write('t,x\\n0,1\\n1,4\\n')\n"
      ">>> header, values = bt.data.read_csv(file)\n"
      ">>> header, values.tolist()\n(['t', 'x'], [[0.0, 1.0], [1.0, 4.0]])");
}

void def_event_readers(py::module_& data) {
  const auto events = [&data](const char* name, EventStream (*read)(const std::string&),
                              const char* bytes) {
    data.def(
        name,
        [read](const FileName& path, std::int64_t steps, std::int64_t step_us,
               std::int64_t start_us, std::int32_t shrink) {
          return count_frames(read(path.bytes), {steps, step_us, start_us, shrink});
        },
        "path"_a, "steps"_a = 100, "step_us"_a = 1000, "start_us"_a = 0, "shrink"_a = 1,
        fmt::format("Events per step, pixel and polarity (off, on).\n\n"
                    ">>> import os, tempfile\n"
                    ">>> file = os.path.join(tempfile.mkdtemp(), 'events')\n"
                    ">>> _ = open(file, 'wb').write({})  # one event: x 3, y 5, on\n"
                    ">>> frames = bt.data.{}(file, steps=10)\n"
                    ">>> float(frames[0, 5, 3, 1]), float(bt.sum(frames))\n(1.0, 1.0)",
                    bytes, name)
            .c_str());
  };
  events("read_nmnist", read_nmnist, "bytes([3, 5, 128, 0, 0])");
  events("read_aedat", read_aedat,
         "b'#!AER-DAT2.0\\r\\n' + bytes([0, 0, 5, 249, 0, 0, 0, 9])");
}

void def_spike_readers(py::module_& data) {
  data.def("has_hdf5", &has_hdf5,
           "Whether the library was built with HDF5, which read_spike_trains needs."
           "\n\n>>> bt.data.has_hdf5() in (True, False)\nTrue");
  data.def(
      "read_spike_trains",
      [](const FileName& path, std::int64_t first, std::int64_t limit, std::int64_t steps,
         std::int64_t units, double step) {
        py::list out;
        for (const SpikeTrain& t : read_spike_trains(path.bytes, first, limit))
          out.append(py::make_tuple(bin_spikes(t, {steps, units, step}), t.label));
        return out;
      },
      "path"_a, "first"_a = 0, "limit"_a = -1, "steps"_a = 100, "units"_a = 700,
      "step"_a = 0.01,
      "(spikes per step and unit, label) of every sample of SHD and SSC files.\n\n"
      ">>> try:\n"
      "...     samples = bt.data.read_spike_trains('shd_test.h5', limit=10)\n"
      "... except bt.UserError as error:\n"
      "...     print('the file is not here')\nthe file is not here");
}

}  // namespace

void init_data(py::module_& m) {
  def_task(m);
  def_tasks(m);
  py::module_ data = m.def_submodule("data", "Readers of data files.");
  def_table_readers(data);
  def_event_readers(data);
  def_spike_readers(data);
}

}  // namespace braintrace::python
