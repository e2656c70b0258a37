// SPDX-License-Identifier: Apache-2.0
// Models that once were, or easily would be, learned wrongly.
#include "braintrace/testing/sound.h"

#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/nn/nn.h"
#include "braintrace/testing/micro_model.h"
#include "braintrace/testing/online_trial.h"
#include "braintrace/train/losses.h"

namespace sound_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

SoundSubject subject_of(Module& m, const Shape& input) {
  SoundSubject s{.model = &m};
  s.options.dtype = DType::f64;
  s.options.seed = 4;
  for (std::uint64_t t = 0; t < 6; ++t) {
    s.inputs.push_back(random_normal(rng_key(t), input, DType::f64));
    s.targets.push_back(scalar(1 + 0.2 * static_cast<double>(t), DType::f64));
  }
  s.loss = [](const Value& y, const Value& weight) {
    return weight * sum(sin(1.3 * y) + 0.5 * y);
  };
  return s;
}

SoundResult check(Module& m, const Shape& input = {4}) {
  const SoundResult r =
      check_sound("", subject_of(m, input), {.steps = {1, 2, 5}, .window = 2});
  CHECK_MESSAGE(r.passed(), r.failure);
  CHECK(r.live);
  const SoundResult rules = check_rules("", subject_of(m, input), 5, 3);
  CHECK_MESSAGE(rules.passed(), rules.failure);
  return r;
}

// Entries that differ, so that no sum hides a wrong position.
Value varied(const Value& w) {
  Array a = zeros(w.shape(), DType::f64);
  for (std::int64_t i = 0; i < a.size(); ++i)
    a.mutable_data<double>()[i] = std::sin(1.7 * static_cast<double>(i) + 0.3);
  return w + a;
}

}  // namespace

TEST_CASE("a bias has no older data under factorised rules") {
  struct Leaky : nn::Module {
    nn::Linear in{3, 4};
    HiddenState h{Shape{4}};
    Leaky() {
      add("in", in);
      add("h", h);
    }
    Value update(Value x) override {
      h.set(0.8 * h.value() + tanh(in(x)));
      return h.value();
    }
  } m;
  check(m, {3});
}

TEST_CASE("a weight that changes from step to step keeps the past of its parameter") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value w = s.w() * sigmoid(sum(x));
    s.set("h", 0.9 * s.h() + tanh(matmul(x, varied(w))));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  CHECK(check(m).counts.dense == 1);
}

TEST_CASE("a weight behind another op's weight is credited once") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value gate = sigmoid(sum(matmul(x, varied(s.w("a")))));
    s.set("h", 0.9 * s.h() + tanh(matmul(x, varied(s.w("b") * gate))));
    return s.h();
  });
  m.hidden("h", {4}).param("a", {4, 4}).param("b", {4, 4});
  check(m);
}

namespace {

// A product of [h1_t, h2_{t-1}]; `all_cut`: nothing goes back through it at all.
std::unique_ptr<MicroModel> product_of_new_and_old(bool all_cut) {
  auto m = std::make_unique<MicroModel>([all_cut](MicroModel& s, Value x) {
    s.set("h1", 0.8 * s.h("h1") + tanh(matmul(x, varied(s.w("a")))));
    const Value both = concat({s.h("h1"), s.h("h2")}, -1);
    const Value read = all_cut ? stop_gradient(both) : both;
    const Value z = sigmoid(matmul(read, varied(s.w("b"))));
    s.set("h2", z * s.h("h2") + (1 - z) * s.h("h1"));
    return s.h("h2");
  });
  m->hidden("h1", {4}).hidden("h2", {4}).param("a", {4, 4}).param("b", {8, 4});
  return m;
}

}  // namespace

TEST_CASE("one product that reads a new and an old state is cut by path") {
  const auto m = product_of_new_and_old(false);
  check(*m);
}

TEST_CASE("a cut of every product that reads a state is not what the rule computes") {
  const auto online = [](MicroModel& m) {
    const Array xs = random_normal(rng_key(7), {5, 4}, DType::f64);
    Learner l = compile(m, D_RTRL{}, row(xs, 0), {.dtype = DType::f64});
    return l
        .etrace_grad(xs, xs, [&](const Value& x, const Value& y) { return mse(l(x), y); })
        .grads;
  };
  const StateDict by_path = online(*product_of_new_and_old(false));
  const StateDict by_op = online(*product_of_new_and_old(true));
  CHECK(relative_distance(by_op, by_path, "a") > 1e-3);
}

TEST_CASE("a norm over the batch in a tail: exact at the newest step") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value y = matmul(x, varied(s.w()));
    const Value d = y - mean(y, {.axes = {0}, .keepdims = true});
    s.set("h",
          0.9 * s.h() + d / sqrt(mean(square(d), {.axes = {0}, .keepdims = true}) + 0.1));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  SoundSubject s = subject_of(m, {3, 4});
  s.options.batch_size = 3;
  const SoundResult r = check_sound("", s, {.steps = {1, 2, 5}, .window = 2});
  CHECK_MESSAGE(r.passed(), r.failure);
  CHECK(r.live);
  CHECK(r.counts.exact == 0);
}

