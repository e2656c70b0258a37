// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/sparse_linear.h"

#include <fmt/format.h>

#include "braintrace/nn/check_impl.h"

namespace braintrace::nn {
namespace {

void check_structure(const SparseStructure& s) {
  internal::positive("SparseLinear", "the number of inputs", s.in);
  internal::positive("SparseLinear", "the number of outputs", s.out);
  BT_REQUIRE(s.rows.size() == s.cols.size(),
             fmt::format("SparseLinear: rows and cols must pair up, got {} and {}",
                         s.rows.size(), s.cols.size()));
  for (std::size_t p = 0; p < s.rows.size(); ++p) {
    const bool inside =
        s.rows[p] >= 0 && s.rows[p] < s.in && s.cols[p] >= 0 && s.cols[p] < s.out;
    BT_REQUIRE(inside, fmt::format("SparseLinear: ({}, {}) lies outside {} x {}",
                                   s.rows[p], s.cols[p], s.in, s.out));
  }
}

std::vector<LeafSpec> leaves(const SparseStructure& s, const SparseLinearOptions& o) {
  check_structure(s);
  const auto stored = static_cast<std::int64_t>(s.rows.size());
  std::vector<LeafSpec> specs = {{"weight", {stored}, o.w_init}};
  if (o.b_init) specs.push_back({"bias", {s.out}, o.b_init});
  return specs;
}

}  // namespace

SparseLinear::SparseLinear(SparseStructure structure, SparseLinearOptions options)
    : weight(leaves(structure, options)),
      structure_(std::move(structure)),
      has_bias_(options.b_init != nullptr) {
  add("weight", weight);
}

Value SparseLinear::update(Value x) {
  internal::require_features("SparseLinear", x, structure_.in);
  const Tangent bias = has_bias_ ? Tangent(weight.value("bias")) : std::nullopt;
  return sparse_matmul(x, weight.value("weight"), structure_, bias);
}

}  // namespace braintrace::nn
