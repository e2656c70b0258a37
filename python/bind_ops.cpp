// SPDX-License-Identifier: Apache-2.0
// Ops that work element by element, reductions, random numbers and losses-free
// composites.
#include "convert.h"
#include "reductions.h"
#include <fmt/format.h>

#include "braintrace/nn/activation.h"

namespace braintrace::python {
namespace {

// A function of one value, what it is, and one point of it.
struct Unary {
  const char* name;
  Value (*f)(Arg);
  const char* summary;
  const char* example;  // "x -> y"
};
struct Binary {
  const char* name;
  Value (*f)(Arg, Arg);
  const char* summary;
  const char* example;
};

const Unary kUnary[] = {
    {"abs", abs, "|x|.", "-2.0 -> 2.0"},
    {"copy", copy, "x under a name of its own.", "1.5 -> 1.5"},
    {"cos", cos, "Cosine.", "0.0 -> 1.0"},
    {"erf", erf, "The error function.", "0.5 -> 0.5205"},
    {"exp", exp, "e^x.", "1.0 -> 2.7183"},
    {"expm1", expm1, "e^x - 1, exact near 0.", "1.0 -> 1.7183"},
    {"floor", floor, "The largest integer not above x.", "-1.5 -> -2.0"},
    {"log", log, "Natural logarithm.", "2.0 -> 0.6931"},
    {"log1p", log1p, "log(1 + x), exact near 0.", "1.0 -> 0.6931"},
    {"logical_not", logical_not, "True where x is 0.", "True -> 0.0"},
    {"negative", neg, "-x.", "2.0 -> -2.0"},
    {"relu", relu, "max(x, 0).", "-1.0 -> 0.0"},
    {"rsqrt", rsqrt, "1 / sqrt(x).", "4.0 -> 0.5"},
    {"sigmoid", sigmoid, "1 / (1 + e^-x).", "0.0 -> 0.5"},
    {"sign", sign, "-1, 0 or 1.", "-3.0 -> -1.0"},
    {"sin", sin, "Sine.", "1.0 -> 0.8415"},
    {"softplus", softplus, "log(1 + e^x).", "0.0 -> 0.6931"},
    {"sqrt", sqrt, "Square root.", "9.0 -> 3.0"},
    {"square", square, "x^2.", "-3.0 -> 9.0"},
    {"stop_gradient", stop_gradient, "x, which no derivative passes.", "2.0 -> 2.0"},
    {"tanh", tanh, "Hyperbolic tangent.", "0.5 -> 0.4621"},
};

const Binary kBinary[] = {
    {"add", add, "a + b.", "1.0, 2.0 -> 3.0"},
    {"divide", div, "a / b; integers divide as floats.", "1.0, 4.0 -> 0.25"},
    {"equal", equal, "a == b.", "1.0, 1.0 -> 1.0"},
    {"greater", greater, "a > b.", "1.0, 2.0 -> 0.0"},
    {"greater_equal", greater_equal, "a >= b.", "2.0, 2.0 -> 1.0"},
    {"less", less, "a < b.", "1.0, 2.0 -> 1.0"},
    {"less_equal", less_equal, "a <= b.", "3.0, 2.0 -> 0.0"},
    {"logical_and", logical_and, "Both.", "True, False -> 0.0"},
    {"logical_or", logical_or, "One or both.", "True, False -> 1.0"},
    {"logical_xor", logical_xor, "Exactly one.", "True, True -> 0.0"},
    {"maximum", maximum, "The larger one; NaN if either is.", "1.0, 2.0 -> 2.0"},
    {"minimum", minimum, "The smaller one; NaN if either is.", "1.0, 2.0 -> 1.0"},
    {"multiply", mul, "a * b.", "3.0, 2.0 -> 6.0"},
    {"not_equal", not_equal, "a != b.", "1.0, 1.0 -> 0.0"},
    {"power", pow, "a^b.", "2.0, 3.0 -> 8.0"},
    {"subtract", sub, "a - b.", "3.0, 2.0 -> 1.0"},
};

std::string doc(const std::string& name, const std::string& summary,
                const std::string& example) {
  const auto arrow = example.find(" -> ");
  return fmt::format("{}\n\n>>> round(float(bt.{}({})), 4)\n{}", summary, name,
                     example.substr(0, arrow), example.substr(arrow + 4));
}

using Activation = Value (*)(const Value&);
const std::pair<const char*, Activation> kActivations[] = {
    {"gelu_exact", nn::gelu_exact},
    {"gelu_tanh", nn::gelu_tanh},
    {"hard_sigmoid", nn::hard_sigmoid},
    {"hard_swish", nn::hard_swish},
    {"log_sigmoid", nn::log_sigmoid},
    {"mish", nn::mish},
    {"relu6", nn::relu6},
    {"selu", nn::selu},
    {"silu", nn::silu},
    {"soft_sign", nn::soft_sign},
    {"sparse_plus", nn::sparse_plus},
    {"sparse_sigmoid", nn::sparse_sigmoid},
    {"tanh_shrink", nn::tanh_shrink}};
using NumberActivation = Value (*)(const Value&, double);
struct WithNumber {
  const char* name;
  NumberActivation f;
  const char* number;
  double value;
};
const WithNumber kNumberActivations[] = {{"celu", nn::celu, "alpha", 1},
                                         {"elu", nn::elu, "alpha", 1},
                                         {"hard_shrink", nn::hard_shrink, "lambda_", 0.5},
                                         {"leaky_relu", nn::leaky_relu, "slope", 0.01},
                                         {"prelu", nn::prelu, "slope", 0.25},
                                         {"soft_shrink", nn::soft_shrink, "lambda_", 0.5},
                                         {"squareplus", nn::squareplus, "b", 4}};
using AxisFunction = Value (*)(Arg, std::int64_t);
const std::pair<const char*, AxisFunction> kAlongAxis[] = {{"softmax", softmax},
                                                           {"log_softmax", log_softmax},
                                                           {"logsumexp", logsumexp},
                                                           {"argmax", argmax}};

void def_gelu(py::module_& m) {
  m.def(
      "gelu", [](Arg x, bool approximate) { return nn::gelu(x.value, approximate); },
      py::arg("x"), py::arg("approximate") = true,
      "x (1 + erf(x / sqrt 2)) / 2, approximate: by its usual formula with tanh.\n\n"
      ">>> round(float(bt.gelu(1.0)), 4), round(float(bt.gelu(1.0, False)), 4)\n"
      "(0.8412, 0.8413)");
}

void def_activations(py::module_& m) {
  def_gelu(m);
  for (const auto& [name, f] : kActivations)
    m.def(
        name, [f = f](Arg x) { return f(x.value); }, py::arg("x"),
        fmt::format("The activation {}, entry by entry.\n\n>>> bt.{}([1.0, -1.0]).shape\n"
                    "(2,)",
                    name, name)
            .c_str());
  for (const WithNumber& a : kNumberActivations)
    m.def(
        a.name, [f = a.f](Arg x, double n) { return f(x.value, n); }, py::arg("x"),
        py::arg(a.number) = a.value,
        fmt::format("The activation {}, entry by entry.\n\n>>> bt.{}([1.0, -1.0], {}={})"
                    ".shape\n(2,)",
                    a.name, a.name, a.number, a.value)
            .c_str());
  for (const auto& [name, f] : kAlongAxis)
    m.def(name, f, py::arg("x"), py::arg("axis") = -1,
          fmt::format("{} along an axis.\n\n>>> bt.{}(bt.ones((2, 3))).shape[0]\n2", name,
                      name)
              .c_str());
  m.def(
      "glu", [](Arg x, std::int64_t axis) { return nn::glu(x.value, axis); },
      py::arg("x"), py::arg("axis") = -1,
      "One half times the sigmoid of the other.\n\n"
      ">>> bt.glu([2.0, 0.0]).tolist()\n[1.0]");
}

void def_random(py::module_& m) {
  m.def(
      "random_key", [](std::uint64_t seed) { return key_array(rng_key(seed)); },
      py::arg("seed"),
      "The i32[2] key that a seed stands for.\n\n>>> bt.random_key(0).shape\n(2,)");
  m.def("random_fold_in", &random_fold_in, py::arg("key"), py::arg("data"),
        "An independent key per datum.\n\n"
        ">>> bt.random_fold_in(bt.random_key(0), 1).shape\n(2,)");
  m.def(
      "random_normal",
      [](Arg key, const Size& s, const std::optional<DType>& d) {
        return random_normal(key, s, d.value_or(default_float()));
      },
      py::arg("key"), py::arg("shape"), py::arg("dtype") = py::none(),
      "Standard normal numbers, a pure function of the key.\n\n"
      ">>> bt.random_normal(bt.random_key(0), 3).shape\n(3,)");
  m.def(
      "random_uniform",
      [](Arg key, const Size& s, const std::optional<DType>& d) {
        return random_uniform(key, s, d.value_or(default_float()));
      },
      py::arg("key"), py::arg("shape"), py::arg("dtype") = py::none(),
      "Uniform numbers in [0, 1).\n\n"
      ">>> bt.random_uniform(bt.random_key(0), (2, 3)).shape\n(2, 3)");
  m.def(
      "random_bernoulli",
      [](Arg key, Arg p, const Size& s) { return random_bernoulli(key, p, s); },
      py::arg("key"), py::arg("p"), py::arg("shape"),
      "True with probability p.\n\n"
      ">>> bt.random_bernoulli(bt.random_key(0), 1.0, 2).tolist()\n[True, True]");
}

}  // namespace

void init_ops(py::module_& m) {
  for (const Unary& u : kUnary)
    m.def(u.name, u.f, py::arg("x"), doc(u.name, u.summary, u.example).c_str());
  for (const Binary& b : kBinary)
    m.def(b.name, b.f, py::arg("a"), py::arg("b"),
          doc(b.name, b.summary, b.example).c_str());
  for (const auto& [name, f] : reductions())
    m.def(
        name,
        [f = f](Arg x, const py::object& axis, bool keepdims) {
          return f(x, reduce_options(axis, keepdims));
        },
        py::arg("x"), py::arg("axis") = py::none(), py::arg("keepdims") = false,
        fmt::format("The {} over the given axes, or over all.\n\n"
                    ">>> float(bt.{}([2.0, 2.0, 2.0], axis=0)) > 0\nTrue",
                    name, name)
            .c_str());
  m.def("where", &select, py::arg("condition"), py::arg("if_true"), py::arg("if_false"),
        "Chooses entry by entry.\n\n>>> bt.where([True, False], 1.0, 2.0).tolist()\n"
        "[1.0, 2.0]");
  m.def("clip", &clamp, py::arg("x"), py::arg("min"), py::arg("max"),
        "Every entry into [min, max].\n\n>>> bt.clip([-1.0, 5.0], 0.0, 1.0).tolist()\n"
        "[0.0, 1.0]");
  def_activations(m);
  def_random(m);
}

}  // namespace braintrace::python
