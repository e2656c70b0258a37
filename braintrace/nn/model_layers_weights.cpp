// SPDX-License-Identifier: Apache-2.0
// Layers with a weight: the linear family, convolutions, embeddings.
#include <fmt/core.h>

#include "braintrace/nn/conv.h"
#include "braintrace/nn/embedding.h"
#include "braintrace/nn/grouped_linear.h"
#include "braintrace/nn/linear.h"
#include "braintrace/nn/lora.h"
#include "braintrace/nn/model_layers_impl.h"
#include "braintrace/nn/scaled_linear.h"
#include "braintrace/nn/signed_linear.h"
#include "braintrace/nn/sparse_linear.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn::internal {
namespace {

std::unique_ptr<Module> make_linear(LayerSpec& l) {
  return std::make_unique<Linear>(
      l.args.sizes("in_size"), l.args.sizes("out_size"),
      LinearOptions{.b_init = l.bias(), .w_mask = l.array("w_mask")});
}

std::unique_ptr<Module> make_signed(LayerSpec& l) {
  return std::make_unique<SignedWLinear>(
      l.args.size("in_size"), l.args.size("out_size"),
      SignedWLinearOptions{.w_sign = l.array("w_sign")});
}

std::unique_ptr<Module> make_scaled(LayerSpec& l) {
  return std::make_unique<ScaledWSLinear>(
      l.args.size("in_size"), l.args.size("out_size"),
      ScaledWSLinearOptions{
          .b_init = l.bias(),
          .w_mask = l.array("w_mask"),
          .ws_gain = l.has_weight("weight/gain", l.args.flag("ws_gain", true)),
          .eps = l.args.number("eps", 1e-4)});
}

std::unique_ptr<Module> make_sparse(LayerSpec& l) {
  l.args.ignore({"in_size", "out_size"});
  const std::optional<Array> pattern = l.array("spar_mat");
  return std::make_unique<SparseLinear>(
      dense_structure(pattern ? *pattern : l.model.constant("csr_dense_mask")),
      SparseLinearOptions{.b_init = l.bias(false)});
}

std::unique_ptr<Module> make_grouped(LayerSpec& l) {
  return std::make_unique<GroupedLinear>(
      l.args.size("num_groups"), l.args.size("in_features"), l.args.size("out_features"),
      GroupedLinearOptions{.b_init = l.bias()});
}

// The base module is a Linear, and there when the file has weights for it.
std::unique_ptr<Module> make_lora(LayerSpec& l) {
  const std::int64_t in = l.args.size("in_features"), out = l.args.size("out_features");
  l.args.ignore({"in_size"});
  LoRAOptions options;
  if (l.has_weight("base_module/weight/weight", false)) {
    const bool bias = l.has_weight("base_module/weight/bias", true);
    options.base_module = std::make_shared<Linear>(
        in, out, LinearOptions{.b_init = bias ? init::zero() : Initializer{}});
  }
  return std::make_unique<LoRA>(in, l.args.size("lora_rank"), out, options);
}

std::unique_ptr<Module> make_embedding(LayerSpec& l) {
  ModelSpec& a = l.args;
  EmbeddingOptions options{.norm_type = a.number("norm_type", 2),
                           .scale_grad_by_freq = a.flag("scale_grad_by_freq", false),
                           .freeze = a.flag("freeze", false)};
  if (a.find("padding_idx")) options.padding_idx = a.integers("padding_idx", {}).at(0);
  if (a.find("max_norm")) options.max_norm = a.number("max_norm", 0);
  l.rank = 1;
  return std::make_unique<Embedding>(a.size("num_embeddings"), a.size("embedding_size"),
                                     options);
}

PerAxis per_spatial_axis(ModelSpec& args, const char* name) {
  return args.find(name) ? PerAxis(args.sizes(name)) : PerAxis(1);
}

// "SAME", 1, [1, 2] or [[0, 1], [1, 1]].
Padding padding_option(ModelSpec& args) {
  const nlohmann::json* j = args.find("padding");
  if (!j) return "SAME";
  if (j->is_string()) return j->get<std::string>();
  if (!j->is_array()) {
    const std::int64_t n = args.integers("padding", {})[0];
    return Padding::Pairs{{n, n}};
  }
  if (j->empty() || !j->front().is_array()) return args.integers("padding", {});
  Padding::Pairs pairs;
  for (const nlohmann::json& p : *j) {
    const bool is_pair = p.is_array() && p.size() == 2 && p[0].is_number_integer() &&
                         p[1].is_number_integer();
    if (!is_pair) args.refuse("padding", "a name, numbers or (low, high) pairs");
    pairs.emplace_back(p[0].get<std::int64_t>(), p[1].get<std::int64_t>());
  }
  return pairs;
}

template <int N>
std::unique_ptr<Module> make_conv(LayerSpec& l) {
  ModelSpec& a = l.args;
  ConvOptions options{.kernel_size = per_spatial_axis(a, "kernel_size"),
                      .stride = per_spatial_axis(a, "stride"),
                      .padding = padding_option(a),
                      .lhs_dilation = per_spatial_axis(a, "lhs_dilation"),
                      .rhs_dilation = per_spatial_axis(a, "rhs_dilation"),
                      .groups = a.size("groups", 1),
                      .b_init = l.bias(a.flag("bias", false)),
                      .w_mask = l.array("w_mask"),
                      .channel_first = a.flag("channel_first", false)};
  l.rank = N + 1;
  const Ints in = a.sizes("in_size");
  if (in.size() == 1)
    return std::make_unique<Conv<N>>(in[0], a.size("out_channels"), options);
  return std::make_unique<Conv<N>>(in, a.size("out_channels"), options);
}

}  // namespace

std::vector<LayerKind> weight_layers() {
  return {
      {"Conv1d", make_conv<1>},
      {"Conv2d", make_conv<2>},
      {"Conv3d", make_conv<3>},
      {"Embedding", make_embedding},
      {"GroupedLinear", make_grouped},
      {"Linear", make_linear},
      {"LoRA", make_lora},
      {"ScaledWSLinear", make_scaled},
      {"SignedWLinear", make_signed},
      {"SparseLinear", make_sparse},
  };
}

}  // namespace braintrace::nn::internal
