// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a model learns beside its parameters, by the way: running statistics.
#include "braintrace/model/state.h"

namespace braintrace {

// A short-term state without a batch axis that outlives sequences: init_all_states leaves
// its value as it leaves those of parameters.
class LongTermState : public ShortTermState {
 public:
  explicit LongTermState(Shape size, Initializer init = constant_init(0),
                         std::optional<DType> dtype = {})
      : ShortTermState(std::move(size), std::move(init),
                       {.batched = false, .dtype = dtype}) {}
  bool outlives_sequences() const override { return true; }
};

}  // namespace braintrace
