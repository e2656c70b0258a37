// SPDX-License-Identifier: Apache-2.0
// Recipes of shape, index, reduction and random ops.
#include <algorithm>

#include "braintrace/testing/random_graph_impl.h"

namespace braintrace::testing::internal {
namespace {

std::int64_t some_axis(Writer& w, const Value& v) { return w.below(v.rank()); }

void stretch(Writer& w) {
  const Value x = w.any();
  if (x.rank() > 2) return w.push(mean(x, {.axes = {0}}));
  Shape s = x.shape();
  s.insert(s.begin(), 2);
  w.push(broadcast_to(x, s));
}
void join(Writer& w) {
  const Value x = w.of_rank(1 + w.below(2));
  w.push(concat({x, w.like(x.shape())}, some_axis(w, x)));
}
void reverse(Writer& w) {
  const Value x = w.of_rank(1 + w.below(3));
  w.push(flip(x, {some_axis(w, x)}));
}
void count_up(Writer& w) {
  const std::int64_t n = 1 + w.below(4);
  const Value i = w.record_source("iota", {{"n", n}, {"dtype", DType::i32}});
  w.push(i);
  w.push(w.like({n}) * (0.2 * astype(i, DType::f64)));
}
void frame(Writer& w) {
  const Value x = w.of_rank(1);
  w.push(pad(x, {w.below(2)}, {w.below(3)}, 0.3, {w.below(2)}));
}
void flatten(Writer& w) {
  const Value x = w.any();
  w.push(reshape(x, {num_elements(x.shape())}));
}
void rotate(Writer& w) {
  const Value x = w.of_rank(1 + w.below(2));
  w.push(roll(x, 1 + w.below(2), some_axis(w, x)));
}
void cut(Writer& w) {
  const Value x = w.of_rank(1 + w.below(3));
  const std::int64_t axis = some_axis(w, x);
  const std::int64_t n = x.dim(axis), start = w.below(n);
  w.push(slice_axis(x, axis, start, 1 + w.below(n - start)));
}
void turn(Writer& w) { w.push(transpose(w.of_rank(2 + w.below(2)))); }
void pick_rows(Writer& w) {
  const Value x = w.of_rank(1 + w.below(2));
  const std::int64_t axis = some_axis(w, x);
  w.push(take(x, w.index(x.dim(axis), {2}), axis));
}
void add_rows(Writer& w) {
  const Value x = w.of_rank(2);
  const Value updates = w.like({3, x.dim(1)});
  w.push(w.tame(scatter_add(x, w.index(x.dim(0), {3}), updates, 0)));
}
void total(Writer& w) {
  const Value x = w.of_rank(1 + w.below(3));
  w.push(w.tame(sum(x, {.axes = {some_axis(w, x)}, .keepdims = w.chance(0.3)})));
}
void largest(Writer& w) {
  const Value x = w.of_rank(1 + w.below(2));
  w.push(max(x, {.axes = {some_axis(w, x)}}));
}
void smallest(Writer& w) {
  const Value x = w.of_rank(1 + w.below(2));
  w.push(min(x, {.axes = {some_axis(w, x)}}));
}
void product(Writer& w) {
  const Value x = w.of_rank(1 + w.below(2));
  w.push(w.tame(prod(tanh(x), {.axes = {some_axis(w, x)}})));
}
void where_largest(Writer& w) {
  const Value x = w.of_rank(1 + w.below(2));
  w.push(argmax(x, some_axis(w, x)));
}
void running_total(Writer& w) {
  const Value x = w.of_rank(1 + w.below(2));
  w.push(w.tame(cumsum(x, some_axis(w, x), w.chance(0.5))));
}
void spread(Writer& w) { w.push(softmax(w.of_rank(1 + w.below(2)))); }
void normalised(Writer& w) { w.push(layer_norm(w.of_rank(1 + w.below(2)), {-1}, 0.1)); }
void coin(Writer& w) {
  const Shape s = w.shape();
  w.push(random_bernoulli(w.key(), sigmoid(w.like(s)), s));
}
void noise(Writer& w) {
  const Value x = w.any();
  w.push(w.tame(x + 0.1 * random_normal(w.key(), x.shape(), DType::f64)));
}
void uniform_noise(Writer& w) {
  const Value x = w.any();
  const Value key = random_fold_in(w.key(), w.index(4, {}));
  w.push(x * random_uniform(key, x.shape(), DType::f64));
}

constexpr Recipe kShapeRecipes[] = {
    stretch,    join,     reverse, count_up,      frame,         flatten,
    rotate,     cut,      turn,    pick_rows,     add_rows,      total,
    largest,    smallest, product, where_largest, running_total, spread,
    normalised, coin,     noise,   uniform_noise,
};

}  // namespace

std::span<const Recipe> shape_recipes() { return kShapeRecipes; }

}  // namespace braintrace::testing::internal
