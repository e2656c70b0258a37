// SPDX-License-Identifier: Apache-2.0
// What a learning rule is made of, piece by piece: the step with its Jacobians.
#include "convert.h"
#include "etrace_options.h"
#include "py_module.h"
#include <fmt/format.h>

#include "braintrace/algo/algorithm_names.h"
#include "braintrace/algo/vjp_executor.h"

namespace braintrace::python {
namespace {

using namespace py::literals;

py::dict by_path(const std::map<Path, Array>& values) {
  py::dict out;
  for (const auto& [path, a] : values) out[py::cast(path)] = py::cast(a);
  return out;
}

py::list arrays_or_none(const std::vector<std::optional<Array>>& values) {
  py::list out;
  for (const auto& a : values) out.append(a ? py::cast(*a) : py::none());
  return out;
}

std::vector<Array> to_list(py::handle h) {
  std::vector<Array> out;
  if (!h.is_none())
    for (py::handle a : h) out.push_back(to_array(a));
  return out;
}

// (xs by relation, dfs by (relation, group)) and Ds by group.
std::pair<py::tuple, py::list> pieces(const StepJacobians& j) {
  py::dict x, df;
  for (const auto& [relation, a] : j.x) x[py::int_(relation)] = py::cast(a);
  for (const auto& [key, a] : j.df)
    df[py::make_tuple(key.first, key.second)] = py::cast(a);
  py::list d;
  for (const Array& a : j.D) d.append(a);
  return {py::make_tuple(x, df), d};
}

TraceStepper stepper_of(const py::object& f) {
  if (f.is_none()) return {};
  return [held = keep(f)](const std::vector<Array>& etrace, const StepJacobians& step) {
    py::gil_scoped_acquire gil;
    const auto [factors, d] = pieces(step);
    return to_list((*held)(py::cast(etrace), py::make_tuple(factors[0], factors[1], d)));
  };
}

StepCotangents cotangents(const py::object& out, const py::dict& hidden,
                          const py::dict& other) {
  StepCotangents c;
  if (!out.is_none()) {
    const bool several = py::isinstance<py::tuple>(out) || py::isinstance<py::list>(out);
    for (py::handle h : several ? py::tuple(out) : py::make_tuple(out))
      c.out.push_back(h.is_none() ? std::nullopt : std::optional(to_array(h)));
  }
  for (const auto& [path, a] : hidden) c.hidden[path.cast<Path>()] = to_array(a);
  for (const auto& [path, a] : other) c.other[path.cast<std::string>()] = to_array(a);
  return c;
}

py::object residual_function(const StepResidual& residual) {
  return py::cpp_function(
      [residual](const py::object& out, const py::dict& hidden, const py::dict& other) {
        const StepAdjoints a = residual(cotangents(out, hidden, other));
        py::dict d;
        d["args"] = arrays_or_none(a.args);
        d["hidden"] = by_path(a.hidden);
        d["params"] = py::cast(a.params);
        d["other"] = py::cast(a.other);
        d["perturb"] = by_path(a.perturb);
        return d;
      },
      "out"_a = py::none(), "hidden"_a = py::dict(), "other"_a = py::dict(),
      "Cotangents of outputs and of states at exit, back to those of args, hidden, "
      "params, other and perturb.");
}

// An executor with the Python model behind it.
class PyExecutor {
 public:
  PyExecutor(const py::object& model, const VjpExecutorOptions& options)
      : model_(module_of(model)), executor_(*model_, options) {}

  void compile(const py::args& args) {
    const std::vector<StepArgument> in = arguments(args);
    if (!executor_.is_compiled()) compiled_for_ = types_of(in);
    BT_REQUIRE_KIND(compiled_for_ == types_of(in), ErrorKind::runtime,
                    fmt::format("compile_graph: compiled already, for inputs {}, got {}; "
                                "make another executor",
                                compiled_for_, types_of(in)));
    executor_.compile_graph(in);
  }
  ETraceVjpGraphExecutor& executor() { return executor_; }
  const ETraceVjpGraphExecutor& executor() const { return executor_; }

  py::tuple solve(const py::args& args, const py::object& stepper,
                  const py::object& etrace, bool wants_residual) {
    require_same_states(*model_, "solve_h2w_h2h_jacobian");
    const std::vector<StepArgument> in = arguments(args);
    if (!executor_.is_compiled()) compiled_for_ = types_of(in);
    const TraceStepper step = stepper_of(stepper);
    std::vector<Array> start = to_list(etrace);
    StepSolution s;
    {
      py::gil_scoped_release release;
      s = wants_residual
              ? executor_.solve_h2w_h2h_l2h_jacobian(in, step, std::move(start))
              : executor_.solve_h2w_h2h_jacobian(in, step, std::move(start));
    }
    const std::vector<Value> out(s.out.begin(), s.out.end());
    const auto [factors, d] = pieces(s.jacobians);
    const py::object y = restore_outputs(*model_, out);
    const py::dict hidden = by_path(s.hidden_vals);
    if (!wants_residual)
      return py::make_tuple(y, hidden, s.other_vals, factors, d, s.final_etrace);
    return py::make_tuple(y, hidden, s.other_vals, factors, d,
                          residual_function(s.residual), s.final_etrace);
  }

