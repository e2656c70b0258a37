// SPDX-License-Identifier: Apache-2.0
// Activations as modules.
#include "layers.h"
#include <fmt/format.h>

#include "braintrace/nn/activation_layers.h"

namespace braintrace::python {
namespace {

using namespace nn;
using Made = std::shared_ptr<Module>;

template <class M>
Made make_plain(Reader& r) {
  r.done();
  return r.own<M>();
}

// Activations with one number: its name and default.
struct OneNumber {
  const char* name;
  double value;
};
constexpr OneNumber kAlpha{"alpha", 1}, kLambda{"lambda_", 0.5},
    kSlope{"negative_slope", 0.01};

template <class M, const OneNumber& N>
Made make_with(Reader& r) {
  double number = N.value;
  r.take(N.name, number);
  r.done();
  return r.own<M>(number);
}

template <class M>
Made make_axis(Reader& r) {
  std::int64_t axis = -1;
  r.take("axis", axis);
  r.done();
  return r.own<M>(axis);
}

Made make_celu(Reader& r) {
  double alpha = kAlpha.value;
  r.take(kAlpha.name, alpha);
  r.done();
  BT_REQUIRE(alpha > 0, fmt::format("CELU: alpha must be > 0, got {}", alpha));
  return r.own<CELU>(alpha);
}

Made make_apply(Reader& r) {
  Activation f = "tanh";
  r.take("f", f);
  r.done();
  return r.own<Apply>(f);
}

Made make_gelu(Reader& r) {
  bool approximate = false;
  r.take("approximate", approximate);
  r.done();
  return r.own<GELU>(approximate);
}

Made make_hard_tanh(Reader& r) {
  double low = -1, high = 1;
  r.take("min_val", low);
  r.take("max_val", high);
  r.done();
  return r.own<HardTanh>(low, high);
}

Made make_prelu(Reader& r) {
  std::int64_t n = 1;
  double slope = 0.25;
  r.take("num_parameters", n);
  r.take("init", slope);
  r.done();
  return r.own<PReLU>(n, slope);
}

Made make_rrelu(Reader& r) {
  double low = 0.125, high = 1.0 / 3;
  r.take("lower", low);
  r.take("upper", high);
  r.done();
  return r.own<RReLU>(low, high);
}

}  // namespace

std::span<const LayerSpec> activation_layers() {
  static const LayerSpec table[] = {
      {"Apply", "Module", make_apply, typeid(Apply), "Any function of one value.",
       "Apply('tanh')", "3", "(3,)"},
      {"GELU", "Module", make_gelu, typeid(GELU), "x (1 + erf(x / sqrt 2)) / 2.",
       "GELU()", "3", "(3,)"},
      {"HardSigmoid", "Module", make_plain<HardSigmoid>, typeid(HardSigmoid),
       "clip(x + 3, 0, 6) / 6.", "HardSigmoid()", "3", "(3,)"},
      {"HardSwish", "Module", make_plain<HardSwish>, typeid(HardSwish),
       "x hard_sigmoid(x).", "HardSwish()", "3", "(3,)"},
      {"Identity", "Module", make_plain<Identity>, typeid(Identity), "x.", "Identity()",
       "3", "(3,)"},
      {"LogSigmoid", "Module", make_plain<LogSigmoid>, typeid(LogSigmoid),
       "log sigmoid(x).", "LogSigmoid()", "3", "(3,)"},
      {"Mish", "Module", make_plain<Mish>, typeid(Mish), "x tanh(softplus(x)).", "Mish()",
       "3", "(3,)"},
      {"ReLU", "Module", make_plain<ReLU>, typeid(ReLU), "max(x, 0).", "ReLU()", "3",
       "(3,)"},
      {"ReLU6", "Module", make_plain<ReLU6>, typeid(ReLU6), "clip(x, 0, 6).", "ReLU6()",
       "3", "(3,)"},
      {"SELU", "Module", make_plain<SELU>, typeid(SELU), "The self-normalising unit.",
       "SELU()", "3", "(3,)"},
      {"SiLU", "Module", make_plain<SiLU>, typeid(SiLU), "x sigmoid(x).", "SiLU()", "3",
       "(3,)"},
      {"Sigmoid", "Module", make_plain<Sigmoid>, typeid(Sigmoid), "1 / (1 + e^-x).",
       "Sigmoid()", "3", "(3,)"},
      {"SoftSign", "Module", make_plain<SoftSign>, typeid(SoftSign), "x / (1 + |x|).",
       "SoftSign()", "3", "(3,)"},
      {"Softplus", "Module", make_plain<Softplus>, typeid(Softplus), "log(1 + e^x).",
       "Softplus()", "3", "(3,)"},
      {"Tanh", "Module", make_plain<Tanh>, typeid(Tanh), "tanh(x).", "Tanh()", "3",
       "(3,)"},
      {"TanhShrink", "Module", make_plain<TanhShrink>, typeid(TanhShrink), "x - tanh(x).",
       "TanhShrink()", "3", "(3,)"},
  };
  return table;
}

std::span<const LayerSpec> shaped_activation_layers() {
  static const LayerSpec table[] = {
      {"CELU", "Module", make_celu, typeid(CELU),
       "x, below 0: alpha (e^(x / alpha) - 1).", "CELU()", "3", "(3,)"},
      {"ELU", "Module", make_with<ELU, kAlpha>, typeid(ELU),
       "x, below 0: alpha (e^x - 1).", "ELU()", "3", "(3,)"},
      {"HardShrink", "Module", make_with<HardShrink, kLambda>, typeid(HardShrink),
       "0 where |x| <= lambda_.", "HardShrink()", "3", "(3,)"},
      {"LeakyReLU", "Module", make_with<LeakyReLU, kSlope>, typeid(LeakyReLU),
       "x, below 0: slope x.", "LeakyReLU()", "3", "(3,)"},
      {"SoftShrink", "Module", make_with<SoftShrink, kLambda>, typeid(SoftShrink),
       "x moved towards 0 by lambda_.", "SoftShrink()", "3", "(3,)"},
      {"GLU", "Module", make_axis<GLU>, typeid(GLU), "First half * sigmoid(second half).",
       "GLU()", "4", "(2,)"},
      {"LogSoftmax", "Module", make_axis<LogSoftmax>, typeid(LogSoftmax),
       "log softmax(x).", "LogSoftmax()", "3", "(3,)"},
      {"Softmax", "Module", make_axis<Softmax>, typeid(Softmax), "e^x / sum e^x.",
       "Softmax()", "3", "(3,)"},
      {"Softmin", "Module", make_axis<Softmin>, typeid(Softmin), "softmax(-x).",
       "Softmin()", "3", "(3,)"},
      {"HardTanh", "Module", make_hard_tanh, typeid(HardTanh),
       "clip(x, min_val, max_val).", "HardTanh()", "3", "(3,)"},
      {"PReLU", "Module", make_prelu, typeid(PReLU), "x, below 0: learnt slope times x.",
       "PReLU()", "3", "(3,)"},
      {"RReLU", "Module", make_rrelu, typeid(RReLU), "x, below 0: random slope times x.",
       "RReLU()", "3", "(3,)"},
  };
  return table;
}

}  // namespace braintrace::python
