// SPDX-License-Identifier: Apache-2.0
#pragma once
// A value read as a sum of products, einsum-like: every axis has a label, axes that are
// multiplied position by position share one, and labels that the result does not have are
// summed over. Sums, products, stretched and permuted operands all become labels.
#include <optional>

#include "braintrace/passes/lowered_impl.h"

namespace braintrace {

using Labels = Ints;

// A value of the old graph. One label per axis; -1: an axis of size 1 that is dropped.
struct Factor {
  ValueId base;
  Labels labels;
};

// scale * sum of the product of the factors
struct Term {
  double scale = 1;
  std::vector<Factor> factors = {};
  int sums = 0;   // reductions met on the way to the factors
  int gemms = 0;  // products with contraction met
};

struct SumOfProducts {
  Labels out;   // of the value, by axis
  Shape sizes;  // by label
  std::vector<Term> terms;
};

struct ExpandOptions {
  bool split_gemms = true;  // else a product with contraction is a factor
  // Operands of products are read as the products they are, whoever else reads them.
  bool split_operands = false;
};
// Follows v's inputs while nobody else reads them; permuted and stretched values are
// looked through always.
SumOfProducts expand_products(const LoweredGraph& g, ValueId v,
                              const ExpandOptions& options = {});

// One side of a product of two: factors multiplied position by position (the first has
// all the labels), or, with signs, added. `outer`: operands whose product over all their
// labels comes before any factor.
struct Operand {
  Labels labels;
  std::vector<Factor> factors;
  std::vector<double> signs = {};
  std::vector<Operand> outer = {};
};
// scale * operand, or scale * product of two operands, summed as the labels say, then
// multiplied by the factors outside.
struct Contraction {
  double scale = 1;
  std::vector<Operand> operands;
  std::vector<Factor> outside = {};
  int sums = 0, gemms = 0;
  bool as_product = true;  // else multiplied position by position, then summed
  Labels repeated = {};    // that one operand lacks and is stretched along
};

// Multiplies factors into others that have all their labels until two are left. Nullopt
// when that is not possible.
std::optional<Contraction> as_contraction(const Term& t, const Shape& sizes);
// The same until `num_operands` are left, with outer products where nothing fits: their
// axes come in the order of `out`, those that are summed over first. Factors that no sum
// meets stay outside.
std::optional<Contraction> as_spread_contraction(const Term& t, const SumOfProducts& p,
                                                 std::size_t num_operands);
std::int64_t largest_operand(const Contraction& c, const Shape& sizes);
// Writing the product out element by element would make something larger than either
// side.
bool is_enlarging(const Contraction& c, const Shape& sizes);
// How the axes of the product come out, against the order of `out`. Rows: the last one
// is where it should be.
enum class OrderKept { none, rows, all };
OrderKept order_kept(const Contraction& c, const Labels& out);
// As many products as the first axis of the result is long (of those longer than 1),
// where their results would come out turned otherwise and each is worth a call: the
// operand without that axis is repeated, factors outside join the other one. Nullopt: it
// is no such product.
std::optional<Contraction> as_many_products(const Contraction& c, const SumOfProducts& p);
// Adds up contractions that share an operand, a b + a c = a (b + c). True if it found
// any.
bool merge_common(std::vector<Contraction>& terms, const Labels& out);

// env: values of the copy by old id.
Value emit_contractions(const std::vector<Contraction>& terms, const SumOfProducts& p,
                        std::span<const Value> env);

}  // namespace braintrace
