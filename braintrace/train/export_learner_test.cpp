// SPDX-License-Identifier: Apache-2.0
// Exported learners: 200 steps in which the weights move, against the library.
#include "braintrace/train/export_learner.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/nn/sized_model.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/run_source.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/losses.h"
#include "braintrace/train/optimizers.h"

namespace export_learner_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

constexpr int kSteps = 200, kIn = 3, kOut = 2;
constexpr double kRate = 0.05;

double input_at(int t, int i) { return std::sin(0.3 * t + i) + 0.5; }
double target_at(int t, int i) { return std::cos(0.1 * t + 2 * i); }

Array signal(double (*f)(int, int), int t, std::int64_t n, DType d) {
  std::vector<double> v;
  for (int i = 0; i < n; ++i) v.push_back(f(t, i));
  return array({n}, v, d);
}

std::unique_ptr<Module> small(const char* name) {
  return nn::build_model(nn::sized_model(name, {.n_in = kIn, .n_rec = 6, .n_out = kOut}));
}

TracedFn loss_of(Learner& learner) {
  return [&learner](const Values& in) {
    const Value y = learner(in[0]);
    return LossResult{.loss = mse(y, in[1]), .results = {y}};
  };
}

struct Case {
  const char* model;
  Algorithm rule;
  DType d = DType::f64;
  ExportLanguage language = ExportLanguage::cpp17;
  double tolerance = tol::f64_golden;
  std::optional<UpdateRule> optimizer = {};  // default: plain descent with kRate
  int rest = kSteps;                         // every so many steps there is no target
};

bool rests(const Case& c, int t) { return t % c.rest == c.rest - 1; }

// Prints the loss of every step, then every weight.
std::string driver(Learner& learner, const Case& c) {
  const DType d = c.d;
  const bool cpp = c.language == ExportLanguage::cpp17;
  const std::string type = d == DType::f32 ? "float" : "double";
  std::string s = cpp ? "#include <cstdio>\n" : "#include <stdio.h>\n";
  s += export_learner(learner, loss_of(learner), {zeros({kIn}, d), zeros({kOut}, d)},
                      {.name = "net",
                       .learning_rate = c.optimizer ? 0 : kRate,
                       .optimizer = c.optimizer,
                       .language = c.language});
  s += cpp ? "static net::Learner l;\nint main(void) {\n"
           : "static net_Learner l;\nint main(void) {\n  net_init(&l);\n";
  s += fmt::format("  for (int t = 0; t < {}; ++t) {{\n", kSteps);
  s += fmt::format(
      "    for (int i = 0; i < {}; ++i) l.x[i] = ({})(sin(0.3 * t + i) + 0.5);\n", kIn,
      type);
  s += fmt::format(
      "    for (int i = 0; i < {}; ++i) l.target[i] = ({})cos(0.1 * t + 2 * i);\n", kOut,
      type);
  s += fmt::format("    l.loss_weight[0] = t % {0} == {0} - 1 ? 0 : 1;\n", c.rest);
  s += cpp ? "    l.step();\n" : "    net_step(&l);\n";
  s += "    printf(\"%.17g\\n\", (double)l.loss[0]);\n  }\n";
  for (const auto& [path, value] : state_dict(learner.model())) {
    std::string field = path;
    std::replace(field.begin(), field.end(), '/', '_');
    s += fmt::format(
        "  for (int i = 0; i < {}; ++i) printf(\"%.17g\\n\", (double)l.{}[i]);\n",
        value.size(), field);
  }
  return s + "  return 0;\n}\n";
}

// Largest |end - start| / largest |start|.
double movement(const Array& start, const Array& end) {
  double moved = 0, size = 0;
  for (std::int64_t i = 0; i < start.size(); ++i) {
    moved = std::max(moved, std::abs(end.at(i) - start.at(i)));
    size = std::max(size, std::abs(start.at(i)));
  }
  return moved / std::max(size, 1e-3);
}

