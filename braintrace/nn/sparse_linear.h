// SPDX-License-Identifier: Apache-2.0
#pragma once
// A layer with fixed sparse connectivity.
#include "braintrace/model/module.h"
#include "braintrace/nn/initializers.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {

struct SparseLinearOptions {
  Initializer w_init = init::normal();  // of the stored values, [nnz]
  Initializer b_init = {};              // empty: no bias
};

// y[o] = sum over stored p with cols[p] = o of x[rows[p]] w[p], + b[o]. Leading axes of x
// are free. Parameter 'weight' with leaves weight [nnz] and bias [out].
class SparseLinear : public Module {
 public:
  explicit SparseLinear(SparseStructure structure, SparseLinearOptions options = {});
  Value update(Value x) override;

  ParamState weight;

 private:
  SparseStructure structure_;
  bool has_bias_;
};

}  // namespace braintrace::nn
