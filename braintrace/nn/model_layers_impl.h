// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layers by the name of their class, with the reference's arguments.
#include "braintrace/nn/model_spec_impl.h"

namespace braintrace::nn::internal {

// One layer of a model. `rank` is the number of axes of one sample, updated.
struct LayerSpec {
  std::string name;  // "" when the layer is the model
  ModelSpec args;
  ModelSpec& model;
  std::int64_t rank;

  std::string path(const std::string& leaf) const;  // in the model
  // Whether the layer has the leaf: as the weights of the file say, else `otherwise`.
  bool has_weight(const std::string& leaf, bool otherwise) const;
  // Empty: no bias. The weights settle it, then b_init (null or a number).
  Initializer bias(bool otherwise = true);
  // An array, a number, or the name of one of the model's constants; when absent, the
  // constant "<layer>/<option>".
  std::optional<Array> array(const std::string& option);
};

using LayerMaker = std::unique_ptr<Module> (*)(LayerSpec&);
struct LayerKind {
  const char* name;
  LayerMaker make;
};

std::vector<LayerKind> cell_layers();
std::vector<LayerKind> weight_layers();
std::vector<LayerKind> shape_layers();
std::vector<LayerKind> activation_layers();

// UserError on an unknown class (lists the known ones) or option.
std::unique_ptr<Module> make_layer(const std::string& cls, LayerSpec& layer);

}  // namespace braintrace::nn::internal
