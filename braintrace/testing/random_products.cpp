// SPDX-License-Identifier: Apache-2.0
// Recipes of products, trainable ops, loops and branches.
#include "braintrace/testing/random_graph_impl.h"

namespace braintrace::testing::internal {
namespace {

Tangent maybe_bias(Writer& w, const Shape& shape) {
  return w.chance(0.5) ? Tangent(w.parameter(shape)) : std::nullopt;
}

void plain_product(Writer& w) {
  const Value a = w.of_rank(2);
  w.push(w.tame(dot(a, w.like({a.dim(1), 2}))));
}
void batched_product(Writer& w) {
  const Value a = w.of_rank(3);
  const Value b = w.like({a.dim(0), 2, a.dim(2)});
  w.push(w.tame(dot_general(
      a, b,
      {.lhs_contract = {2}, .rhs_contract = {2}, .lhs_batch = {0}, .rhs_batch = {0}})));
}
ConvGeometry geometry(Writer& w) {
  ConvGeometry g;
  g.strides = {1 + w.below(2)};
  g.pad_low = {w.below(2)};
  g.pad_high = {1};
  g.input_dilation = {1};
  g.kernel_dilation = {1};
  return g;
}
void plain_convolution(Writer& w) {
  const Value x = w.like({1, 4, 2});
  w.push(w.tame(conv_general(x, w.like({2, 2, 2}), geometry(w))));
}
void traced_convolution(Writer& w) {
  const Value x = w.like({1, 4, 2});
  w.push(w.tame(conv(x, w.parameter({2, 2, 3}), geometry(w), maybe_bias(w, {3}))));
}
void dense(Writer& w) {
  const Value x = w.of_rank(1 + w.below(2));
  const std::int64_t n = w.size_or(3);
  w.push(w.tame(matmul(x, w.parameter({x.dim(-1), n}), maybe_bias(w, {n}))));
}
void scale(Writer& w) {
  const Value x = w.any();
  w.push(w.tame(x * element_wise(w.parameter(x.shape()))));
}
void grouped(Writer& w) {
  const Value x = w.of_rank(2);
  const std::int64_t g = x.dim(0), k = x.dim(1), n = w.size_or(2);
  w.push(w.tame(grouped_matmul(x, w.parameter({g, k, n}), maybe_bias(w, {g, n}))));
}
void contraction(Writer& w) {
  const Value x = w.of_rank(3);
  const Value weight = w.parameter({x.dim(1), x.dim(2), w.size_or(2)});
  w.push(w.tame(einsum("bhd,hde->bhe", x, weight)));
}
void lookup(Writer& w) {
  w.push(w.tame(embedding(w.index(4, {w.size_or(2)}), w.parameter({4, w.size_or(3)}))));
}
void sparse(Writer& w) {
  const SparseStructure s{.in = 3, .out = 2, .rows = {0, 0, 2}, .cols = {0, 1, 1}};
  w.push(w.tame(sparse_matmul(w.like({2, 3}), w.parameter({3}), s, maybe_bias(w, {2}))));
  w.push(w.tame(sparse_dot(w.like({2, 3}), w.like({3}), s)));
  w.push(w.tame(sparse_outer(w.like({2, 3}), w.like({2, 2}), s)));
}
void low_rank(Writer& w) {
  const Value x = w.of_rank(2);
  const std::int64_t n = w.size_or(3);
  const Value b = w.parameter({x.dim(1), 1}), a = w.parameter({1, n});
  w.push(w.tame(lora_matmul(x, b, a, 0.5, maybe_bias(w, {n}))));
}

void loop(Writer& w) {
  const Shape carry = w.shape();
  const std::int64_t length = 1 + w.below(3);
  const Value xs = w.like({length, 2});
  const ScanResult r =
      scan(w.body({carry, {2}}), {w.like(carry)}, {xs}, {.reverse = w.chance(0.3)});
  w.push(r.carry[0]);
  w.push(r.ys[0]);
}
void branch(Writer& w) {
  const Shape s = w.shape();
  const Values out = cond(w.flag({}), w.body({s}), w.body({s}), {w.like(s), w.any()});
  w.push(out[0]);
}
// No reverse mode: fed and read without derivatives.
void search(Writer& w) {
  const Value x = stop_gradient(w.any());
  const Value start = w.index(2, {});
  const Values out = while_loop([](const Values& c) -> Values { return {less(c[0], 3)}; },
                                [](const Values& c) -> Values {
                                  return {c[0] + 1, sin(c[1] + 0.5)};
                                },
                                {start, x});
  w.push(out[0]);
  w.push(w.tame(out[1]));
}

constexpr Recipe kProducts[] = {
    plain_product, batched_product, plain_convolution, traced_convolution,
    dense,         scale,           grouped,           contraction,
    lookup,        sparse,          low_rank,
};
constexpr Recipe kRegions[] = {loop, loop, branch, branch, search};

}  // namespace

std::span<const Recipe> product_recipes() { return kProducts; }
std::span<const Recipe> region_recipes() { return kRegions; }

}  // namespace braintrace::testing::internal
