// SPDX-License-Identifier: Apache-2.0
// Trainable ops: their weights take part in eligibility traces.
#include "convert.h"
#include <fmt/format.h>

namespace braintrace::python {
namespace {

using MaybeArg = std::optional<py::object>;

Tangent maybe_value(const MaybeArg& o) {
  if (!o || o->is_none()) return std::nullopt;
  return to_value(*o);
}

Hook to_hook(const MaybeArg& f) {
  if (!f || f->is_none()) return {};
  if (!PyCallable_Check(f->ptr()))
    throw UserError(ErrorKind::type, fmt::format("a hook must be a function, got {}",
                                                 py::repr(*f).cast<std::string>()));
  const auto held = keep(*f);
  return [held](const Value& w) { return to_value((*held)(w)); };
}

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

ConvGeometry geometry(const std::optional<Size>& strides,
                      const std::optional<Pairs>& padding, std::int64_t groups) {
  ConvGeometry g;
  g.groups = groups;
  if (strides) g.strides = strides->dims;
  if (!padding) return g;
  for (const auto& [low, high] : *padding) {
    g.pad_low.push_back(low);
    g.pad_high.push_back(high);
  }
  return g;
}

// Lists and integer arrays of any width.
IndexList to_indices(std::string_view who, std::string_view name, const Arg& given) {
  const Array a = given.value.array();
  if (a.shape() == Shape{0}) return {};
  BT_REQUIRE_KIND(a.dtype() == DType::i32 && a.rank() == 1, ErrorKind::type,
                  fmt::format("{}: {} must be a list of integers, got {}{}", who, name,
                              to_string(a.dtype()), to_string(a.shape())));
  return IndexList(a);
}

template <auto make>
auto from_lists(const char* who, const char* first, const char* second) {
  return [=](std::int64_t in, std::int64_t out, Arg a, Arg b) {
    return make(in, out, to_indices(who, first, a), to_indices(who, second, b));
  };
}

void def_sparse(py::module_& m) {
  py::class_<SparseStructure>(
      m, "SparseStructure",
      "Which input feeds which output; made by coo_structure and others.\n\n"
      ">>> bt.coo_structure(2, 3, [0, 1], [2, 0])\n"
      "SparseStructure(2 -> 3, 2 values)")
      .def_readonly("in_size", &SparseStructure::in)
      .def_readonly("out_size", &SparseStructure::out)
      .def_property_readonly("rows",
                             [](const SparseStructure& s) { return s.rows.ints(); })
      .def_property_readonly("cols",
                             [](const SparseStructure& s) { return s.cols.ints(); })
      .def("__repr__", [](const SparseStructure& s) {
        return fmt::format("SparseStructure({} -> {}, {} values)", s.in, s.out,
                           s.rows.ints().size());
      });
  m.def("coo_structure", from_lists<coo_structure>("coo_structure", "rows", "cols"),
        py::arg("in_size"), py::arg("out_size"), py::arg("rows"), py::arg("cols"),
        "Stored value p joins input rows[p] to output cols[p].\n\n"
        ">>> bt.coo_structure(2, 2, [0, 1], [1, 0]).rows\n[0, 1]");
  m.def("csr_structure",
        from_lists<csr_structure>("csr_structure", "row_pointers", "columns"),
        py::arg("in_size"), py::arg("out_size"), py::arg("row_pointers"),
        py::arg("columns"),
        "Compressed rows.\n\n>>> bt.csr_structure(2, 2, [0, 1, 2], [1, 0]).cols\n[1, 0]");
  m.def("csc_structure",
        from_lists<csc_structure>("csc_structure", "col_pointers", "rows"),
        py::arg("in_size"), py::arg("out_size"), py::arg("col_pointers"), py::arg("rows"),
        "Compressed columns.\n\n>>> bt.csc_structure(2, 2, [0, 1, 2], [1, 0]).rows\n[1, "
        "0]");
  m.def("dense_structure", &dense_structure, py::arg("pattern"),
        "The non-zeros of a matrix.\n\n>>> bt.dense_structure([[0, 1], [1, 0]]).rows\n"
        "[0, 1]");
  m.def("random_structure", &random_structure, py::arg("in_size"), py::arg("out_size"),
        py::arg("mean_degree"), py::arg("seed") = 0,
        "Every input reaches between 1/2 and 3/2 of mean_degree outputs, drawn evenly."
        "\n\n>>> len(bt.random_structure(10, 10, 1).rows)\n10");
  m.def(
      "sparse_matmul",
      [](Arg x, Arg w, const SparseStructure& s, const MaybeArg& bias,
         const MaybeArg& fn) {
        return sparse_matmul(x, w, s, maybe_value(bias), {to_hook(fn), {}});
      },
      py::arg("x"), py::arg("weight"), py::arg("structure"), py::arg("bias") = py::none(),
      py::arg("weight_fn") = py::none(),
      "x times a matrix with fixed sparse connectivity.\n\n"
      ">>> s = bt.coo_structure(2, 1, [0, 1], [0, 0])\n"
      ">>> bt.sparse_matmul([1.0, 2.0], [3.0, 4.0], s).tolist()\n[11.0]");
  m.def("sparse_dot", &sparse_dot, py::arg("x"), py::arg("weight"), py::arg("structure"),
        "The same product as a plain op: its weight is not traced.\n\n"
        ">>> s = bt.coo_structure(2, 1, [0, 1], [0, 0])\n"
        ">>> bt.sparse_dot([1.0, 2.0], [3.0, 4.0], s).tolist()\n[11.0]");
  m.def("sparse_outer", &sparse_outer, py::arg("x"), py::arg("y"), py::arg("structure"),
        "x[..., row] y[..., col] of every stored value, summed over leading axes.\n\n"
        ">>> s = bt.coo_structure(2, 1, [0, 1], [0, 0])\n"
        ">>> bt.sparse_outer([1.0, 2.0], [3.0], s).tolist()\n[3.0, 6.0]");
}

void def_conv(py::module_& m) {
  m.def(
      "conv",
      [](Arg x, Arg k, const std::optional<Size>& strides,
         const std::optional<Pairs>& padding, std::int64_t groups, const MaybeArg& b) {
        return conv(x, k, geometry(strides, padding, groups), maybe_value(b));
      },
      py::arg("x"), py::arg("kernel"), py::arg("strides") = py::none(),
      py::arg("padding") = py::none(), py::arg("groups") = 1,
      py::arg("bias") = py::none(),
      "Cross-correlation; x [n, *spatial, c], kernel [*spatial, c / groups, o].\n\n"
      ">>> bt.conv(bt.ones((1, 5, 1)), bt.ones((3, 1, 2))).shape\n(1, 3, 2)");
}

}  // namespace

void init_ops_etp(py::module_& m) {
  m.def(
      "matmul",
      [](Arg x, Arg w, const MaybeArg& b, const MaybeArg& wf, const MaybeArg& bf) {
        return matmul(x, w, maybe_value(b), {to_hook(wf), to_hook(bf)});
      },
      py::arg("x"), py::arg("weight"), py::arg("bias") = py::none(),
      py::arg("weight_fn") = py::none(), py::arg("bias_fn") = py::none(),
      "x[..., i] w[i, o] (+ b[o]), trainable online.\n\n"
      ">>> bt.matmul([1.0, 2.0], [[1.0], [1.0]]).tolist()\n[3.0]");
  m.def(
      "element_wise",
      [](Arg w, const MaybeArg& fn) { return element_wise(w, to_hook(fn)); },
      py::arg("weight"), py::arg("weight_fn") = py::none(),
      "A weight itself as a value with a trace.\n\n"
      ">>> bt.element_wise([1.0, 2.0]).tolist()\n[1.0, 2.0]");
  m.def(
      "grouped_matmul",
      [](Arg x, Arg w, const MaybeArg& b, const MaybeArg& wf, const MaybeArg& bf) {
        return grouped_matmul(x, w, maybe_value(b), {to_hook(wf), to_hook(bf)});
      },
      py::arg("x"), py::arg("weight"), py::arg("bias") = py::none(),
      py::arg("weight_fn") = py::none(), py::arg("bias_fn") = py::none(),
      "x[..., g, k] w[g, k, n] (+ b[g, n]).\n\n"
      ">>> bt.grouped_matmul(bt.ones((2, 3)), bt.ones((2, 3, 4))).shape\n(2, 4)");
  m.def(
      "einsum",
      [](const std::string& e, Arg x, Arg w, const MaybeArg& fn) {
        return einsum(e, x, w, to_hook(fn));
      },
      py::arg("equation"), py::arg("x"), py::arg("weight"),
      py::arg("weight_fn") = py::none(),
      "Two operands; the first letter of x and y is the batch.\n\n"
      ">>> bt.einsum('bi,io->bo', bt.ones((2, 3)), bt.ones((3, 4))).shape\n(2, 4)");
  m.def(
      "embedding",
      [](Arg i, Arg w, const MaybeArg& fn) { return embedding(i, w, to_hook(fn)); },
      py::arg("indices"), py::arg("weight"), py::arg("weight_fn") = py::none(),
      "Rows of a table.\n\n>>> bt.embedding([1], [[1.0], [2.0]]).tolist()\n[[2.0]]");
  m.def(
      "lora_matmul",
      [](Arg x, Arg b, Arg a, double alpha, const MaybeArg& bias) {
        return lora_matmul(x, b, a, alpha, maybe_value(bias));
      },
      py::arg("x"), py::arg("b"), py::arg("a"), py::arg("alpha") = 1.0,
      py::arg("bias") = py::none(),
      "alpha x b[i, r] a[r, o] (+ bias[o]).\n\n"
      ">>> bt.lora_matmul([1.0], [[2.0]], [[3.0]]).tolist()\n[6.0]");
  def_conv(m);
  def_sparse(m);
}

}  // namespace braintrace::python
