// SPDX-License-Identifier: Apache-2.0
// Three models as one step each, and what the compiler finds in them: which weights reach
// which hidden states, and how each parameter will be served.
#include <fmt/format.h>

#include "braintrace/etrace/report.h"
#include "braintrace/nn/nn.h"

using namespace braintrace;

struct SingleLayerRNN : nn::Module {
  nn::ValinaRNNCell rnn{10, 32};
  nn::Linear out{32, 5};
  SingleLayerRNN() {
    add("rnn", rnn);
    add("out", out);
  }
  Value update(Value x) override { return out(rnn(x)); }
};

struct TwoLayerRNN : nn::Module {
  nn::GRUCell rnn1{10, 32}, rnn2{32, 32};
  nn::Linear out{32, 5};
  TwoLayerRNN() {
    add("rnn1", rnn1);
    add("rnn2", rnn2);
    add("out", out);
  }
  Value update(Value x) override { return out(rnn2(rnn1(x))); }
};

struct ConvRNN : nn::Module {
  nn::Conv2d conv{1, 8, {.kernel_size = 3, .padding = "SAME"}};
  nn::ValinaRNNCell rnn{8 * 28 * 28, 64};
  nn::Linear out{64, 10};
  ConvRNN() {
    add("conv", conv);
    add("rnn", rnn);
    add("out", out);
  }
  Value update(Value x) override { return out(rnn(reshape(conv(x), {-1}))); }
};

// Compiles the model and prints what was found. How many groups there are.
std::size_t show(const std::string& name, Module& model, const Array& x) {
  init_all_states(model);
  const ETraceGraph graph = compile_etrace_graph(model, {x});
  fmt::print("== {}: output {}\n", name, to_string(model(x).shape()));
  fmt::print("{}\n", CompilationReport(graph).verdict_table());
  return graph.hidden_groups.size();
}

int main() {
  SingleLayerRNN single;
  TwoLayerRNN two;
  ConvRNN conv;
  const bool right = show("single layer", single, zeros({10})) == 1 &&
                     show("two layers", two, zeros({10})) == 2 &&
                     show("convolution", conv, zeros({1, 28, 28})) == 1;
  return right ? 0 : 1;
}
