// SPDX-License-Identifier: Apache-2.0
#pragma once
// Vectors looked up by integer.
#include "braintrace/model/module.h"
#include "braintrace/nn/initializers.h"

namespace braintrace::nn {

// Everything but the initialiser is accepted and refused by name (not_implemented), so
// that a model which relies on it cannot run without it.
struct EmbeddingOptions {
  Initializer embedding_init = init::lecun_uniform();
  std::optional<std::int64_t> padding_idx = {};
  std::optional<double> max_norm = {};
  double norm_type = 2.0;
  bool scale_grad_by_freq = false;
  bool freeze = false;
};

// y = table[i] for i32 indices of any shape; an index outside [0, n) is a UserError when
// run. Parameter 'weight' [num_embeddings, *embedding_size].
class Embedding : public Module {
 public:
  Embedding(std::int64_t num_embeddings, Shape embedding_size,
            EmbeddingOptions options = {});
  Embedding(std::int64_t num_embeddings, std::int64_t embedding_size,
            EmbeddingOptions options = {});
  Value update(Value indices) override;

  ParamState weight;

 private:
  std::int64_t num_embeddings_;
  Shape size_;
};

}  // namespace braintrace::nn
