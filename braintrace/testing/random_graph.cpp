// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/random_graph.h"

#include <algorithm>
#include <array>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/random_graph_impl.h"

namespace braintrace::testing {
namespace internal {

Writer::Writer(std::uint64_t seed, const RandomGraphOptions& options)
    : key_(rng_key(seed)), options_(options) {
  constexpr std::array<std::int64_t, 12> kOdd = {1, 2, 3, 4, 5, 7, 8, 16, 17, 24, 33, 65};
  for (int i = 0; options_.odd_sizes && i < 3; ++i)
    sizes_.push_back(kOdd[static_cast<std::size_t>(below(kOdd.size()))]);
  scopes_.push_back({Builder::create(), {}, {}, {}});
  for (int i = 0; i < 3; ++i) push(parameter(shape()));
}

std::int64_t Writer::below(std::int64_t n) {
  return static_cast<std::int64_t>(real(0, 1) * static_cast<double>(n));
}

double Writer::real(double low, double high) {
  return low + (high - low) * uniform_at(key_, counter_++);
}

std::int64_t Writer::size() {
  const std::int64_t i = below(3);
  return sizes_.empty() ? 1 + i : sizes_[static_cast<std::size_t>(i)];
}

std::int64_t Writer::size_or(std::int64_t n) { return sizes_.empty() ? n : size(); }

Shape Writer::shape() { return shape_of(below(4)); }

Shape Writer::shape_of(std::int64_t rank) {
  constexpr std::int64_t kMost = 20000;
  Shape s(static_cast<std::size_t>(rank));
  for (std::int64_t& d : s) d = size();
  for (std::int64_t& d : s)
    if (num_elements(s) > kMost) d = 3;
  return s;
}

Value Writer::input(const Array& a) {
  inputs_.push_back(a);
  return scopes_.front().builder->input(type_of(a));
}

Value Writer::parameter(const Shape& shape) {
  const RngKey key = fold_in(key_, 1000 + inputs_.size());
  return input(random_uniform(key, shape, -1.5, 1.5, DType::f64));
}

Value Writer::key() { return input(key_array(fold_in(key_, 5000 + inputs_.size()))); }

Value Writer::any() {
  const Values& pool = scope().floats;
  // The newest values are picked more often, so that programs grow deep.
  const auto n = static_cast<std::int64_t>(pool.size());
  const std::int64_t i =
      chance(0.5) ? n - 1 - below(std::min<std::int64_t>(n, 3)) : below(n);
  return pool[static_cast<std::size_t>(i)];
}

Value Writer::of_rank(std::int64_t rank) {
  const Value v = any();
  if (v.rank() == rank) return v;
  return fit(v, shape_of(rank));
}

Value Writer::like(const Shape& shape) { return fit(any(), shape); }

Value Writer::fit(const Value& v, const Shape& shape) {
  if (broadcasts_to(v.shape(), shape)) return broadcast_to(v, shape);
  if (num_elements(v.shape()) == num_elements(shape)) return reshape(v, shape);
  // A mean may be zero up to rounding, and then decide what floor or a comparison gives.
  if (!sizes_.empty()) return (mean(v) + 0.3) * parameter(shape);
  return broadcast_to(mean(v), shape);
}

Value Writer::tame(const Value& v) {
  switch (below(3)) {
    case 0:
      return tanh(v);
    case 1:
      return sin(v);
    default:
      return 2 * sigmoid(v) - 1;
  }
}

Value Writer::positive(const Value& v) { return softplus(v) + 0.5; }

Value Writer::flag(const Shape& shape) {
  if (!scope().flags.empty() && chance(0.5)) {
    const Value f = scope().flags[static_cast<std::size_t>(
        below(static_cast<std::int64_t>(scope().flags.size())))];
    if (broadcasts_to(f.shape(), shape)) return broadcast_to(f, shape);
  }
  return greater(like(shape), real(-0.3, 0.3));
}

Value Writer::index(std::int64_t n, const Shape& shape) {
  // Away from whole numbers where the argument is a zero up to rounding.
  const Value scaled = (0.47 + 0.46 * tanh(like(shape))) * static_cast<double>(n);
  return astype(floor(stop_gradient(scaled)), DType::i32);
}

void Writer::push(const Value& v) {
  if (v.dtype() == DType::i32) scope().integers.push_back(v);
  if (v.dtype() == DType::boolean) scope().flags.push_back(v);
  if (v.dtype() == DType::f64) scope().floats.push_back(v);
}

Value Writer::record_source(std::string_view op, Attrs attrs) {
  return scope().builder->record(*find_op(op_table(), op), {}, std::move(attrs))[0];
}

void Writer::write(int steps) {
  const std::span<const Recipe> kinds[] = {elementwise_recipes(), shape_recipes(),
                                           product_recipes(), region_recipes()};
  for (int i = 0; i < steps; ++i) {
    const double p = real(0, 1);
    std::size_t kind = p < 0.4 ? 0 : p < 0.7 ? 1 : p < 0.92 ? 2 : 3;
    if (kind == 3 && !may_nest()) kind = 0;
    const auto n = static_cast<std::int64_t>(kinds[kind].size());
    kinds[kind][static_cast<std::size_t>(below(n))](*this);
  }
}

ValuesFn Writer::body(std::vector<Shape> results) {
  return [this, results](const Values& args) {
    Scope inner{nullptr, {}, {}, {}};
    for (const Value& v : args)
      if (!v.is_concrete()) inner.builder = v.builder();
    for (int i = 0; i < 2; ++i) inner.floats.push_back(any());  // captured
    scopes_.push_back(inner);
    for (const Value& v : args) push(v);
    ++depth_;
    write(1 + static_cast<int>(below(3)));
    Values out;
    for (const Shape& s : results) out.push_back(tame(like(s)));
    --depth_;
    scopes_.pop_back();
    return out;
  };
}

Program Writer::finish() {
  write(options_.min_steps +
        static_cast<int>(below(options_.max_steps - options_.min_steps + 1)));
  const Scope& s = scope();
  const std::size_t n = s.floats.size();
  Value loss = mean(s.floats[n - 1]);
  for (std::size_t i = 3; i + 1 < n; ++i)
    if (chance(0.7)) loss = loss + real(0.2, 1) * mean(s.floats[i]);
  Values outputs = {loss, any()};
  if (!s.integers.empty()) outputs.push_back(s.integers.back());
  if (!s.flags.empty()) outputs.push_back(s.flags.back());
  return {s.builder->finish(outputs), inputs_};
}

}  // namespace internal

Program random_graph(std::uint64_t seed, const RandomGraphOptions& options) {
  return internal::Writer(seed, options).finish();
}

std::map<std::string, int> count_ops(const Graph& g) {
  std::map<std::string, int> count;
  for (const Node& n : g.nodes()) {
    ++count[std::string(n.op->name)];
    for (const auto& [name, value] : n.attrs.entries())
      if (const auto* sub = std::get_if<GraphPtr>(&value))
        for (const auto& [op, uses] : count_ops(**sub)) count[op] += uses;
  }
  return count;
}

std::size_t count_nodes(const Graph& g) {
  std::size_t n = 0;
  for (const auto& [op, uses] : count_ops(g)) n += static_cast<std::size_t>(uses);
  return n;
}

}  // namespace braintrace::testing
