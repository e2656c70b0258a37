// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every op object, one per line, sorted. For files of this room only.
#include "braintrace/ir/constant.h"

namespace braintrace {

// clang-format off
extern const OpDef abs_op;
extern const OpDef add_op;
extern const OpDef argmax_op;
extern const OpDef broadcast_op;
extern const OpDef clamp_op;
extern const OpDef concatenate_op;
extern const OpDef cond_op;
extern const OpDef conv_general_op;
extern const OpDef conv_op;
extern const OpDef convert_op;
extern const OpDef copy_op;
extern const OpDef cos_op;
extern const OpDef cumsum_op;
extern const OpDef custom_jvp_op;
extern const OpDef div_op;
extern const OpDef dot_general_op;
extern const OpDef einsum_op;
extern const OpDef element_wise_op;
extern const OpDef embedding_op;
extern const OpDef equal_op;
extern const OpDef erf_op;
extern const OpDef exp_op;
extern const OpDef expm1_op;
extern const OpDef flip_op;
extern const OpDef floor_op;
extern const OpDef gather_op;
extern const OpDef greater_equal_op;
extern const OpDef greater_op;
extern const OpDef grouped_matmul_op;
extern const OpDef iota_op;
extern const OpDef less_equal_op;
extern const OpDef less_op;
extern const OpDef log1p_op;
extern const OpDef log_op;
extern const OpDef logical_and_op;
extern const OpDef logical_not_op;
extern const OpDef logical_or_op;
extern const OpDef logical_xor_op;
extern const OpDef lora_matmul_op;
extern const OpDef matmul_op;
extern const OpDef max_op;
extern const OpDef min_op;
extern const OpDef mul_op;
extern const OpDef neg_op;
extern const OpDef not_equal_op;
extern const OpDef pad_op;
extern const OpDef pow_op;
extern const OpDef random_bernoulli_op;
extern const OpDef random_fold_in_op;
extern const OpDef random_normal_op;
extern const OpDef random_uniform_op;
extern const OpDef reduce_max_op;
extern const OpDef reduce_min_op;
extern const OpDef reduce_prod_op;
extern const OpDef reduce_sum_op;
extern const OpDef reshape_op;
extern const OpDef roll_op;
extern const OpDef rsqrt_op;
extern const OpDef scan_op;
extern const OpDef scatter_add_op;
extern const OpDef select_op;
extern const OpDef sigmoid_op;
extern const OpDef sign_op;
extern const OpDef sin_op;
extern const OpDef slice_op;
extern const OpDef softplus_op;
extern const OpDef sparse_dot_op;
extern const OpDef sparse_matmul_op;
extern const OpDef sparse_outer_op;
extern const OpDef sqrt_op;
extern const OpDef stop_gradient_op;
extern const OpDef sub_op;
extern const OpDef tanh_op;
extern const OpDef transpose_op;
extern const OpDef while_op;
// clang-format on

}  // namespace braintrace
