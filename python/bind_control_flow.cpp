// SPDX-License-Identifier: Apache-2.0
// Loops and branches over functions written in Python. Values may be nested in tuples,
// lists and dicts.
#include "convert.h"
#include "tree.h"

#include "braintrace/model/trace_scope.h"

namespace braintrace::python {
namespace {

Values append(Values a, const Values& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

py::tuple scan_python(const py::function& f, const py::object& init, const py::object& xs,
                      std::int64_t length, bool reverse) {
  Values carry, data;
  const Tree carry_tree = flatten(init, carry);
  const Tree data_tree = flatten(xs, data);
  Tree out_tree;
  const auto body = [&](const Values& in) {
    std::size_t next = 0;
    const py::object c = unflatten(carry_tree, in, next);
    const py::object x = unflatten(data_tree, in, next);
    const py::tuple result = f(c, x);
    if (result.size() != 2) throw py::value_error("scan: f must return (carry, y)");
    Values new_carry, ys;
    const Tree t = flatten(result[0], new_carry);
    if (!same_structure(t, carry_tree))
      throw UserError(ErrorKind::type,
                      "scan: f must return a carry of the structure it was given");
    out_tree = flatten(result[1], ys);
    return append(std::move(new_carry), ys);
  };
  const ScanResult r = scan(body, carry, data, {length, reverse}, python_location());
  return py::make_tuple(unflatten(carry_tree, r.carry), unflatten(out_tree, r.ys));
}

py::object while_python(const py::function& condition, const py::function& body,
                        const py::object& init) {
  Values carry;
  const Tree tree = flatten(init, carry);
  const auto test = [&](const Values& in) {
    return Values{to_value(condition(unflatten(tree, in)))};
  };
  const auto step = [&](const Values& in) {
    Values out;
    if (!same_structure(flatten(body(unflatten(tree, in)), out), tree))
      throw UserError(ErrorKind::type,
                      "while_loop: body must return the structure it was given");
    return out;
  };
  return unflatten(tree, while_loop(test, step, carry, python_location()));
}

py::object cond_python(Arg predicate, const py::function& if_true,
                       const py::function& if_false, const py::args& operands) {
  Values in;
  const Tree tree = flatten(operands, in);
  Tree out_tree;
  const auto branch = [&](const py::function& f) {
    return [&](const Values& values) {
      Values out;
      out_tree = flatten(f(*py::tuple(unflatten(tree, values))), out);
      return out;
    };
  };
  const Values out = cond(predicate, branch(if_true), branch(if_false), in);
  return unflatten(out_tree, out);
}

py::object custom_jvp_python(const py::function& primal, const py::function& jvp,
                             const py::args& inputs, bool elementwise) {
  Values in;
  flatten(inputs, in);
  Tree out_tree;
  const auto call = [](const py::function& f, const Values& values) {
    py::tuple args(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) args[i] = py::cast(values[i]);
    return f(*args);
  };
  const auto forward = [&](const Values& v) {
    Values out;
    out_tree = flatten(call(primal, v), out);
    return out;
  };
  const auto tangent = [&](const Values& v) {
    Values out;
    flatten(call(jvp, v), out);
    return out;
  };
  return unflatten(out_tree,
                   custom_jvp(in, forward, tangent, {elementwise}, python_location()));
}

}  // namespace

void init_control_flow(py::module_& m) {
  using namespace py::literals;
  m.def("_is_tracing", [] { return TraceScope::current() != nullptr; });
  m.def("scan", &scan_python, "f"_a, "init"_a, "xs"_a = py::none(), "length"_a = -1,
        "reverse"_a = false,
        "f(carry, x) -> (carry, y) over the leading axis of xs.\n\n"
        ">>> carry, ys = bt.scan(lambda c, x: (c + x, c), bt.zeros(()), bt.ones(3))\n"
        ">>> float(carry), ys.tolist()\n(3.0, [0.0, 1.0, 2.0])");
  m.def("while_loop", &while_python, "cond_fun"_a, "body_fun"_a, "init_val"_a,
        "Repeats body_fun while cond_fun holds. Forward mode only.\n\n"
        ">>> float(bt.while_loop(lambda c: c < 10.0, lambda c: c * 2.0, "
        "bt.ones(())))\n16.0");
  m.def("cond", &cond_python, "pred"_a, "true_fun"_a, "false_fun"_a,
        "One of two functions of the operands.\n\n"
        ">>> float(bt.cond(True, lambda x: x + 1.0, lambda x: x, bt.ones(())))\n2.0");
  m.def(
      "custom_jvp",
      [](const py::function& primal, const py::function& jvp, const py::args& inputs,
         const py::kwargs& options) {
        const bool elementwise =
            options.contains("elementwise") && options["elementwise"].cast<bool>();
        return custom_jvp_python(primal, jvp, inputs, elementwise);
      },
      "primal"_a, "jvp"_a,
      "primal(*inputs) with the derivative jvp(*inputs, *tangents).\n\n"
      ">>> f = lambda x: bt.where(x >= 0.0, 1.0, 0.0)\n"
      ">>> bt.custom_jvp(f, lambda x, dx: dx, bt.Value([-1.0, 1.0]), elementwise=True)"
      ".tolist()\n[0.0, 1.0]");
}

}  // namespace braintrace::python
