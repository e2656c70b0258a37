// SPDX-License-Identifier: Apache-2.0
// Making arrays, changing shapes, picking entries, plain products and pooling.
#include "convert.h"
#include "indexing.h"

namespace braintrace::python {
namespace {

Values to_values(const py::iterable& parts) {
  Values out;
  for (py::handle p : parts) out.push_back(to_value(p));
  return out;
}

using MaybeType = std::optional<DType>;

void def_creation(py::module_& m) {
  m.def(
      "zeros",
      [](const Size& s, const MaybeType& d) {
        return zeros(s, d.value_or(default_float()));
      },
      py::arg("shape"), py::arg("dtype") = py::none(),
      "All zero.\n\n>>> bt.zeros((2, 2)).tolist()\n[[0.0, 0.0], [0.0, 0.0]]");
  m.def(
      "ones",
      [](const Size& s, const MaybeType& d) {
        return ones(s, d.value_or(default_float()));
      },
      py::arg("shape"), py::arg("dtype") = py::none(),
      "All one.\n\n>>> bt.ones(2).tolist()\n[1.0, 1.0]");
  m.def(
      "full",
      [](const Size& s, double value, const MaybeType& d) {
        return full(s, value, d.value_or(default_float()));
      },
      py::arg("shape"), py::arg("fill_value"), py::arg("dtype") = py::none(),
      "All the same.\n\n>>> bt.full(2, 3.5).tolist()\n[3.5, 3.5]");
  m.def("iota", &iota, py::arg("n"), py::arg("dtype") = DType::i32,
        "0, 1, ..., n - 1.\n\n>>> bt.iota(3).tolist()\n[0, 1, 2]");
  m.def(
      "zeros_like", [](Arg x) { return zeros_like(x.value); }, py::arg("x"),
      "Zeros of the same type.\n\n>>> bt.zeros_like(bt.ones(2)).tolist()\n[0.0, 0.0]");
  m.def(
      "ones_like", [](Arg x) { return ones_like(x.value); }, py::arg("x"),
      "Ones of the same type.\n\n>>> bt.ones_like(bt.zeros(2)).tolist()\n[1.0, 1.0]");
  m.def(
      "one_hot",
      [](Arg i, std::int64_t n, const MaybeType& d) {
        return one_hot(i, n, d.value_or(default_float()));
      },
      py::arg("indices"), py::arg("n"), py::arg("dtype") = py::none(),
      "1 at the index, else 0.\n\n>>> bt.one_hot([1], 3).tolist()\n[[0.0, 1.0, 0.0]]");
}

void def_shape(py::module_& m) {
  m.def(
      "broadcast_to", [](Arg x, const Size& s) { return broadcast_to(x, s); },
      py::arg("x"), py::arg("shape"),
      "Stretches axes of size 1.\n\n>>> bt.broadcast_to(1.0, (2, 2)).shape\n(2, 2)");
  m.def(
      "concatenate",
      [](const py::iterable& parts, std::int64_t axis) {
        return concat(to_values(parts), axis, python_location());
      },
      py::arg("parts"), py::arg("axis") = -1,
      "Joins along an axis (default: the last).\n\n"
      ">>> bt.concatenate([bt.ones(1), bt.zeros(2)]).tolist()\n[1.0, 0.0, 0.0]");
  m.def(
      "stack",
      [](const py::iterable& parts, std::int64_t axis) {
        return stack(to_values(parts), axis, python_location());
      },
      py::arg("parts"), py::arg("axis") = 0,
      "Joins along a new axis.\n\n>>> bt.stack([bt.ones(2), bt.zeros(2)]).shape\n(2, 2)");
  m.def("expand_dims", &expand_dims, py::arg("x"), py::arg("axis"),
        "A new axis of size 1.\n\n>>> bt.expand_dims(bt.ones(2), 0).shape\n(1, 2)");
  m.def(
      "squeeze",
      [](const py::object& x, const std::optional<std::int64_t>& axis) {
        return squeezed(to_value(x), axis);
      },
      py::arg("x"), py::arg("axis") = py::none(),
      "Drops an axis of size 1, or all of them.\n\n"
      ">>> bt.squeeze(bt.ones((1, 2)), 0).shape\n(2,)");
  m.def(
      "reshape", [](Arg x, const Size& s) { return reshape(x, s); }, py::arg("x"),
      py::arg("shape"),
      "The same entries in another shape.\n\n>>> bt.reshape(bt.ones(4), (2, -1)).shape\n"
      "(2, 2)");
  m.def(
      "transpose",
      [](Arg x, const std::optional<Size>& p) {
        return transpose(x, p ? p->dims : Ints{});
      },
      py::arg("x"), py::arg("axes") = py::none(),
      "Permutes the axes (default: reverses them).\n\n"
      ">>> bt.transpose(bt.ones((2, 3))).shape\n(3, 2)");
  m.def(
      "flip", [](Arg x, const Size& axes) { return flip(x, axes); }, py::arg("x"),
      py::arg("axis"), "Backwards.\n\n>>> bt.flip([1, 2], 0).tolist()\n[2, 1]");
  m.def("roll", &roll, py::arg("x"), py::arg("shift"), py::arg("axis") = -1,
        "Moves entries around the end.\n\n>>> bt.roll([1, 2, 3], 1).tolist()\n[3, 1, 2]");
  m.def(
      "pad",
      [](Arg x, const Size& low, const Size& high, double value) {
        return pad(x, low, high, value);
      },
      py::arg("x"), py::arg("low"), py::arg("high"), py::arg("value") = 0.0,
      "Adds entries before and after, per axis.\n\n"
      ">>> bt.pad([1.0], 1, 0).tolist()\n[0.0, 1.0]");
}

void def_entries(py::module_& m) {
  m.def("take", &take, py::arg("x"), py::arg("indices"), py::arg("axis") = 0,
        "Entries by index.\n\n>>> bt.take([5, 6, 7], [2, 0]).tolist()\n[7, 5]");
  m.def("scatter_add", &scatter_add, py::arg("x"), py::arg("indices"), py::arg("updates"),
        py::arg("axis") = 0,
        "x with updates added at the indices.\n\n"
        ">>> bt.scatter_add([0.0, 0.0], [1, 1], [2.0, 3.0]).tolist()\n[0.0, 5.0]");
  m.def("cumsum", &cumsum, py::arg("x"), py::arg("axis") = -1, py::arg("reverse") = false,
        "Running sum.\n\n>>> bt.cumsum([1, 2, 3]).tolist()\n[1, 3, 6]");
  m.def("astype", &astype, py::arg("x"), py::arg("dtype"),
        "Another element type.\n\n>>> bt.astype([1.5], 'i32').tolist()\n[1]");
}

void def_products(py::module_& m) {
  m.def("dot", &dot, py::arg("a"), py::arg("b"),
        "Plain product, without a trace; see matmul for the trainable one.\n\n"
        ">>> float(bt.dot([1.0, 2.0], [3.0, 4.0]))\n11.0");
  m.def("stacked_dot", &stacked_dot, py::arg("a"), py::arg("b"),
        "Plain product as NumPy's @: axes before the last two are stacks of matrices.\n\n"
        ">>> bt.stacked_dot(bt.ones((5, 2, 3)), bt.ones((5, 3, 4))).shape\n(5, 2, 4)");
  m.def(
      "dot_general",
      [](Arg a, Arg b, const Size& la, const Size& rb, const Size& lb, const Size& bb) {
        return dot_general(a, b, {la, rb, lb, bb});
      },
      py::arg("lhs"), py::arg("rhs"), py::arg("lhs_contract"), py::arg("rhs_contract"),
      py::arg("lhs_batch") = py::tuple(), py::arg("rhs_batch") = py::tuple(),
      "Contracts and batches chosen axes.\n\n"
      ">>> bt.dot_general(bt.ones((2, 3)), bt.ones((4, 3)), 1, 1).shape\n(2, 4)");
  m.def(
      "layer_norm",
      [](Arg x, const Size& axes, double epsilon) {
        return layer_norm(x, axes, epsilon);
      },
      py::arg("x"), py::arg("axes") = py::make_tuple(-1), py::arg("epsilon") = 1e-6,
      "Mean 0 and variance 1 over the axes.\n\n"
      ">>> bt.layer_norm([1.0, 3.0]).numpy().round(3).tolist()\n[-1.0, 1.0]");
  const auto pool = [&m](const char* name, Value (*f)(Arg, const PoolOptions&)) {
    m.def(
        name,
        [f](Arg x, const Size& window, const std::optional<Size>& strides,
            const std::string& padding) {
          return f(x, {window, strides ? strides->dims : Ints{}, padding});
        },
        py::arg("x"), py::arg("window"), py::arg("strides") = py::none(),
        py::arg("padding") = "VALID",
        fmt::format("Over windows of (batch, *spatial, channels).\n\n"
                    ">>> bt.{}(bt.ones((1, 4, 4, 2)), (2, 2)).shape[0]\n1",
                    name)
            .c_str());
  };
  pool("max_pool", max_pool);
  pool("avg_pool", avg_pool);
}

}  // namespace

void init_ops_shape(py::module_& m) {
  def_creation(m);
  def_shape(m);
  def_entries(m);
  def_products(m);
}

}  // namespace braintrace::python
