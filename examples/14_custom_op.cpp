// SPDX-License-Identifier: Apache-2.0
// A trainable op of your own: one gain per neuron, with an eligibility trace.
//
// An op is a record of rules: what it computes, its derivative, which positions it joins
// and how its weights meet a trace. Learning rules ask nothing else. The recurrent
// weights are random and stay; only gains and the readout learn.
#include "judge.h"
#include <fmt/format.h>

#include "braintrace/nn/nn.h"
#include "braintrace/ops/etp.h"

using namespace braintrace;

namespace gain_rules {

std::vector<Type> infer(std::span<const Type> in, const Attrs&) {
  BT_REQUIRE(in.size() == 2 && in[0].dtype == in[1].dtype && in[0].rank() >= 1 &&
                 in[1].shape == Shape{in[0].shape.back()},
             "gain: wants x [..., n] and weight [n] of one float type");
  return {in[0]};
}

// Slow and plain; fast executors use inline_body.
template <class T>
void multiply(const Kernel& k) {
  const std::int64_t n = k.in[1].size();
  T* y = k.out[0].mutable_data<T>();
  for (std::int64_t i = 0; i < k.out[0].size(); ++i)
    y[i] = k.in[0].data<T>()[i] * k.in[1].data<T>()[i % n];
}
void eval(const Kernel& k) {
  k.out[0].dtype() == DType::f64 ? multiply<double>(k) : multiply<float>(k);
}
Rewrite inline_body(const Site& s) { return {{s.in[0] * s.in[1]}}; }

std::vector<Tangent> jvp(const Site& s, std::span<const Tangent> d) {
  Tangent dx, dw;
  if (d[0]) dx = *d[0] * s.in[1];
  if (d[1]) dw = s.in[0] * *d[1];
  return {sum_of({dx, dw})};
}

// Samples stand in front.
BatchResult batch(const Site& s, std::span<const BatchAxis> axes) {
  BT_REQUIRE(only_x_batched(axes), "gain: one weight for all samples");
  return batch_leading(s, axes);
}

// Position p of y reads position p of x, and the weight of its last axis.
PositionMap positions(const Signature& s) {
  InputFlow w;
  w.axes.assign(static_cast<std::size_t>(s.out[0].rank() - 1), {Flow::fresh, -1});
  w.axes.push_back({Flow::same, 0});
  return {{{identity_flow(s.out[0].rank())}, {w}}};
}

// One trace value per sample and neuron: it stands where y does, and dy / dw = x.
std::vector<WeightInput> weights(const Signature&) { return {{"weight", 1}}; }
Type trace(const Signature& s, int) { return s.out[0]; }
Anchor anchor(const Signature& s, int) { return same_anchor(s.out[0].rank()); }
Value instant(const Site& s, int, const Value& df) { return df * s.in[0]; }

const EtpRule etp = {
    .x = 0, .weights = weights, .trace = trace, .anchor = anchor, .instant = instant};
const OpDef op = {.name = "gain",
                  .arity = 2,
                  .infer = infer,
                  .eval = eval,
                  .code = "gain($0, $1)",
                  .jvp = jvp,
                  .batch = batch,
                  .positions = positions,
                  .etp = &etp,
                  .inline_body = inline_body};

}  // namespace gain_rules

Value gain(const Value& x, const Value& weight) {
  return emit1(gain_rules::op, {x, weight});
}

// h' = tanh(gain * ([x, h] W)) with W fixed.
struct Reservoir : nn::Module {
  Value fixed;
  ParamState weight;
  HiddenState h;
  nn::Linear out;

  Reservoir(std::int64_t n_in, std::int64_t n, std::int64_t n_out, std::uint64_t seed)
      : fixed(random_normal(key_array(rng_key(100 + seed)), {n_in + n, n}) *
              (1.5 / std::sqrt(static_cast<double>(n)))),
        weight({n}, constant_init(1)),
        h({n}),
        out(n, n_out) {
    add("weight", weight);
    add("h", h);
    add("out", out);
  }

  Value update(Value x) override {
    const Value drive = dot(concat({x, h.value()}), fixed);
    h.set(tanh(gain(drive, weight.value())));
    return out(h.value());
  }
};

judge::Outcome train(std::uint64_t seed) {
  const Task task = pattern_task({.steps = 20, .task = {seed}});
  Reservoir model(task.shape().features, 64, task.shape().outputs, seed);
  Learner learner = compile(model, D_RTRL{}, judge::example(task), judge::options(seed));
  judge::Outcome out = judge::learn(learner, task, Optimizer(Adam{.lr = 1e-2}), 80);
  fmt::print("traced: {} op, gains moved by up to {:.2f}\n",
             learner.graph().hidden_param_op_relations.size(),
             max(abs(model.weight.value() - 1)).array().item());
  return out;
}

int main() { return judge::run(train); }
