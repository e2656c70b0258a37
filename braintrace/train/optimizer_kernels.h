// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loops behind Optimizer: one rule over n elements of a parameter.
#include <cstdint>
#include <string_view>
#include <variant>

#include "braintrace/array/dtype.h"
#include "braintrace/train/optimizers.h"

namespace braintrace {

// Adam and AdamW.
struct AdamForm {
  double beta1, beta2, eps, coupled, decoupled;
  bool amsgrad;
};
using RuleForm = std::variant<SGD, AdamForm, RMSprop, Lion>;
RuleForm form_of(const UpdateRule& rule);

// One parameter under way. Moments the rule does without are null.
struct Update {
  DType dtype;  // f32 or f64, of everything
  double lr;
  std::int64_t t;  // number of this update, from 1
  void* w;
  const void* g;
  void *m = nullptr, *v = nullptr, *mean = nullptr, *v_max = nullptr;

  void*& moment(std::string_view name);  // as moment_names() has it
};

// Elements [first, last); the same bits with every instruction set.
void move_elements(const RuleForm& rule, const Update& update, std::int64_t first,
                   std::int64_t last);

}  // namespace braintrace