void check_export(const Case& c) {
  const auto model = small(c.model);
  const DType d = c.d;
  const double tolerance = c.tolerance;
  Learner learner = compile(*model, c.rule, zeros({kIn}, d), {.seed = 3, .dtype = d});
  const StateDict start = state_dict(*model);
  const std::vector<double> got = run_source(driver(learner, c), c.language);

  std::vector<double> losses;
  LossHandle handle =
      learner.trace_loss(loss_of(learner), {zeros({kIn}, d), zeros({kOut}, d)});
  Optimizer optimizer(c.optimizer.value_or(SGD{.lr = kRate}));
  for (int t = 0; t < kSteps; ++t) {
    const StepGradient g =
        learner.step_grad({signal(input_at, t, kIn, d), signal(target_at, t, kOut, d)},
                          handle, rests(c, t) ? 0 : 1);
    losses.push_back(g.loss);
    if (!rests(c, t)) optimizer.update(*model, *g.gradients);
  }
  const Shape all = {kSteps};
  REQUIRE(got.size() > kSteps);
  check_close("losses", array(all, {got.begin(), got.begin() + kSteps}, DType::f64),
              array(all, losses, DType::f64), tolerance);
  CHECK(losses.back() < losses.front());
  std::size_t at = kSteps;
  for (const auto& [path, want] : state_dict(*model)) {
    REQUIRE(at + static_cast<std::size_t>(want.size()) <= got.size());
    const auto begin = got.begin() + static_cast<std::ptrdiff_t>(at);
    at += static_cast<std::size_t>(want.size());
    check_close(path, array(want.shape(), {begin, begin + want.size()}, d), want,
                tolerance);
    const bool weight = path.find("/weight") != std::string::npos;
    if (weight) CHECK_MESSAGE(movement(start.at(path), want) > 0.01, path);
  }
  CHECK(at == got.size());
}

}  // namespace

TEST_CASE("an exported GRU with D_RTRL learns as the library does") {
  check_export({"gru", D_RTRL{}});
}

TEST_CASE("an exported LIF net with pp_prop learns as the library does") {
  check_export({"lif", pp_prop{.decay_or_rank = 0.9}});
}

TEST_CASE("exported learners in C and single precision") {
  const auto in_c = [](const char* model, const Algorithm& rule) {
    check_export({model, rule, DType::f32, ExportLanguage::c99, tol::f32_grad});
  };
  in_c("gru", D_RTRL{});
  in_c("lif", pp_prop{.decay_or_rank = 0.9});
}

TEST_CASE("an exported optimiser takes the steps of the library and rests with it") {
  const UpdateRule rules[] = {SGD{.lr = 0.02, .momentum = 0.9}, Adam{.lr = 0.005},
                              RMSprop{.lr = 0.005}};
  for (const UpdateRule& rule : rules) {
    CAPTURE(rule.index());
    Case c{"gru", D_RTRL{}};
    c.optimizer = rule;
    c.rest = 4;
    check_export(c);
  }
}

TEST_CASE("what cannot be exported is refused") {
  const auto model = small("gru");
  Learner learner = compile(*model, BPTT{}, zeros({kIn}));
  CHECK_THROWS_WITH_AS(
      export_learner(learner, loss_of(learner), {zeros({kIn}), zeros({kOut})}),
      doctest::Contains("BPTT needs whole sequences"), UserError);
}

TEST_CASE("options of an export that make no sense are refused by name and value") {
  const auto model = small("gru");
  Learner learner = compile(*model, D_RTRL{}, zeros({kIn}));
  const auto refused = [&](const char* message, const LearnerExport& o) {
    CHECK_THROWS_WITH_AS(
        export_learner(learner, loss_of(learner), {zeros({kIn}), zeros({kOut})}, o),
        doctest::Contains(message), UserError);
  };
  for (const double rate : {std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity(), -1.0})
    refused("export_learner: learning_rate must be >= 0 and finite, got",
            {.learning_rate = rate});
  refused("its own learning rate 0.1, got learning_rate 0.5 beside it",
          {.learning_rate = 0.5, .optimizer = Adam{.lr = 0.1}});
  refused("the loss takes 2 arguments, got 1 names", {.arguments = {"a"}});
  refused("the loss takes 2 arguments, got 3 names", {.arguments = {"a", "b", "c"}});
  refused("got 'int'", {.arguments = {"int", "b"}});
  refused("got ''", {.arguments = {"a", ""}});
  refused("got 'a b'", {.arguments = {"a b", "c"}});
  refused("got 'learning_rate'", {.arguments = {"learning_rate", "b"}});
  refused("'loss' among the arguments", {.arguments = {"loss", "b"}});
  refused("results besides, got 9 names",
          {.results = {"a", "b", "c", "d", "e", "f", "g", "h", "i"}});
}

TEST_CASE("an argument called y keeps its field") {
  const auto model = small("gru");
  Learner learner = compile(*model, D_RTRL{}, zeros({kIn}));
  const TracedFn loss = [&](const Values& in) {
    const Value y = learner(in[0]);
    return LossResult{.loss = mse(y, in[1]), .results = {y}};
  };
  const std::string text = export_learner(learner, loss, {zeros({kIn}), zeros({kOut})},
                                          {.arguments = {"x", "y"}});
  CHECK(text.find(fmt::format("float y[{}] = {{}};  // argument", kOut)) !=
        std::string::npos);
  CHECK(text.find(fmt::format("float r0[{}] = {{}};  // output", kOut)) !=
        std::string::npos);
}

}  // namespace export_learner_test