 private:
  // Plain data, SingleStepData or MultiStepData.
  std::vector<StepArgument> arguments(const py::args& args) {
    const py::module_ values = py::module_::import("braintrace_cpp._values");
    const py::object single = values.attr("SingleStepData"),
                     multi = values.attr("MultiStepData");
    py::tuple plain(args.size());
    std::vector<StepArgument> out;
    for (std::size_t i = 0; i < args.size(); ++i) {
      const bool is_multi = py::isinstance(args[i], multi);
      const bool wrapped = is_multi || py::isinstance(args[i], single);
      plain[i] = wrapped ? py::object(args[i].attr("data")) : py::object(args[i]);
      std::vector<Value> leaves;
      flatten(plain[i], leaves);
      for (const Value& v : leaves) {
        out.emplace_back(v.array());
        out.back().multi_step = is_multi;
      }
    }
    bind_inputs(*model_, plain);
    return out;
  }

  static std::string types_of(const std::vector<StepArgument>& args) {
    std::string out;
    for (const StepArgument& a : args)
      out += (out.empty() ? "" : ", ") + to_string(type_of(a.value)) +
             (a.multi_step ? " over time" : "");
    return "(" + out + ")";
  }

  std::shared_ptr<Module> model_;
  ETraceVjpGraphExecutor executor_;
  std::string compiled_for_;
};

VjpExecutorOptions executor_options(const std::string& vjp_method, bool mixing,
                                    const std::optional<std::int64_t>& sparse_n,
                                    std::int64_t max_elements, bool full,
                                    const py::kwargs& compiler) {
  VjpExecutorOptions o{.vjp_method = vjp_method_from_string(vjp_method),
                       .include_recurrent_mixing = mixing,
                       .sparse_n = sparse_n,
                       .snap_max_jacobian_elements = max_elements,
                       .full_jacobian = full};
  o.graph = compile_options(compiler);
  return o;
}

constexpr const char* kDoc =
    R"(Runs a compiled step and gives the Jacobians a learning rule is made of.

Keywords: vjp_method ('single-step' or 'multi-step'), include_recurrent_mixing, sparse_n,
snap_max_jacobian_elements, full_jacobian, and the options of the compiler.

>>> cell = bt.nn.init_all_states(bt.nn.ValinaRNNCell(3, 4))
>>> executor = bt.ETraceVjpGraphExecutor(cell)
>>> executor.compile_graph(bt.zeros(3))
>>> out, hidden, other, (xs, dfs), Ds, _ = executor.solve_h2w_h2h_jacobian(bt.ones(3))
>>> Ds[0].shape
(4, 1, 1))";

constexpr const char* kSolveDoc =
    R"((out, hidden_vals, other_vals, (xs, dfs), Ds, final_etrace) from the stored states.

With MultiStepData the step runs over its leading axis and everything gains a time axis;
`stepper(etrace, (xs, dfs, Ds))` then moves traces from `init_etrace` on instead.)";

constexpr const char* kResidualDoc =
    R"(The same with the transposed step before final_etrace: a function
residual(out=..., hidden={path: ...}, other={...}) of cotangents.)";

}  // namespace

void init_executor(py::module_& m) {
  py::class_<PyExecutor>(m, "ETraceVjpGraphExecutor", kDoc)
      .def(py::init([](const py::object& model, const std::string& vjp_method,
                       bool mixing, const std::optional<std::int64_t>& sparse_n,
                       std::int64_t max_elements, bool full, const py::kwargs& compiler) {
             return std::make_unique<PyExecutor>(
                 model, executor_options(vjp_method, mixing, sparse_n, max_elements, full,
                                         compiler));
           }),
           "model"_a, "vjp_method"_a = "single-step",
           "include_recurrent_mixing"_a = false, "sparse_n"_a = py::none(),
           "snap_max_jacobian_elements"_a = std::int64_t{1} << 24,
           "full_jacobian"_a = false)
      .def("compile_graph", &PyExecutor::compile, "For inputs like these.")
      .def_property_readonly(
          "is_compiled", [](const PyExecutor& e) { return e.executor().is_compiled(); })
      .def_property_readonly(
          "graph", [](const PyExecutor& e) { return &e.executor().graph(); },
          py::return_value_policy::reference_internal)
      .def_property_readonly("path_to_states",
                             [](const py::object& self) {
                               py::dict out;
                               for (const NamedState& s :
                                    self.cast<PyExecutor&>().executor().path_to_states())
                                 out[py::cast(s.path)] = wrap_state(*s.state, self);
                               return out;
                             })
      .def_property_readonly(
          "states",
          [](const py::object& self) {
            py::list out;
            for (State* s : self.cast<PyExecutor&>().executor().states())
              out.append(wrap_state(*s, self));
            return out;
          })
      .def(
          "show_graph",
          [](const PyExecutor& e, int verbose, bool return_msg) {
            const std::string text = e.executor().show_graph(verbose);
            if (return_msg) return py::object(py::str(text));
            py::print(text);
            return py::object(py::none());
          },
          "verbose"_a = 1, "return_msg"_a = false)
      .def(
          "solve_h2w_h2h_jacobian",
          [](PyExecutor& e, const py::args& args, const py::object& stepper,
             const py::object& etrace) { return e.solve(args, stepper, etrace, false); },
          "stepper"_a = py::none(), "init_etrace"_a = py::none(), kSolveDoc)
      .def(
          "solve_h2w_h2h_l2h_jacobian",
          [](PyExecutor& e, const py::args& args, const py::object& stepper,
             const py::object& etrace) { return e.solve(args, stepper, etrace, true); },
          "stepper"_a = py::none(), "init_etrace"_a = py::none(), kResidualDoc);
  m.attr("ETraceGraphExecutor") = m.attr("ETraceVjpGraphExecutor");
}

}  // namespace braintrace::python
