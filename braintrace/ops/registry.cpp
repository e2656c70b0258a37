// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/registry.h"

#include <algorithm>
#include <vector>

#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

// One per line, sorted.
// clang-format off
const OpDef* const kOps[] = {
    &abs_op,
    &add_op,
    &argmax_op,
    &broadcast_op,
    &clamp_op,
    &concatenate_op,
    &cond_op,
    &constant_op,
    &conv_general_op,
    &conv_op,
    &convert_op,
    &copy_op,
    &cos_op,
    &cumsum_op,
    &custom_jvp_op,
    &div_op,
    &dot_general_op,
    &einsum_op,
    &element_wise_op,
    &embedding_op,
    &equal_op,
    &erf_op,
    &exp_op,
    &expm1_op,
    &flip_op,
    &floor_op,
    &gather_op,
    &greater_equal_op,
    &greater_op,
    &grouped_matmul_op,
    &iota_op,
    &less_equal_op,
    &less_op,
    &log1p_op,
    &log_op,
    &logical_and_op,
    &logical_not_op,
    &logical_or_op,
    &logical_xor_op,
    &lora_matmul_op,
    &matmul_op,
    &max_op,
    &min_op,
    &mul_op,
    &neg_op,
    &not_equal_op,
    &pad_op,
    &pow_op,
    &random_bernoulli_op,
    &random_fold_in_op,
    &random_normal_op,
    &random_uniform_op,
    &reduce_max_op,
    &reduce_min_op,
    &reduce_prod_op,
    &reduce_sum_op,
    &reshape_op,
    &roll_op,
    &rsqrt_op,
    &scan_op,
    &scatter_add_op,
    &select_op,
    &sigmoid_op,
    &sign_op,
    &sin_op,
    &slice_op,
    &softplus_op,
    &sparse_dot_op,
    &sparse_matmul_op,
    &sparse_outer_op,
    &sqrt_op,
    &stop_gradient_op,
    &sub_op,
    &tanh_op,
    &transpose_op,
    &while_op,
};
// clang-format on

}  // namespace

OpTable op_table() {
  static const std::vector<const OpDef*> table = [] {
    std::vector<const OpDef*> t(std::begin(kOps), std::end(kOps));
    std::sort(t.begin(), t.end(),
              [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
    return t;
  }();
  return table;
}

Graph parse(std::string_view text) { return parse(text, op_table()); }

}  // namespace braintrace
