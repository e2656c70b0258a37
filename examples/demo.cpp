// SPDX-License-Identifier: Apache-2.0
// The demo: three models written as one step each, the graphs the compiler finds in them,
// pictures of these, and a gradient that is checked.
// demo [FOLDER]: where the pictures go (default build/demo).
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <fmt/core.h>

#include "braintrace/etrace/report.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/nn/conv.h"
#include "braintrace/nn/gru.h"
#include "braintrace/nn/linear.h"
#include "braintrace/nn/vanilla_rnn.h"
#include "braintrace/ops/ops.h"
#include "braintrace/transforms/vjp.h"
#include "braintrace/view/code.h"
#include "braintrace/view/dot.h"
#include "braintrace/view/html.h"
#include "braintrace/view/svg.h"

using namespace braintrace;
namespace fs = std::filesystem;

namespace {

// ---- the models: ordinary code, one step each -----------------------------------------

struct SingleLayerRNN : Module {
  nn::ValinaRNNCell rnn;
  nn::Linear out;
  SingleLayerRNN(int n_in, int n_rec, int n_out) : rnn(n_in, n_rec), out(n_rec, n_out) {
    add("rnn", rnn);
    add("out", out);
  }
  Value update(Value x) override { return out(rnn(x)); }
};

struct TwoLayerRNN : Module {
  nn::GRUCell rnn1, rnn2;
  nn::Linear out;
  TwoLayerRNN(int n_in, int n_rec, int n_out)
      : rnn1(n_in, n_rec), rnn2(n_rec, n_rec), out(n_rec, n_out) {
    add("rnn1", rnn1);
    add("rnn2", rnn2);
    add("out", out);
  }
  Value update(Value x) override { return out(rnn2(rnn1(x))); }
};

struct ConvRNN : Module {
  nn::Conv2d conv{1, 8, {.kernel_size = 3, .padding = "SAME"}};
  nn::ValinaRNNCell rnn{8 * 28 * 28, 64};
  nn::Linear out{64, 10};
  ConvRNN() {
    add("conv", conv);
    add("rnn", rnn);
    add("out", out);
  }
  // x: (1, 28, 28), one channel
  Value update(Value x) override { return out(rnn(reshape(conv(x), {-1}))); }
};

// ---- telling --------------------------------------------------------------------------

void title(const std::string& text) {
  fmt::print("\n\n{0}\n{1}\n{0}\n", std::string(90, '='), text);
}

void heading(const std::string& text) {
  fmt::print("\n{}\n{}\n\n", text, std::string(text.size(), '-'));
}

// The report without its rule, moved to the right.
void print_indented(const std::string& text) {
  std::size_t at = 0, blank = 1;  // at most one empty line in a row
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("====")) continue;
    blank = line.empty() ? blank + 1 : 0;
    if (blank < 2) fmt::print("{}{}\n", line.empty() ? "" : "   ", line);
  }
}

void write_file(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  BT_REQUIRE(out, "cannot write " + file.string());
  fmt::print("   wrote {}\n", file.string());
}

struct Sample {
  std::string name, title;
  Module& model;
  Shape input;
};

ETraceGraph compile(const Sample& s, const CompileOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  ETraceGraph g = compile_etrace_graph(s.model, {zeros(s.input)}, options);
  const std::chrono::duration<double, std::milli> took =
      std::chrono::steady_clock::now() - start;
  fmt::print("   (compiled in {:.1f} ms)\n\n", took.count());
  return g;
}

