// SPDX-License-Identifier: Apache-2.0
#pragma once
// Activations as modules, for Sequential. The equations stand in activation.h and ops.h.
#include "braintrace/model/module.h"
#include "braintrace/nn/activation.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {

// Any function of one value, by name or as code: Apply("tanh").
class Apply : public Module {
 public:
  explicit Apply(Activation f) : f_(std::move(f)) {}
  Value update(Value x) override { return f_(x); }

 private:
  Activation f_;
};

// A function without options.
template <auto F>
class Pointwise : public Module {
 public:
  Value update(Value x) override { return F(x); }
};

inline Value identity(const Value& x) { return x; }

using HardSigmoid = Pointwise<hard_sigmoid>;
using HardSwish = Pointwise<hard_swish>;
using Identity = Pointwise<identity>;
using LogSigmoid = Pointwise<log_sigmoid>;
using Mish = Pointwise<mish>;
using ReLU = Pointwise<relu>;
using ReLU6 = Pointwise<relu6>;
using SELU = Pointwise<selu>;
using SiLU = Pointwise<silu>;
using Sigmoid = Pointwise<sigmoid>;
using SoftSign = Pointwise<soft_sign>;
using Softplus = Pointwise<softplus>;
using Tanh = Pointwise<tanh>;
using TanhShrink = Pointwise<tanh_shrink>;

// A function with one number.
template <auto F, class Number>
class PointwiseWith : public Module {
 public:
  explicit PointwiseWith(Number number) : number_(number) {}
  Value update(Value x) override { return F(x, number_); }

 private:
  Number number_;
};

using CELU = PointwiseWith<celu, double>;                     // alpha
using ELU = PointwiseWith<elu, double>;                       // alpha
using GLU = PointwiseWith<glu, std::int64_t>;                 // axis
using HardShrink = PointwiseWith<hard_shrink, double>;        // lambda
using LeakyReLU = PointwiseWith<leaky_relu, double>;          // slope
using LogSoftmax = PointwiseWith<log_softmax, std::int64_t>;  // axis
using SoftShrink = PointwiseWith<soft_shrink, double>;        // lambda
using Softmax = PointwiseWith<softmax, std::int64_t>;         // axis
using Softmin = PointwiseWith<softmin, std::int64_t>;         // axis

// Exact unless told otherwise, other than the function gelu.
class GELU : public PointwiseWith<gelu, bool> {
 public:
  explicit GELU(bool approximate = false) : PointwiseWith(approximate) {}
};

// x where it lies in [low, high], the nearer bound elsewhere.
class HardTanh : public Module {
 public:
  explicit HardTanh(double low = -1, double high = 1);
  Value update(Value x) override { return hard_tanh(x, low_, high_); }

 private:
  double low_, high_;
};

// x, below 0: slope x with a learnt slope, one for all or one per feature.
// Parameter 'weight' [1] or [features].
class PReLU : public Module {
 public:
  explicit PReLU(std::int64_t num_parameters = 1, double slope = 0.25);
  Value update(Value x) override;

  ParamState weight;

 private:
  std::int64_t num_parameters_;
};

// x, below 0: slope x with slope ~ U(low, high) anew for each entry while training, and
// their mean otherwise.
class RReLU : public Module {
 public:
  explicit RReLU(double low = 0.125, double high = 1.0 / 3);
  Value update(Value x) override;

  RngState key;

 private:
  double low_, high_;
};

}  // namespace braintrace::nn
