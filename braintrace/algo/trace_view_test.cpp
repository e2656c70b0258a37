// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/trace_view.h"

#include <doctest/doctest.h>

#include "braintrace/testing/close.h"
#include "braintrace/testing/micro_model.h"
#include "braintrace/train/learner.h"

namespace trace_view_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

Array numbers(const Shape& shape, std::uint64_t key) {
  return random_normal(rng_key(key), shape, DType::f64);
}

Array shown(const Learner& l, TraceSpace space, const std::string& key) {
  for (const TraceView& v : l.etraces(space))
    if (v.slot.key == key) return v.value;
  throw std::runtime_error("no trace " + key);
}

}  // namespace

TEST_CASE("a trace is shown through what stands between parameter and op") {
  MicroModel m([](MicroModel& s, Value x) {
    s.set("h", 0.9 * s.h() + matmul(x, square(s.w())));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  Learner l = compile(m, D_RTRL{}, numbers({4}, 1), {.seed = 1, .dtype = DType::f64});
  l.etrace_evolve({numbers({5, 4}, 2)});
  const Array stored = shown(l, TraceSpace::effective, "weight");
  const Value slope = expand_dims(2 * Value(state_dict(m).at("w")), -1);
  check_close("trace", shown(l, TraceSpace::parameter, "weight"),
              (Value(stored) * slope).array(), 1e-12);
  check_close("get_etrace_of", l.get_etrace_of(Path{"w"})[0].value,
              shown(l, TraceSpace::parameter, "weight"), 0);
  CHECK(std::abs(stored.at(0)) > 1e-3);
}

TEST_CASE("every parameter behind an operand has a view, lanes of their own included") {
  for (const bool lanes : {false, true}) {
    MicroModel m([](MicroModel& s, Value x) {
      s.set("h", 0.9 * s.h() + matmul(x, 3 * s.w("a") + s.w("b")));
      return s.h();
    });
    m.hidden("h", {4}).param("a", {4, 4}).param("b", {4, 4});
    Learner l = compile(m, D_RTRL{}, numbers({2, 4}, 1),
                        {.batch_size = 2, .seed = 1, .dtype = DType::f64, .vmap = lanes});
    l.etrace_evolve({numbers({5, 2, 4}, 2)});
    std::map<Path, Array> views;
    for (const TraceView& v : l.etraces(TraceSpace::parameter))
      views[*v.slot.parameter] = v.value;
    REQUIRE(views.size() == 2);
    CHECK(views.at(Path{"a"}).shape() == Shape{2, 4, 4, 1});
    check_close("b", views.at(Path{"b"}), l.etraces()[0].value, 1e-12);
    check_close("a", views.at(Path{"a"}), (3 * Value(views.at(Path{"b"}))).array(),
                1e-12);
    const auto of_a = l.get_etrace_of(Path{"a"});
    CHECK(std::any_of(of_a.begin(), of_a.end(),
                      [](const TraceView& v) { return v.slot.parameter == Path{"a"}; }));
  }
}

TEST_CASE("a low-rank product keeps one effective trace and shows one per factor") {
  MicroModel m([](MicroModel& s, Value x) {
    s.set("h", 0.9 * s.h() + lora_matmul(x, s.w("b"), s.w("a"), 0.5));
    return s.h();
  });
  m.hidden("h", {4}).param("b", {4, 2}).param("a", {2, 4});
  Learner l = compile(m, D_RTRL{}, numbers({3, 4}, 1),
                      {.batch_size = 3, .seed = 1, .dtype = DType::f64});
  l.etrace_evolve({numbers({5, 3, 4}, 2)});
  const Array stored = shown(l, TraceSpace::effective, "effective");
  CHECK(stored.shape() == Shape{3, 4, 4, 1});
  check_close("b", shown(l, TraceSpace::parameter, "lora_b"), stored, 0);
  const Array a = shown(l, TraceSpace::parameter, "lora_a");
  REQUIRE(a.shape() == Shape{3, 2, 4, 1});
  const auto e = stored.to_doubles(), got = a.to_doubles();
  const auto b = state_dict(m).at("b").to_doubles();
  for (std::size_t n = 0; n < 3; ++n)
    for (std::size_t r = 0; r < 2; ++r)
      for (std::size_t o = 0; o < 4; ++o) {
        double want = 0;
        for (std::size_t i = 0; i < 4; ++i)
          want += 0.5 * b[i * 2 + r] * e[(n * 4 + i) * 4 + o];
        CHECK(got[(n * 2 + r) * 4 + o] == doctest::Approx(want));
      }
}

}  // namespace trace_view_test
