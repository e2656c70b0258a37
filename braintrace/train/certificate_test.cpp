// SPDX-License-Identifier: Apache-2.0
#include "braintrace/base/certificate.h"

#include <doctest/doctest.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/micro_model.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"
#include "braintrace/view/certificate_text.h"

namespace certificate_test {

using namespace braintrace;

namespace {

const std::string kGru =
    R"({"kind": "two_layer_gru", "n_in": 3, "n_rec": 4, "n_out": 2})";
const std::string kLeaky =
    R"({"kind": "leaky_linear", "n_in": 3, "n_rec": 4, "leak": 0.9})";

struct Trial {
  std::unique_ptr<Module> model;
  Learner learner;
  Array xs, ys;
  Trial(const std::string& kind, const Algorithm& algorithm, std::int64_t outputs)
      : model(nn::build_model(kind)),
        learner(*model, algorithm, {zeros({3}, DType::f64)},
                {.seed = 3, .dtype = DType::f64}),
        xs(random_normal(rng_key(1), {6, 3}, DType::f64)),
        ys(random_normal(rng_key(2), {6, outputs}, DType::f64)) {}
  CertificateData certificate(std::int64_t window = 1) {
    return learner.certificate(
        xs, ys, [&](const Value& x, const Value& y) { return mse(learner(x), y); },
        window);
  }
};

const CertificateRow& row_of(const CertificateData& c, const std::string& leaf) {
  for (const CertificateRow& r : c.rows)
    if (r.parameter == leaf) return r;
  throw std::runtime_error("no row " + leaf);
}

}  // namespace

TEST_CASE("a certificate tells exact from approximate and shows the distance") {
  Trial t(kGru, D_RTRL{}, 2);
  const CertificateData c = t.certificate();
  REQUIRE(c.rows.size() == 14);
  CHECK(c.steps == 6);
  CHECK(row_of(c, "out/weight/weight").verdict == "exact");
  CHECK(row_of(c, "out/weight/weight").error < tol::f64);
  const CertificateRow& gate = row_of(c, "rnn1/Wz/weight/weight");
  CHECK(gate.verdict == "approximate");
  CHECK(gate.because.find("is cut at") != std::string::npos);
  CHECK(gate.error > 1e-4);
  CHECK(gate.cosine < 1);
  CHECK(gate.trace_max > 0);
  CHECK(c.warnings.empty());
  CHECK(c.holds(1e-9));
  CHECK(c.states.size() == 2);
  CHECK(c.states[0].change > 0);
  const std::string text = to_text(c);
  CHECK(text.find("rnn1/Wz/weight/weight  approximate") != std::string::npos);
}

TEST_CASE("SnAp is exact where its pattern keeps all, and says why elsewhere") {
  const std::string leaky = R"({"kind": "leaky_rnn", "n_in": 3, "n_rec": 5, "n_out": 2})";
  const CertificateData one = Trial(leaky, SnAp{.n = 2}, 2).certificate();
  for (const CertificateRow& r : one.rows) {
    CAPTURE(r.parameter);
    CHECK(r.verdict == "exact");
    CHECK(r.error < tol::f64);
  }
  // Of one width: one group. What the first layer does to the second within a step passes
  // the second one's product.
  const CertificateData two = Trial(kGru, SnAp{.n = 6}, 2).certificate();
  const CertificateRow& gate = row_of(two, "rnn1/Wz/weight/weight");
  CHECK(gate.verdict == "approximate");
  CHECK(gate.because.find("near positions") == std::string::npos);
  CHECK(gate.error > 1e-6);
}

TEST_CASE("the certificate of SnAp on a ring depends on how far it follows it") {
  const SparseStructure ring = coo_structure(4, 4, {0, 1, 2, 3}, {1, 2, 3, 0});
  testing::MicroModel m([&](testing::MicroModel& s, Value x) {
    s.set("h", 0.5 * s.h() + tanh(x + sparse_matmul(s.h(), s.w(), ring)));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4});
  const Array xs = random_normal(rng_key(1), {7, 4}, DType::f64);
  const auto certificate = [&](std::int64_t n) {
    Learner l = compile(m, SnAp{.n = n}, ones({4}, DType::f64), {.dtype = DType::f64});
    return l.certificate(xs, xs,
                         [&](const Value& x, const Value& y) { return sum(l(x) * y); });
  };
  const CertificateRow near = row_of(certificate(2), "w"),
                       far = row_of(certificate(4), "w");
  CHECK(near.verdict == "approximate");
  CHECK(near.because == "of the Jacobian only near positions are kept");
  CHECK(near.error > 1e-6);
  CHECK(far.verdict == "exact");
  CHECK(far.error < tol::f64);
}

TEST_CASE("without cuts every parameter is exact, and is") {
  const CertificateData c = Trial(kLeaky, D_RTRL{}, 4).certificate();
  for (const CertificateRow& r : c.rows) {
    CAPTURE(r.parameter);
    CHECK(r.verdict == "exact");
    CHECK(r.error < tol::f64_golden);
    CHECK(r.bptt_norm > 0);
  }
}

TEST_CASE("what the rule approximates is said whatever the model") {
  const CertificateData c = Trial(kLeaky, pp_prop{.decay_or_rank = 0.9}, 4).certificate();
  CHECK(c.rows[0].verdict == "approximate");
  CHECK(c.rows[0].because.find("two smoothed factors") != std::string::npos);
  CHECK(Trial(kGru, BPTT{}, 2).certificate().error == 0);
}

TEST_CASE("a certificate leaves the learner as it was") {
  Trial a(kGru, D_RTRL{}, 2), b(kGru, D_RTRL{}, 2);
  for (Trial* t : {&a, &b}) t->learner(Value(row(t->xs, 0)));
  a.certificate();
  CHECK(a.learner.running_index() == 1);
  CHECK(a.learner.etraces()[0].value == b.learner.etraces()[0].value);
  CHECK(a.learner(Value(row(a.xs, 1))).array() == b.learner(Value(row(b.xs, 1))).array());
  const CertificateData first = a.certificate(), again = a.certificate();
  CHECK(first.error == again.error);
}

TEST_CASE("a loss that fails half way leaves the learner as it was") {
  Trial t(kGru, D_RTRL{}, 2);
  const auto bad = [&](const Value&, const Value& y) { return mse(y, y); };
  CHECK_THROWS_AS(t.learner.certificate(t.xs, t.ys, bad), UserError);
  CHECK(t.learner.algorithm().name == "D_RTRL");
  CHECK(t.certificate().rows.size() == 14);
}

TEST_CASE("a certificate that fails half way keeps the history") {
  Trial a(kLeaky, D_RTRL{}, 4), b(kLeaky, D_RTRL{}, 4);
  const auto grad = [](Trial& t) {
    return t.learner.etrace_grad(
        t.xs, t.ys, [&](const Value& x, const Value& y) { return mse(t.learner(x), y); });
  };
  for (Trial* t : {&a, &b}) grad(*t);
  CHECK_THROWS_AS(
      a.learner.certificate(
          a.xs, a.ys, [](const Value&, const Value&) -> Value { throw UserError("no"); }),
      UserError);
  CHECK(grad(a).grads.at("w") == grad(b).grads.at("w"));
}

TEST_CASE("a certificate tells the traces of names with one beginning apart") {
  testing::MicroModel m([](testing::MicroModel& s, Value x) {
    s.set("h", 0.9 * s.h() + matmul(x, s.w("w")));
    s.set("k", 0.5 * s.h("k") + 0.0 * matmul(x, s.w("w2")));
    return s.h() + s.h("k");
  });
  m.hidden("h", {3}).hidden("k", {3}).param("w", {3, 3}).param("w2", {3, 3});
  Learner l(m, D_RTRL{}, {zeros({3}, DType::f64)}, {.dtype = DType::f64});
  const CertificateData c =
      l.certificate(random_normal(rng_key(1), {5, 3}, DType::f64),
                    random_normal(rng_key(2), {5, 3}, DType::f64),
                    [&](const Value& x, const Value& y) { return mse(l(x), y); });
  CHECK(row_of(c, "w").trace_max > 0);
  CHECK(row_of(c, "w2").trace_max == 0);
}

TEST_CASE("a gradient that is zero up to rounding is no error, and is called so") {
  testing::MicroModel m([](testing::MicroModel& s, Value x) {
    const Value z = matmul(x, s.w("w")) + s.w("b");  // b does not move what is centred
    s.set("h", 0.7 * s.h() + tanh(z - mean(z, {.axes = {0}, .keepdims = true})));
    return s.h();
  });
  m.hidden("h", {3, 4}).param("w", {3, 4}).param("b", {4});
  for (const DType dtype : {DType::f64, DType::f32}) {
    Learner l(m, ExactRTRL{}, {zeros({3, 3}, dtype)}, {.dtype = dtype});
    const CertificateData c =
        l.certificate(random_normal(rng_key(1), {6, 3, 3}, dtype),
                      random_normal(rng_key(2), {6, 3, 4}, dtype),
                      [&](const Value& x, const Value& y) { return mse(tanh(l(x)), y); });
    CHECK(c.holds(1e-5));
    CHECK(row_of(c, "b").zero);
    CHECK(row_of(c, "b").error == 0);
    CHECK(row_of(c, "b").bptt_norm > 0);
    CHECK(!row_of(c, "w").zero);
    CHECK(c.warnings == std::vector<std::string>{"the gradient of b is zero up to "
                                                 "rounding"});
  }
}

TEST_CASE("a wrong gradient is seen however small it is beside the others") {
  for (const auto& [dtype, part] : {std::pair{DType::f64, 1e-11}, {DType::f32, 1e-4}}) {
    testing::MicroModel m([part = part](testing::MicroModel& s, Value x) {
      s.set("h", 0.9 * s.h() + matmul(x, s.w("w")));
      s.set("k", tanh(x + matmul(s.h("k"), s.w("cut"))));
      return s.h() + part * s.h("k");
    });
    m.hidden("h", {3}).hidden("k", {3}).param("w", {3, 3}).param("cut", {3, 3});
    Learner l(m, D_RTRL{}, {zeros({3}, dtype)}, {.dtype = dtype});
    const CertificateData c =
        l.certificate(random_normal(rng_key(1), {6, 3}, dtype),
                      random_normal(rng_key(2), {6, 3}, dtype),
                      [&](const Value& x, const Value& y) { return sum(l(x) * y); });
    CHECK(row_of(c, "cut").bptt_norm < 10 * part * row_of(c, "w").bptt_norm);
    CHECK(!row_of(c, "cut").zero);
    CHECK(row_of(c, "cut").error > 1e-3);
  }
}

TEST_CASE("a silent network is called silent") {
  auto model = nn::build_model(kGru);
  Learner l(*model, D_RTRL{}, {zeros({3}, DType::f64)}, {.seed = 3, .dtype = DType::f64});
  const Array none = zeros({4, 3}, DType::f64);
  const CertificateData c =
      l.certificate(none, zeros({4, 2}, DType::f64),
                    [&](const Value& x, const Value& y) { return mse(0.0 * l(x), y); });
  CHECK(!c.warnings.empty());
  CHECK(to_text(c).find("warning: no credit reaches") != std::string::npos);
}

}  // namespace certificate_test