TEST_CASE("diagonal recurrences lose nothing: LRU, and LIF without recurrent weights") {
  struct Lru : nn::Module {
    nn::LRUCell cell{3, 4};
    Lru() { add("cell", cell); }
    Value update(Value x) override { return cell(x); }
  } lru;
  CHECK(check(lru, {3}).counts.approximate == 0);
  struct Spiking : nn::Module {
    nn::Linear in{3, 4};
    nn::LIF neuron{{4}, {.V_th = 0.3}};
    Spiking() {
      add("in", in);
      add("neuron", neuron);
    }
    Value update(Value x) override {
      const Value spikes = neuron(2.0 * in(x));
      return spikes + neuron.V.value();
    }
  } lif;
  const SoundResult r = check(lif, {3});
  CHECK(r.counts.approximate == 0);
  CHECK(r.counts.exact >= 1);
}

TEST_CASE("two rules agree on one step and differ over several") {
  OnlineTrial t{.model = "single_rnn", .input = {10}, .steps = 1};
  const pp_prop other{.decay_or_rank = 0.9};
  CHECK(relative_distance(t.online(D_RTRL{}), t.online(other)) < 1e-10);
  t.steps = 6;
  CHECK(relative_distance(t.online(D_RTRL{}), t.online(other)) > 1e-3);
}

TEST_CASE("norms, rolls and stacked weights in tails: exact at the newest step") {
  MicroModel norm([](MicroModel& s, Value x) {
    const Value y = matmul(x, varied(s.w()));
    const Value d = y - mean(y);
    s.set("h", 0.9 * s.h() + d / sqrt(mean(square(d)) + 0.1));
    return s.h();
  });
  norm.hidden("h", {4}).param("w", {4, 4});
  check(norm);
  MicroModel rolled([](MicroModel& s, Value x) {
    s.set("h", 0.9 * s.h() + roll(tanh(matmul(x, varied(s.w()))), 1, 0));
    return s.h();
  });
  rolled.hidden("h", {4}).param("w", {4, 4});
  check(rolled);
  MicroModel stacked([](MicroModel& s, Value x) {
    const Value first = tanh(matmul(x, varied(s.w("a"))));
    s.set("h", 0.9 * s.h() + tanh(matmul(first, varied(s.w("b")))));
    return s.h();
  });
  stacked.hidden("h", {4}).param("a", {4, 4}).param("b", {4, 4});
  check(stacked);
}

TEST_CASE("a scalar state that a vector state reads is another group") {
  MicroModel m([](MicroModel& s, Value x) {
    s.set("c", 0.7 * s.h("c") + sum(matmul(x, varied(s.w("a")))));
    s.set("h", 0.9 * s.h() + tanh(matmul(x, varied(s.w("b"))) + s.h("c")));
    return s.h();
  });
  m.hidden("c", {}).hidden("h", {4}).param("a", {4, 2}).param("b", {4, 4});
  check(m);
}

TEST_CASE("what passes a loop of unknown length is credited in the newest step") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value y = matmul(x, varied(s.w()));
    const Values r =
        while_loop([&](const Values& in) { return Values{in[0] < unknown(3, x)}; },
                   [](const Values& in) {
                     return Values{in[0] + 1, tanh(0.9 * in[1])};
                   },
                   {Value(scalar(0, DType::i32)), y});
    s.set("h", 0.8 * s.h() + r[1] + 0.1 * y);
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  check(m);
  // Rules whose windows need reverse mode through the loop refuse; no other does.
  for (const std::string& note : check_rules("", subject_of(m, {4}), 5, 3).notes) {
    CAPTURE(note);
    CHECK((note.starts_with("UORO refuses") || note.starts_with("DNI refuses")));
  }
}

TEST_CASE("outputs made of old states are exact where the rule is") {
  MicroModel leaky([](MicroModel& s, Value x) {
    const Value old = s.h();
    s.set("h", 0.9 * old + tanh(matmul(x, varied(s.w()))));
    return matmul(tanh(old), varied(s.w("out"))) + 0.3 * s.h();
  });
  leaky.hidden("h", {4}).param("w", {4, 4}).param("out", {4, 4});
  CHECK(check(leaky).counts.exact == 2);
  // A spike seen before the reset: neither the old nor the new potential.
  MicroModel reset([](MicroModel& s, Value x) {
    const Value v = 0.9 * s.h("v") + matmul(x, varied(s.w()));
    const Value spike = sigmoid(4.0 * v - 2.0);
    s.set("a", 0.8 * s.h("a") + spike);
    s.set("v", v - spike * s.h("a"));
    return spike;
  });
  reset.hidden("v", {4}).hidden("a", {4}).param("w", {4, 4});
  CHECK(check(reset).counts.exact == 1);
  // Across a product: what it lets through is the newest step's.
  MicroModel mixed([](MicroModel& s, Value x) {
    const Value y = matmul(s.h(), varied(s.w("r")));
    s.set("h", 0.7 * s.h() + tanh(matmul(x, varied(s.w())) + y));
    return y;
  });
  mixed.hidden("h", {4}).param("w", {4, 4}).param("r", {4, 4});
  CHECK(check(mixed).counts.exact == 0);
}

TEST_CASE("the judge finds a wrong signal") {
  struct Chain : nn::Module {
    nn::LSTMCell cell{3, 4};
    Chain() { add("cell", cell); }
    Value update(Value x) override { return cell(x); }
  } m;
  SoundSubject s = subject_of(m, {3});
  CHECK(check_sound("", s, {.steps = {4}}).passed());
  s.options.learning.signal = SignalAdjoint::total;
  const SoundResult r = check_sound("", s, {.steps = {4}, .deep = false});
  CHECK_FALSE(r.passed());
  CHECK(describe(r).starts_with("FAIL"));
}

}  // namespace sound_test
