// SPDX-License-Identifier: Apache-2.0
// Tasks and readers of data files.
#include "convert.h"
#include "reader.h"

#include "braintrace/train/csv.h"
#include "braintrace/train/events.h"
#include "braintrace/train/npz.h"
#include "braintrace/train/spike_hdf5.h"
#include "braintrace/train/task_settings.h"

namespace braintrace::python {
namespace {

using namespace py::literals;

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
          "batch"_a, "(loss, accuracy or None) of the best constant.")
      .def("__repr__", [](const Task& t) {
        return fmt::format("Task({}, steps={}, features={}, outputs={})", t.name(),
                           t.shape().steps, t.shape().features, t.shape().outputs);
      });
  py::module_ tasks = m.def_submodule("tasks", "Generated data for sequence learning.");
  for (const std::string& name : task_names())
    tasks.def(
        name.c_str(),
        [name](const py::args& a, const py::kwargs& k) {
          Reader r(name, a, k);
          return read_task(name, r);
        },
        fmt::format("The {} task: {}, seed.\n\n>>> bt.tasks.{}(seed=1).name\n'{}'", name,
                    fmt::join(task_setting_names(name), ", "), name, name)
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
