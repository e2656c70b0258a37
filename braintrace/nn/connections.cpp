// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/connections.h"

#include <fmt/format.h>

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

std::vector<LeafSpec> leaves(std::int64_t in, std::int64_t out,
                             const AllToAllOptions& o) {
  internal::positive("AllToAll", "in_size", in);
  internal::positive("AllToAll", "out_size", out);
  BT_REQUIRE(o.include_self || in == out,
             fmt::format("AllToAll: include_self = false needs in_size == out_size, got "
                         "{} and {}",
                         in, out));
  const Shape shape = o.scalar_weight ? Shape{} : Shape{in, out};
  std::vector<LeafSpec> specs = {{"weight", shape, o.w_init}};
  if (o.b_init) specs.push_back({"bias", {out}, o.b_init});
  return specs;
}

std::vector<LeafSpec> leaves(std::int64_t size, const OneToOneOptions& o) {
  internal::positive("OneToOne", "size", size);
  std::vector<LeafSpec> specs = {{"weight", {size}, o.w_init}};
  if (o.b_init) specs.push_back({"bias", {size}, o.b_init});
  return specs;
}

// 1 off the diagonal, 0 on it.
Array off_diagonal(std::int64_t n, DType dtype) {
  Array a = full({n, n}, 1, DType::f64);
  double* p = a.mutable_data<double>();
  for (std::int64_t i = 0; i < n; ++i) p[i * n + i] = 0;
  return a.astype(dtype);
}

}  // namespace

AllToAll::AllToAll(std::int64_t in_size, std::int64_t out_size, AllToAllOptions options)
    : weight(leaves(in_size, out_size, options)),
      in_size_(in_size),
      out_size_(out_size),
      options_(std::move(options)) {
  add("weight", weight);
}

Value AllToAll::matrix_product(const Value& x) {
  Value w = weight.value("weight");
  if (!options_.include_self) w = w * off_diagonal(in_size_, w.dtype());
  return dot(x, w);
}

Value AllToAll::scalar_product(const Value& x) {
  const Value total = sum(x, {.axes = {-1}, .keepdims = true});
  const Value w = weight.value("weight");
  if (!options_.include_self) return w * (total - x);
  Shape shape = x.shape();
  shape.back() = out_size_;
  return broadcast_to(w * total, shape);
}

Value AllToAll::update(Value x) {
  internal::require_features("AllToAll", x, in_size_);
  const Value y = options_.scalar_weight ? scalar_product(x) : matrix_product(x);
  return options_.b_init ? y + weight.value("bias") : y;
}

OneToOne::OneToOne(std::int64_t size, OneToOneOptions options)
    : weight(leaves(size, options)), size_(size), has_bias_(options.b_init != nullptr) {
  add("weight", weight);
}

Value OneToOne::update(Value x) {
  internal::require_features("OneToOne", x, size_);
  const Value y = x * weight.value("weight");
  return has_bias_ ? y + weight.value("bias") : y;
}

}  // namespace braintrace::nn
