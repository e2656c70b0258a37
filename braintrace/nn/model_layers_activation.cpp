// SPDX-License-Identifier: Apache-2.0
// Activations as layers, in the reference's spelling and in ours.
#include "braintrace/nn/activation_layers.h"
#include "braintrace/nn/model_layers_impl.h"

namespace braintrace::nn::internal {
namespace {

template <class Layer>
std::unique_ptr<Module> make_pointwise(LayerSpec&) {
  return std::make_unique<Layer>();
}

template <class Layer>
std::unique_ptr<Module> make_alpha(LayerSpec& l) {
  return std::make_unique<Layer>(l.args.number("alpha", 1));
}

template <class Layer>
std::unique_ptr<Module> make_along(LayerSpec& l) {
  return std::make_unique<Layer>(
      l.args.integers("dim", l.args.integers("axis", {-1})).at(0));
}

template <class Layer>
std::unique_ptr<Module> make_shrink(LayerSpec& l) {
  return std::make_unique<Layer>(l.args.number("lambd", 0.5));
}

std::unique_ptr<Module> make_gelu(LayerSpec& l) {
  return std::make_unique<GELU>(l.args.flag("approximate", false));
}

std::unique_ptr<Module> make_leaky_relu(LayerSpec& l) {
  return std::make_unique<LeakyReLU>(l.args.number("negative_slope", 0.01));
}

std::unique_ptr<Module> make_hard_tanh(LayerSpec& l) {
  return std::make_unique<HardTanh>(l.args.number("min_val", -1),
                                    l.args.number("max_val", 1));
}

std::unique_ptr<Module> make_prelu(LayerSpec& l) {
  return std::make_unique<PReLU>(l.args.size("num_parameters", 1),
                                 l.args.number("init", 0.25));
}

std::unique_ptr<Module> make_rrelu(LayerSpec& l) {
  return std::make_unique<RReLU>(l.args.number("lower", 0.125),
                                 l.args.number("upper", 1.0 / 3));
}

}  // namespace

std::vector<LayerKind> activation_layers() {
  return {
      {"CELU", make_alpha<CELU>},
      {"ELU", make_alpha<ELU>},
      {"GELU", make_gelu},
      {"GLU", make_along<GLU>},
      {"HardShrink", make_shrink<HardShrink>},
      {"HardSigmoid", make_pointwise<HardSigmoid>},
      {"HardSwish", make_pointwise<HardSwish>},
      {"HardTanh", make_hard_tanh},
      {"Hardshrink", make_shrink<HardShrink>},
      {"Hardsigmoid", make_pointwise<HardSigmoid>},
      {"Hardswish", make_pointwise<HardSwish>},
      {"Hardtanh", make_hard_tanh},
      {"Identity", make_pointwise<Identity>},
      {"LeakyReLU", make_leaky_relu},
      {"LogSigmoid", make_pointwise<LogSigmoid>},
      {"LogSoftmax", make_along<LogSoftmax>},
      {"Mish", make_pointwise<Mish>},
      {"PReLU", make_prelu},
      {"RReLU", make_rrelu},
      {"ReLU", make_pointwise<ReLU>},
      {"ReLU6", make_pointwise<ReLU6>},
      {"SELU", make_pointwise<SELU>},
      {"SiLU", make_pointwise<SiLU>},
      {"Sigmoid", make_pointwise<Sigmoid>},
      {"SoftShrink", make_shrink<SoftShrink>},
      {"SoftSign", make_pointwise<SoftSign>},
      {"Softmax", make_along<Softmax>},
      {"Softmin", make_along<Softmin>},
      {"Softplus", make_pointwise<Softplus>},
      {"Softshrink", make_shrink<SoftShrink>},
      {"Softsign", make_pointwise<SoftSign>},
      {"Tanh", make_pointwise<Tanh>},
      {"TanhShrink", make_pointwise<TanhShrink>},
      {"Tanhshrink", make_pointwise<TanhShrink>},
  };
}

}  // namespace braintrace::nn::internal
