// SPDX-License-Identifier: Apache-2.0
// Learning rates as functions of a count.
#include "convert.h"
#include "schedules.h"

namespace braintrace::python {
namespace {

using namespace py::literals;

// What the library keeps of a schedule; the object is there for whoever asks later.
struct HeldRate {
  Schedule rate;  // empty: the object is a Python function
  std::shared_ptr<py::object> object;
  double operator()(std::int64_t n) const {
    if (rate) return rate(n);
    py::gil_scoped_acquire gil;
    return (*object)(n).cast<double>();
  }
};

template <class... A>
PySchedule recorded_schedule(Schedule rate, const char* name, const A&... args) {
  return {std::move(rate), {std::string("schedule.") + name, py::make_tuple(args...)}};
}

void def_falling(py::module_& s) {
  s.def(
      "step",
      [](double b, std::int64_t n, double g) {
        return recorded_schedule(schedule::step(b, n, g), "step", b, n, g);
      },
      "base"_a, "every"_a, "gamma"_a = 0.1,
      "base times gamma after every so many.\n\n>>> bt.schedule.step(1.0, 10, "
      "0.5)(20)\n0.25");
  s.def(
      "multistep",
      [](double b, const std::vector<std::int64_t>& n, double g) {
        return recorded_schedule(schedule::multistep(b, n, g), "multistep", b, n, g);
      },
      "base"_a, "milestones"_a, "gamma"_a = 0.1,
      "base times gamma at every milestone.\n\n>>> bt.schedule.multistep(1.0, [5, 9], "
      "0.5)(6)\n0.5");
  s.def(
      "exponential",
      [](double b, std::int64_t n, double r) {
        return recorded_schedule(schedule::exponential(b, n, r), "exponential", b, n, r);
      },
      "base"_a, "steps"_a, "rate"_a,
      "base rate^(n / steps).\n\n>>> bt.schedule.exponential(1.0, 10, 0.5)(20)\n0.25");
  s.def(
      "cosine",
      [](double b, std::int64_t n, double last) {
        return recorded_schedule(schedule::cosine(b, n, last), "cosine", b, n, last);
      },
      "base"_a, "steps"_a, "last"_a = 0.0,
      "Half a cosine from base to last.\n\n>>> bt.schedule.cosine(1.0, 10)(0)\n1.0");
  s.def(
      "polynomial",
      [](double b, std::int64_t n, double p, double last) {
        return recorded_schedule(schedule::polynomial(b, n, p, last), "polynomial", b, n,
                                 p, last);
      },
      "base"_a, "steps"_a, "power"_a = 1.0, "last"_a = 0.0,
      "From base to last along a power.\n\n>>> bt.schedule.polynomial(1.0, 10)(5)\n0.5");
}

}  // namespace

Schedule to_schedule(const py::object& o) {
  if (o.is_none()) return {};
  if (py::isinstance<PySchedule>(o))
    return HeldRate{o.cast<const PySchedule&>().rate, keep(o)};
  if (!PyCallable_Check(o.ptr()))
    throw UserError(ErrorKind::type,
                    fmt::format("schedule must be a function of the count, got {}",
                                py::repr(o).cast<std::string>()));
  return HeldRate{{}, keep(o)};
}

py::object schedule_object(const Schedule& s) {
  const auto* held = s.target<HeldRate>();
  return held == nullptr ? py::object(py::none()) : *held->object;
}

void init_schedules(py::module_& m) {
  py::module_ s = m.def_submodule("schedule", "Learning rates as functions of a count.");
  py::class_<PySchedule>(s, "Schedule",
                         "n -> learning rate.\n\n"
                         ">>> bt.schedule.step(1.0, 10)\nstep(1.0, 10, 0.1)\n"
                         ">>> bt.Adam(schedule=bt.schedule.constant(0.5)).learning_rate\n"
                         "0.5")
      .def("__call__", [](const PySchedule& p, std::int64_t n) { return p.rate(n); })
      .def_property_readonly("_made", [](const PySchedule& p) { return p.made.parts(); })
      .def("__repr__", [](const PySchedule& p) { return p.made.text(); });
  s.def(
      "constant",
      [](double r) { return recorded_schedule(schedule::constant(r), "constant", r); },
      "rate"_a, "Always the same.\n\n>>> bt.schedule.constant(0.1)(7)\n0.1");
  def_falling(s);
  s.def(
      "warmup",
      [](std::int64_t n, const py::object& rate) {
        return recorded_schedule(schedule::warmup(n, to_schedule(rate)), "warmup", n,
                                 rate);
      },
      "steps"_a, "rate"_a,
      "From 0 to the rate over the first steps, then the rate.\n\n"
      ">>> bt.schedule.warmup(10, bt.schedule.constant(1.0))(50)\n1.0");
}

}  // namespace braintrace::python
