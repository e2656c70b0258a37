// SPDX-License-Identifier: Apache-2.0
#pragma once
// A low-rank layer, alone or on top of another one.
#include <memory>

#include "braintrace/model/module.h"
#include "braintrace/nn/initializers.h"

namespace braintrace::nn {

struct LoRAOptions {
  std::shared_ptr<Module> base_module = {};  // its output is added
  Initializer kernel_init =
      init::lecun_normal();  // both factors; zeros in both never train
};

// y = (1 / r) x lora_a lora_b (+ base_module(x)).
// Parameter 'weight' with leaves lora_a [in, r] and lora_b [r, out].
class LoRA : public Module {
 public:
  LoRA(std::int64_t in_features, std::int64_t lora_rank, std::int64_t out_features,
       LoRAOptions options = {});
  Value update(Value x) override;

  ParamState weight;

 private:
  std::int64_t in_features_, rank_;
  std::shared_ptr<Module> base_;
};

}  // namespace braintrace::nn
