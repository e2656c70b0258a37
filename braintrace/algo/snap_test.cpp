// SPDX-License-Identifier: Apache-2.0
// SnAp and the coupled scope against each other, exact RTRL and back-propagation.
#include <doctest/doctest.h>

#include "braintrace/ir/evaluate.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/micro_model.h"
#include "braintrace/testing/online_trial.h"
#include "braintrace/testing/tolerance.h"

namespace snap_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

OnlineTrial trial(const std::string& model, std::optional<std::int64_t> batch = 2) {
  return {.model = model, .input = {3}, .batch_size = batch, .steps = 6};
}
const std::string tanh_rnn = R"({"kind": "tanh_rnn", "n_in": 3, "n_rec": 5})";
const std::string leaky_rnn =
    R"({"kind": "leaky_rnn", "n_in": 3, "n_rec": 5, "n_out": 2})";
const std::string gru =
    R"({"kind": "layer", "class": "GRUCell", "args": {"in_size": 3, "out_size": 4}})";

}  // namespace

TEST_CASE("saturated SnAp is exact RTRL is back-propagation for every window") {
  for (const std::string& model : {tanh_rnn, leaky_rnn, gru}) {
    CAPTURE(model);
    const OnlineTrial t = trial(model);
    const StateDict want = t.bptt();
    StateDict rnn = want;  // plain weights in front of the state have no trace
    if (model == tanh_rnn) rnn.erase("win");
    CHECK(relative_distance(t.online(SnAp{.n = 2}), rnn) < tol::f64_golden);
    CHECK(relative_distance(t.online(ExactRTRL{}), want) < tol::f64_golden);
    const SnAp windows{.n = 2, .vjp_method = VjpMethod::multi_step};
    for (const std::int64_t chunk : {1, 2, 3})
      CHECK(relative_distance(t.online(windows, chunk), rnn) < tol::f64_golden);
    for (const auto& [leaf, g] : want) CHECK(largest(want, leaf) > 1e-3);
    CHECK(relative_distance(t.online(SnAp{.n = 1}), rnn) > 1e-3);
  }
}

TEST_CASE("SnAp of one step is the coupled scope, bit by bit") {
  for (const std::string& model : {tanh_rnn, leaky_rnn, gru}) {
    const OnlineTrial t = trial(model);
    const StateDict a = t.online(SnAp{.n = 1}), b = t.online(OSTLRecurrent{});
    CHECK(relative_distance(a, b) == 0);
    CHECK(relative_distance(a, t.online(D_RTRL{})) > 1e-3);
  }
}

TEST_CASE("SnAp in a batch is SnAp of each sample") {
  OnlineTrial t = trial(leaky_rnn, 3);
  const StateDict batch = t.online(SnAp{.n = 2});
  t.options.vmap = true;
  CHECK(relative_distance(t.online(SnAp{.n = 2}), batch) < tol::f64_golden);
}

TEST_CASE("more steps of SnAp come closer on a ring until they are exact") {
  // h_p reads itself and its left neighbour.
  Ints rows, cols;
  for (std::int64_t p = 0; p < 5; ++p) {
    rows.push_back(p);
    cols.push_back((p + 1) % 5);
  }
  const SparseStructure ring = coo_structure(5, 5, rows, cols);
  std::vector<StateDict> grads;
  const Array xs = random_normal(rng_key(1), {7, 5}, DType::f64);
  auto run = [&](const Algorithm& a) {
    MicroModel m([&](MicroModel& s, Value x) {
      const Value h = s.h();
      s.set("h", 0.5 * h + tanh(x + 7 * sparse_matmul(h, s.w(), ring)));
      return s.h();
    });
    m.hidden("h", {5}).param("w", {5});
    Learner l = compile(m, a, ones({5}, DType::f64), {.dtype = DType::f64});
    return l
        .etrace_grad(xs, xs,
                     [&](const Value& x, const Value& y) { return sum(l(x) * y); },
                     {.reduction = Reduction::sum})
        .grads;
  };
  const StateDict exact = run(ExactRTRL{});
  double last = 1e9;
  for (const std::int64_t n : {1, 2, 3, 5}) {
    const double error = relative_distance(run(SnAp{.n = n}), exact);
    CHECK(error < last);
    last = error;
  }
  CHECK(last < tol::f64_golden);
}

TEST_CASE("SnAp refuses an op whose entries drive no single position") {
  OnlineTrial t =
      trial(R"({"kind": "embed_leaky", "n_vocab": 4, "n_rec": 3, "n_out": 2})", {});
  const auto m = t.build();
  auto compiled = [&](const Algorithm& a) {
    return compile(*m, a, zeros({}, DType::i32), {.dtype = DType::f64});
  };
  CHECK_THROWS_WITH_AS(compiled(SnAp{.n = 2}), doctest::Contains("no single-position"),
                       UserError);
  CHECK_THROWS_WITH_AS(compiled(SnAp{.n = 1}), doctest::Contains("no single-position"),
                       UserError);
  CHECK_NOTHROW(compiled(D_RTRL{}));
}

TEST_CASE("blocks of a Jacobian by colours are those of the full one") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value v = s.h("v"), a = s.h("a");
    s.set("v", tanh(matmul(concat({x, v}), s.w()) - 0.3 * a));
    s.set("a", 0.8 * a + 0.1 * square(s.h("v")));
    return s.h("v");
  });
  m.hidden("v", {4}).hidden("a", {4}).param("w", {7, 4});
  init_all_states(m, {.batch_size = 3, .seed = 1, .dtype = DType::f64});
  const std::vector<Array> x = {random_normal(rng_key(2), {3, 3}, DType::f64)};
  CompileOptions o{.include_recurrent_mixing = true};
  const ETraceGraph g = compile_etrace_graph(m, x, o);
  const auto call = g.module_info.jaxpr_call(x);
  const HiddenGroup& group = g.hidden_groups[0];
  REQUIRE(group.num_state() == 2);
  std::vector<Array> hidden, constants, in;
  for (ValueId v : group.hidden_invars()) hidden.push_back(call.temps.at(v));
  for (ValueId v : group.transition_constants) constants.push_back(call.temps.at(v));
  in = constants;
  in.insert(in.end(), hidden.begin(), hidden.end());
  std::vector<HiddenGroup::PositionPair> pairs;
  for (std::int64_t p = 0; p < 12; ++p)
    for (std::int64_t q = 0; q < 12; ++q) pairs.push_back({p, q});
  const Array blocks = eval_graph(group.block_jacobian_program(pairs), in)[0];
  const Value full =
      reshape(Value(group.full_jacobian(hidden, constants)), {12, 2, 12, 2});
  const Value want = reshape(transpose(full, {0, 2, 1, 3}), {144, 2, 2});
  check_close("blocks", blocks, want.array().contiguous(), tol::f64);
}

}  // namespace snap_test
