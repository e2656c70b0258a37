// SPDX-License-Identifier: Apache-2.0
// Learning rules and their coordinates.
#include "convert.h"
#include "named_option.h"
#include "py_learner.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/algo/algorithm_names.h"

namespace braintrace::python {
namespace {

using namespace py::literals;

SmoothingFactor factor_of(py::handle h) {
  if (PyBool_Check(h.ptr()))
    throw UserError(ErrorKind::type, "decay_or_rank must be a number");
  if (PyLong_Check(h.ptr())) return {h.cast<std::int64_t>()};
  return {option_as<double>("learning rule", "decay_or_rank", a_number, h)};
}

DecayOrRank decay_of(const py::object& o) {
  if (o.is_none()) return {};
  if (!py::isinstance<py::tuple>(o) && !py::isinstance<py::list>(o))
    return {factor_of(o), factor_of(o)};
  const py::sequence pair = o;
  BT_REQUIRE(pair.size() == 2,
             fmt::format("decay_or_rank: a pair has two entries, got {}", pair.size()));
  return {factor_of(pair[0]), factor_of(pair[1])};
}

// Names NumPy has for types that are read as others (int8, float16) are no trace types.
DType trace_dtype_of(const char* who, const py::object& value) {
  const std::optional<DType> stored = exact_dtype(value);
  if (!stored || !(is_float(*stored) || *stored == DType::bf16))
    throw UserError(ErrorKind::type,
                    fmt::format("{}: trace_dtype must be f32, f64 or bf16, got {}", who,
                                py::repr(value).cast<std::string>()));
  return *stored;
}

// Arguments that have no effect here: they choose kernels in the reference.
bool is_ignored(const std::string& name) {
  return name == "name" || name == "fast_solve" || name == "chunked_trace" ||
         name == "mode";
}

AlgorithmArgs args_of(const char* who, const py::dict& given) {
  AlgorithmArgs a;
  for (const auto& [key, item] : given) {
    const auto name = key.cast<std::string>();
    const auto value = py::reinterpret_borrow<py::object>(item);
    if (value.is_none() || is_ignored(name)) continue;
    if (name == "decay_or_rank")
      a.decay_or_rank = decay_of(value);
    else if (name == "n")
      a.n = option_as<std::int64_t>(who, name, an_integer, value);
    else if (name == "feedback")
      a.feedback = option_as<std::string>(who, name, a_name, value);
    else if (name == "kappa_filter_decay")
      a.kappa_filter_decay = option_as<double>(who, name, a_number, value);
    else if (name == "random_feedback_key")
      a.random_feedback_key = option_as<std::uint64_t>(who, name, a_seed, value);
    else if (name == "projection_key")
      a.projection_key = option_as<std::uint64_t>(who, name, a_seed, value);
    else if (name == "projection_eps")
      a.projection_eps = option_as<double>(who, name, a_number, value);
    else if (name == "snap_max_jacobian_elements")
      a.snap_max_jacobian_elements =
          option_as<std::int64_t>(who, name, an_integer, value);
    else if (name == "segments")
      a.segments = option_as<std::int64_t>(who, name, an_integer, value);
    else if (name == "trace_dtype")
      a.trace_dtype = trace_dtype_of(who, value);
    else if (name == "config")
      a.config = value.cast<ETraceConfig>();
    else if (name == "vjp_method")
      a.vjp_method =
          vjp_method_from_string(option_as<std::string>(who, name, a_name, value));
    else
      throw UserError(
          ErrorKind::type,
          fmt::format("{}: no argument '{}'; learning rules have decay_or_rank, n, "
                      "feedback, kappa_filter_decay, random_feedback_key, "
                      "projection_key, projection_eps, snap_max_jacobian_elements, "
                      "segments, trace_dtype, vjp_method and config, learners {}",
                      who, name, fmt::join(learner_option_names(), ", ")));
  }
  return a;
}

py::object recursion_object(const Recursion& r) {
  const std::string x(to_string(r.x)), f(to_string(r.f));
  if (r.is_pair) return py::make_tuple(x, f);
  return py::str(x);
}

py::object decay_object(const Decay& d) {
  if (d.is_pair) return py::make_tuple(d.x, d.f);
  return py::cast(d.x);
}

template <class E>
auto text(E (ETraceConfig::*field)() const) {
  return [field](const ETraceConfig& c) { return std::string(to_string((c.*field)())); };
}

void def_config(py::module_& m) {
  using C = ETraceConfig;
  py::class_<C>(m, "_ETraceConfig")
      .def(py::init(&C::from_json), "json"_a)
      .def_property_readonly("trace_factorization", text(&C::trace_factorization))
      .def_property_readonly(
          "temporal_recursion",
          [](const C& c) { return recursion_object(c.temporal_recursion()); })
      .def_property_readonly("recurrence_scope", text(&C::recurrence_scope))
      .def_property_readonly("learning_signal", text(&C::learning_signal))
      .def_property_readonly("trace_filter", text(&C::trace_filter))
      .def_property_readonly("update_schedule", text(&C::update_schedule))
      .def_property_readonly("decay", [](const C& c) { return decay_object(c.decay()); })
      .def_property_readonly("kappa", &C::kappa)
      .def_property_readonly("sparse_n", &C::sparse_n)
      .def_property_readonly("window_size",
                             [](const C& c) { return c.fields().window_size; })
      .def("to_json", &C::to_json)
      .def("__repr__", &C::describe)
      .def(
          "__eq__", [](const C& a, const C& b) { return a == b; }, py::is_operator())
      .def("__hash__", [](const C& c) { return std::hash<std::string>()(c.to_json()); });
}

// Every field of a rule, in order.
py::tuple algorithm_fields(const Algorithm& a) {
  const AlgorithmOptions& o = a.options;
  return py::make_tuple(a.name, a.config.to_json(), static_cast<int>(a.engine),
                        static_cast<int>(a.vjp_method), o.random_feedback_key,
                        o.projection_key, o.projection_eps, o.snap_max_jacobian_elements,
                        o.needs_anchors, o.takes_synthesizer, o.trace_dtype,
                        o.bptt_segments);
}

Algorithm algorithm_from_fields(const py::tuple& t) {
  BT_REQUIRE(t.size() == 12, "Algorithm: a pickled rule has 12 fields");
  Algorithm a{t[0].cast<std::string>(),
              ETraceConfig::from_json(t[1].cast<std::string>())};
  a.engine = static_cast<Engine>(t[2].cast<int>());
  a.vjp_method = static_cast<VjpMethod>(t[3].cast<int>());
  AlgorithmOptions& o = a.options;
  o.random_feedback_key = t[4].cast<std::optional<std::uint64_t>>();
  o.projection_key = t[5].cast<std::uint64_t>();
  o.projection_eps = t[6].cast<double>();
  o.snap_max_jacobian_elements = t[7].cast<std::int64_t>();
  o.needs_anchors = t[8].cast<bool>();
  o.takes_synthesizer = t[9].cast<bool>();
  o.trace_dtype = t[10].cast<std::optional<DType>>();
  o.bptt_segments = t[11].cast<std::int64_t>();
  return checked(std::move(a));
}

}  // namespace

void init_algorithm(py::module_& m) {
  def_config(m);
  py::class_<Algorithm>(m, "Algorithm",
                        "A learning rule with its options.\n\n"
                        ">>> bt.Algorithm('d_rtrl').name\n'D_RTRL'")
      .def(py::init([](const std::string& name, const py::dict& args) {
             return algorithm_by_name(name, args_of(name.c_str(), args));
           }),
           "name"_a, "args"_a = py::dict())
      .def_static(
          "from_config",
          [](const ETraceConfig& c, const py::dict& args) {
            const AlgorithmArgs a = args_of("ETraceConfig", args);
            AlgorithmOptions o;
            o.random_feedback_key = a.random_feedback_key;
            if (a.projection_key) o.projection_key = *a.projection_key;
            if (a.projection_eps) o.projection_eps = *a.projection_eps;
            o.trace_dtype = a.trace_dtype;
            return algorithm_from_config(c, o, a.vjp_method);
          },
          "config"_a, "args"_a = py::dict())
      .def_readonly("name", &Algorithm::name)
      .def_readonly("config", &Algorithm::config)
      .def_property_readonly(
          "vjp_method",
          [](const Algorithm& a) { return std::string(to_string(a.vjp_method)); })
      .def(
          "__eq__", [](const Algorithm& a, const Algorithm& b) { return a == b; },
          py::is_operator())
      .def("__hash__", [](const Algorithm& a) { return py::hash(algorithm_fields(a)); })
      .def(py::pickle(&algorithm_fields, &algorithm_from_fields))
      .def("__repr__", [](const Algorithm& a) {
        return fmt::format("Algorithm({}, {})", a.name, a.config.describe());
      });
  m.def("algorithm_names", &algorithm_names,
        "What compile takes as the name of a rule.\n\n"
        ">>> 'pp_prop' in bt.algorithm_names()\nTrue");
}

}  // namespace braintrace::python