void show(const Sample& s, const fs::path& folder) {
  title(s.title);
  init_all_states(s.model);

  heading("One step, traced");
  print_indented(to_code(trace_step(s.model, {type_of(zeros(s.input))})));

  heading("Its graph as braintrace 0.2.6 finds it (compat)");
  const ETraceGraph reference = compile(s, compat());
  print_indented(CompilationReport(reference).to_str());

  heading("Its graph in the default mode: every parameter has a verdict");
  const ETraceGraph sound = compile(s, {});
  const CompilationReport report(sound);
  print_indented(report.to_str());
  print_indented(report.verdict_table());

  heading("Pictures and pages");
  for (const auto& [g, name] :
       {std::pair{&reference, s.name + "_compat"}, std::pair{&sound, s.name}}) {
    write_file(folder / (name + ".svg"), dot_to_svg(to_dot(*g)));
    write_file(folder / (name + ".html"), to_html(*g, {.title = name}));
  }
}

// ---- a gradient, checked --------------------------------------------------------------

// loss = mean (y - target)^2 of one step, as a program of the step's inputs.
Graph loss_program(const StepModel& step, const Array& target) {
  const auto builder = Builder::create();
  std::vector<Value> inputs;
  for (const Type& t : step.program.input_types()) inputs.push_back(builder->input(t));
  const Value y = inline_graph(step.program, inputs)[0];
  return builder->finish({{mean(square(y - target))}});
}

// Largest difference between a gradient and central differences of the loss.
double worst_error(const Graph& loss, const std::vector<Array>& inputs, std::size_t which,
                   const Array& gradient) {
  const double step = 1e-6;
  double worst = 0;
  for (std::int64_t i = 0; i < gradient.size(); ++i) {
    const auto loss_at = [&](double shift) {
      std::vector<Array> moved = inputs;
      moved[which].mutable_data<double>()[i] += shift;
      return eval_graph(loss, moved)[0].item();
    };
    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    worst = std::max(worst, std::abs(slope - gradient.at(i)));
  }
  return worst;
}

bool check_gradient() {
  title("The gradient of one step, derived from its program and checked");
  TwoLayerRNN model(3, 4, 2);
  init_all_states(model, {.seed = 7, .dtype = DType::f64});
  const Array x = array({1, -0.5, 0.25}, DType::f64);
  model(x);  // leave the zero state
  const StepModel step = trace_step(model, std::vector<Array>{x});
  const Graph loss = loss_program(step, array({0.5, -0.5}, DType::f64));
  const Graph derived =
      value_and_grad(loss, std::vector<bool>(loss.inputs().size(), true));
  std::vector<Array> inputs = {x};
  for (const Array& a : read_states(step)) inputs.push_back(a);
  const std::vector<Array> results = eval_graph(derived, inputs);
  fmt::print("\n   loss program: {} nodes; with gradient: {} nodes; loss = {:.6f}\n",
             loss.nodes().size(), derived.nodes().size(), results[0].item());
  double worst = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    worst = std::max(worst, worst_error(loss, inputs, i, results[1 + i]));
  const bool ok = worst < 1e-7;
  fmt::print("   {} gradients against central differences: worst error {:.1e}: {}\n",
             inputs.size(), worst, ok ? "all agree" : "THEY DO NOT AGREE");
  return ok;
}

int run(const fs::path& folder) {
  fs::create_directories(folder);
  SingleLayerRNN single(10, 32, 5);
  TwoLayerRNN gru(10, 32, 5);
  ConvRNN conv;
  const std::vector<Sample> samples = {
      {"single_rnn",
       "1. SingleLayerRNN(10, 32, 5): a recurrent layer and a readout",
       single,
       {10}},
      {"two_layer_gru",
       "2. TwoLayerRNN(10, 32, 5): two GRU layers and a readout",
       gru,
       {10}},
      {"conv_rnn",
       "3. ConvRNN(): a convolution that feeds a recurrent layer",
       conv,
       {1, 28, 28}}};
  for (const Sample& s : samples) show(s, folder);
  const bool ok = check_gradient();
  fmt::print(
      "\nPictures (.svg) and pages (.html) of all models, in both modes, are in {}\n",
      folder.string());
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "build/demo");
  } catch (const std::exception& e) {
    fmt::print(stderr, "demo: {}\n", e.what());
    return 1;
  }
}
