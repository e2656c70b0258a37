// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of one random program while it is written, and the recipes that extend it.
#include <memory>
#include <span>

#include "braintrace/array/rng.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/testing/random_graph.h"

namespace braintrace::testing::internal {

class Writer {
 public:
  Writer(std::uint64_t seed, const RandomGraphOptions& options);

  // ---- chance ----
  std::int64_t below(std::int64_t n);  // 0 .. n-1
  double real(double low, double high);
  bool chance(double p) { return real(0, 1) < p; }

  // ---- values: f64 within about [-4, 4], i32, boolean ----
  Value any();                                      // f64 of any shape
  Value of_rank(std::int64_t rank);                 // f64 with that many axes
  Value like(const Shape& shape);                   // f64 of that shape
  Value flag(const Shape& shape);                   // boolean
  Value index(std::int64_t n, const Shape& shape);  // i32 in [0, n)
  Value key();                                      // i32[2], for random ops
  Value parameter(const Shape& shape);              // a new f64 input of the program
  Shape shape();                                    // small, rank 0 to 3
  Shape shape_of(std::int64_t rank);
  std::int64_t size();                            // of an axis
  std::int64_t size_or(std::int64_t n);           // n unless sizes are odd
  Value fit(const Value& v, const Shape& shape);  // reduce and stretch
  Value tame(const Value& v);                     // back into range, smoothly
  Value positive(const Value& v);                 // above 0.5

  // ---- writing ----
  void push(const Value& v);  // any type
  // A body for scan, while or cond: a few recipes on the arguments; results as asked.
  ValuesFn body(std::vector<Shape> results);
  // An op without inputs, recorded where the program is being written.
  Value record_source(std::string_view op, Attrs attrs);
  bool may_nest() const { return depth_ < options_.max_depth; }

  Program finish();

 private:
  struct Scope {
    std::shared_ptr<Builder> builder;
    Values floats, integers, flags;
  };
  Scope& scope() { return scopes_.back(); }
  Value input(const Array& a);
  void write(int steps);

  RngKey key_;
  std::uint64_t counter_ = 0;
  RandomGraphOptions options_;
  std::vector<Scope> scopes_;
  std::vector<Array> inputs_;
  std::vector<std::int64_t> sizes_;  // of this program; empty: 1 to 3
  int depth_ = 0;
};

using Recipe = void (*)(Writer&);
std::span<const Recipe> elementwise_recipes();
std::span<const Recipe> shape_recipes();
std::span<const Recipe> product_recipes();
std::span<const Recipe> region_recipes();

}  // namespace braintrace::testing::internal
