// SPDX-License-Identifier: Apache-2.0
// Known quirks of the reference (docs/differences.md) that have no option: exact here, or
// on record.
#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/testing/micro_model.h"
#include "braintrace/train/learner.h"

namespace quirks_test {

using namespace braintrace;
using namespace braintrace::testing;
using Kind = DiagnosticKind;

namespace {

// One parameter with two leaves, multiplied before use: x (k * mask).
class MaskedLayer : public Module {
 public:
  MaskedLayer() {
    add("h", h);
    add("w", w);
  }
  Value update(Value x) override {
    h.set(0.9 * h.value() + matmul(x, w.value("kernel") * w.value("mask")));
    return h.value();
  }
  HiddenState h{{4}};
  ParamState w{
      {{"kernel", {4, 4}, constant_init(0.1)}, {"mask", {4, 4}, constant_init(0.5)}}};
};

// The derivative given by hand is that of the function itself.
Value by_hand(const Values& in, const ValuesFn& f) {
  return custom_jvp(in, f, [&](const Values& v) {
    const std::size_t n = v.size() / 2;
    const Values at(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(n));
    const Values along(v.begin() + static_cast<std::ptrdiff_t>(n), v.end());
    // Bilinear in all inputs: one term per input.
    Value sum = 0.0 * f(at)[0];
    for (std::size_t k = 0; k < n; ++k) {
      Values moved = at;
      moved[k] = along[k];
      sum = sum + f(moved)[0];
    }
    return Values{sum};
  })[0];
}

}  // namespace

TEST_CASE("weights are pulled back through what stands before them, at every step") {
  MicroModel m([](MicroModel& s, Value x) {
    s.set("h", 0.9 * s.h() + matmul(x, 3.0 * s.w()));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  Learner l = compile(m, D_RTRL{}, ones({4}, DType::f64), {.dtype = DType::f64});
  const Array xs = full({3, 4}, 0.8, DType::f64);
  const auto grads =
      l.etrace_grad(xs, xs, [&](const Value& x, const Value&) { return sum(l(x)); },
                    {.window = 1, .reduction = Reduction::sum})
          .grads;
  // h_t = sum_s .9^(t-s) 3 w x_s, every loss counts: 3 * .8 * (3 + 2 * .9 + .81)
  CHECK(grads.at("w").at(0) == doctest::Approx(3 * 0.8 * (3 + 2 * 0.9 + 0.81)));
}

TEST_CASE("both leaves of one parameter are found behind a product of the two") {
  MaskedLayer m;
  init_all_states(m, {.dtype = DType::f64});
  const ETraceGraph g = compile_etrace_graph(m, {ones({4}, DType::f64)});
  REQUIRE(g.hidden_param_op_relations.size() == 1);
  std::set<std::string> keys;
  for (const WeightVar& v :
       g.hidden_param_op_relations[0].trainables[0].prologue.parameters)
    keys.insert(v.key);
  CHECK(keys == std::set<std::string>{"kernel", "mask"});
  CHECK(g.verdicts.size() == 1);
}

TEST_CASE("mixing inside a custom derivative is seen: it is cut, not summed") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    const Value r = full({4, 4}, 0.1, DType::f64);
    const Value mixed =
        by_hand({h}, [&](const Values& v) { return Values{dot(v[0], r)}; });
    s.set("h", 0.5 * h + mixed + matmul(x, s.w()));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  const ETraceGraph g = m.compile();
  CHECK(jacobian_of(g).at(0) == doctest::Approx(0.5));
  CHECK(g.explain({.hidden_path = Path{"h"}, .kind = Kind::history_cut}).size() == 1);
}

TEST_CASE("a trainable op inside a custom derivative is on record, its weight local") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value y =
        by_hand({x, s.w()}, [](const Values& v) { return Values{matmul(v[0], v[1])}; });
    s.set("h", 0.9 * s.h() + y);
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  const ETraceGraph g = m.compile();
  CHECK(g.explain({.kind = Kind::primitive_inside_control_flow}).size() == 1);
  REQUIRE(g.verdicts.size() == 1);
  CHECK(g.verdicts[0].verdict == Verdict::local);
  CHECK(g.verdicts[0].reason.find("that the compiler does not open") !=
        std::string::npos);
}

TEST_CASE("an opaque loop is on record once, under its state") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    const Values out =
        while_loop([&](const Values& c) { return Values{c[0] < unknown(3, x)}; },
                   [](const Values& c) {
                     return Values{c[0] + 1, 0.9 * c[1]};
                   },
                   {scalar(0, DType::i32), h});
    s.set("h", out[1]);
    return s.h() + x;
  });
  m.hidden("h", {4});
  const auto find = [&](const CompileOptions& o) {
    return m.compile(o)
        .explain({.hidden_path = Path{"h"}, .kind = Kind::control_flow_opaque_fwd})
        .size();
  };
  CHECK(find({}) == 1);
  CHECK(find(compat()) == 0);  // three records there, none names the state
}

}  // namespace quirks_test
