// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/embedding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

void check_options(std::int64_t n, const EmbeddingOptions& o) {
  BT_REQUIRE(!o.padding_idx || (*o.padding_idx >= -n && *o.padding_idx < n),
             fmt::format("Embedding: padding_idx must lie in [{}, {}), got {}", -n, n,
                         o.padding_idx.value_or(0)));
  std::vector<std::string> refused;
  if (o.max_norm) refused.push_back("max_norm");
  if (o.freeze) refused.push_back("freeze");
  if (o.scale_grad_by_freq) refused.push_back("scale_grad_by_freq");
  if (o.padding_idx) refused.push_back("padding_idx");
  BT_REQUIRE_KIND(refused.empty(), ErrorKind::not_implemented,
                  fmt::format("Embedding: these options are not available for traced "
                              "tables: {}",
                              fmt::join(refused, ", ")));
}

Shape table_shape(std::int64_t n, const Shape& size, const EmbeddingOptions& o) {
  internal::positive("Embedding", "num_embeddings", n);
  for (std::int64_t d : size)
    internal::positive("Embedding", "every entry of embedding_size", d);
  BT_REQUIRE(!size.empty(), "Embedding: embedding_size must not be empty, got []");
  check_options(n, o);
  Shape shape = {n};
  shape.insert(shape.end(), size.begin(), size.end());
  return shape;
}

}  // namespace

Embedding::Embedding(std::int64_t num_embeddings, Shape embedding_size,
                     EmbeddingOptions options)
    : weight(table_shape(num_embeddings, embedding_size, options),
             options.embedding_init),
      num_embeddings_(num_embeddings),
      size_(std::move(embedding_size)) {
  add("weight", weight);
}

Embedding::Embedding(std::int64_t num_embeddings, std::int64_t embedding_size,
                     EmbeddingOptions options)
    : Embedding(num_embeddings, Shape{embedding_size}, std::move(options)) {}

Value Embedding::update(Value indices) {
  BT_REQUIRE_KIND(
      indices.dtype() == DType::i32, ErrorKind::type,
      fmt::format("Embedding: indices must be i32, got {}", to_string(indices.dtype())));
  if (size_.size() == 1) return embedding(indices, weight.value());
  const Value table = reshape(weight.value(), {num_embeddings_, num_elements(size_)});
  Shape shape = indices.shape();
  shape.insert(shape.end(), size_.begin(), size_.end());
  return reshape(embedding(indices, table), shape);
}

}  // namespace braintrace::nn
