// SPDX-License-Identifier: Apache-2.0
// Exported steps that learn: 200 steps of a model with its gradient and moving weights,
// against the same loop over the interpreter.
#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "braintrace/io/export_header.h"
#include "braintrace/ir/builder.h"
#include "braintrace/model/step_model.h"
#include "braintrace/nn/nn.h"
#include "braintrace/passes/pipeline.h"
#include "braintrace/run/interpreter.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/run_source.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/transforms/vjp.h"

using namespace braintrace;
using namespace braintrace::testing;
using Role = ExportPort::Role;

namespace {

constexpr int kSteps = 200, kIn = 3, kHidden = 6, kOut = 2;

struct GruNet : Module {
  nn::GRUCell cell{kIn, kHidden};
  nn::Linear out{kHidden, kOut};
  GruNet() {
    add("cell", cell);
    add("out", out);
  }
  Value update(Value x) override { return out(cell(x)); }
};

struct LifNet : Module {
  nn::Linear in{kIn, kHidden};
  nn::LIF lif{Shape{kHidden}};
  nn::Linear out{kHidden, kOut};
  LifNet() {
    add("in", in);
    add("lif", lif);
    add("out", out);
  }
  Value update(Value x) override { return out(lif(in(x)*3)); }
};

// A step with the gradient of its own loss: ports and program.
struct Learning {
  Graph graph;
  ExportSpec spec;
};

// (x, target, state leaves) -> (loss, y, next leaves, gradients of the parameters)
Learning learning_step(Module& m, DType dtype, const std::string& name) {
  init_all_states(m, {.seed = 3, .dtype = dtype});
  const StepModel step = trace_step(m, std::vector<Type>{{dtype, {kIn}}});
  const std::shared_ptr<Builder> b = Builder::create();
  const Value x = b->input({dtype, {kIn}}), target = b->input({dtype, {kOut}});
  Values inputs = {x};
  Learning l;
  l.spec = {.name = name, .learning_rate = 0.05};
  l.spec.inputs = {{"x", Role::argument}, {"target", Role::argument}};
  l.spec.outputs = {{"loss", Role::loss}, {"y", Role::output}};
  std::vector<bool> active = {false, false};
  std::vector<ExportPort> gradients;
  const std::vector<Array> leaves = read_states(step);
  for (const StepState& s : step.states) {
    for (std::size_t leaf = 0; leaf < s.in.size(); ++leaf) {
      const Array& value = leaves[inputs.size() - 1];
      const bool param = s.kind == StateKind::param;
      const std::string key = s.state->spec(leaf).key;
      const std::string path = to_slashes(s.path) + (key.empty() ? "" : "/" + key);
      l.spec.inputs.push_back({path, param ? Role::parameter : Role::state, value});
      l.spec.outputs.push_back({path, param ? Role::parameter : Role::state});
      if (param) gradients.push_back({path, Role::gradient});
      active.push_back(param);
      inputs.push_back(b->input(type_of(value)));
    }
  }
  const Values outs = inline_graph(step.program, inputs);
  const Value error = outs[0] - target;
  Values all = {sum(error * error)};
  all.insert(all.end(), outs.begin(), outs.end());
  l.spec.outputs.insert(l.spec.outputs.end(), gradients.begin(), gradients.end());
  PassRunner run;
  l.graph = lower(value_and_grad(b->finish(all), active), {.if_convert = true}, run);
  return l;
}

double input_at(int t, int i) { return std::sin(0.3 * t + i) + 0.5; }
double target_at(int t, int i) { return std::cos(0.1 * t + 2 * i); }

Array signal(double (*f)(int, int), int t, std::int64_t n, DType d) {
  std::vector<double> v;
  for (int i = 0; i < n; ++i) v.push_back(f(t, i));
  return array({n}, v, d);
}

struct History {
  std::vector<double> losses;
  std::vector<Array> inputs;  // after the last step, in the order of the ports
};

History interpreted(const Learning& l, DType d) {
  History h;
  for (const ExportPort& p : l.spec.inputs)
    h.inputs.push_back(p.initial.value_or(Array()));
  for (int t = 0; t < kSteps; ++t) {
    h.inputs[0] = signal(input_at, t, kIn, d);
    h.inputs[1] = signal(target_at, t, kOut, d);
    const std::vector<Array> outs = interpret(l.graph, h.inputs);
    h.losses.push_back(outs[0].item());
    const std::size_t states = h.inputs.size() - 2;
    std::size_t gradient = 2 + states;
    for (std::size_t i = 0; i < states; ++i) {
      Array& value = h.inputs[2 + i];
      const bool param = l.spec.inputs[2 + i].role == Role::parameter;
      value =
          param ? (Value(value) - l.spec.learning_rate * Value(outs[gradient++])).array()
                : outs[2 + i];
    }
  }
  return h;
}

std::string driver(const Learning& l, DType d, ExportLanguage language) {
  const bool cpp = language == ExportLanguage::cpp17;
  const std::string& name = l.spec.name;
  std::string s = cpp ? "#include <cstdio>\n" : "#include <stdio.h>\n";
  s += export_header(l.graph, l.spec, language);
  s += cpp ? fmt::format("static {}::Learner l;\n", name)
           : fmt::format("static {}_Learner l;\n", name);
  s += "int main(void) {\n";
  if (!cpp) s += fmt::format("  {}_init(&l);\n", name);
  const std::string type = d == DType::f32 ? "float" : "double";
  s += fmt::format("  for (int t = 0; t < {}; ++t) {{\n", kSteps);
  s += fmt::format(
      "    for (int i = 0; i < {}; ++i) l.x[i] = ({})(sin(0.3 * t + i) + 0.5);\n", kIn,
      type);
  s += fmt::format(
      "    for (int i = 0; i < {}; ++i) l.target[i] = ({})cos(0.1 * t + 2 * i);\n", kOut,
      type);
  s += cpp ? "    l.step();\n" : fmt::format("    {}_step(&l);\n", name);
  s += "    printf(\"%.17g\\n\", (double)l.loss[0]);\n  }\n";
  for (std::size_t i = 2; i < l.spec.inputs.size(); ++i) {
    std::string field = l.spec.inputs[i].name;
    std::replace(field.begin(), field.end(), '/', '_');
    s += fmt::format(
        "  for (int i = 0; i < {}; ++i) printf(\"%.17g\\n\", (double)l.{}[i]);\n",
        l.spec.inputs[i].initial->size(), field);
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

void check_learning(Module& m, DType d, ExportLanguage language, double tolerance) {
  const Learning l = learning_step(m, d, "net");
  const History want = interpreted(l, d);
  const std::vector<double> got = run_source(driver(l, d, language), language);
  std::vector<double> losses(got.begin(), got.begin() + kSteps);
  const Shape all = {kSteps};
  check_close("losses", array(all, losses, DType::f64),
              array(all, want.losses, DType::f64), tolerance);
  std::size_t at = kSteps;
  for (std::size_t i = 2; i < want.inputs.size(); ++i) {
    const Array& w = want.inputs[i];
    REQUIRE(at + static_cast<std::size_t>(w.size()) <= got.size());
    const auto begin = got.begin() + static_cast<std::ptrdiff_t>(at);
    at += static_cast<std::size_t>(w.size());
    check_close(l.spec.inputs[i].name, array(w.shape(), {begin, begin + w.size()}, d), w,
                tolerance);
    if (l.spec.inputs[i].role == Role::parameter)
      CHECK(movement(*l.spec.inputs[i].initial, w) > 0.01);
  }
  CHECK(at == got.size());
}

}  // namespace

TEST_CASE("an exported GRU learns as the interpreter does") {
  GruNet net;
  check_learning(net, DType::f64, ExportLanguage::cpp17, tol::f64_golden);
}

TEST_CASE("an exported GRU in C and single precision learns as the interpreter does") {
  GruNet net;
  check_learning(net, DType::f32, ExportLanguage::c99, tol::f32_grad);
}

TEST_CASE("an exported spiking network learns as the interpreter does") {
  LifNet net;
  check_learning(net, DType::f64, ExportLanguage::cpp17, tol::f64_golden);
}
