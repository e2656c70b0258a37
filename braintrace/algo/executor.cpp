// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/executor.h"

#include <ostream>

#include <fmt/format.h>

namespace braintrace {
namespace {

Array only_value(const Values& values, const char* what) {
  BT_REQUIRE(values.size() == 1, fmt::format("{}: one argument holds one value, got {}",
                                             what, values.size()));
  return values[0].array();
}

}  // namespace

StepArgument::StepArgument(const SingleStepData& d)
    : value(only_value(d.values, "SingleStepData")) {}

StepArgument::StepArgument(const MultiStepData& d)
    : value(only_value(d.values, "MultiStepData")), multi_step(true) {
  BT_REQUIRE(!value.shape().empty() && value.shape()[0] > 0,
             fmt::format("MultiStepData: a leading time axis is needed, got {}",
                         to_string(value.shape())));
}

ETraceGraphExecutor::ETraceGraphExecutor(Module& model, CompileOptions options)
    : model_(model), options_(std::move(options)) {}

void ETraceGraphExecutor::compile_graph(const std::vector<StepArgument>& args) {
  if (graph_) return;
  std::vector<Array> first;
  for (const StepArgument& a : args) {
    if (!a.multi_step) {
      first.push_back(a.value);
      continue;
    }
    Shape size = a.value.shape();
    size[0] = 1;
    const Ints start(size.size(), 0), step(size.size(), 1);
    first.push_back(
        a.value.sliced(start, size, step).reshaped(Shape(size.begin() + 1, size.end())));
  }
  graph_ = std::make_unique<ETraceGraph>(compile_etrace_graph(model_, first, options_));
}

const ETraceGraph& ETraceGraphExecutor::graph() const {
  BT_REQUIRE(graph_, "ETraceGraphExecutor::graph: call compile_graph(args) first");
  return *graph_;
}

std::vector<NamedState> ETraceGraphExecutor::path_to_states() const {
  std::vector<NamedState> out;
  const StepModel& step = graph().module_info.step;
  for (std::size_t i : step.retrieved)
    out.push_back({step.states[i].path, step.states[i].state});
  return out;
}

std::vector<State*> ETraceGraphExecutor::states() const {
  std::vector<State*> out;
  for (const NamedState& n : path_to_states()) out.push_back(n.state);
  return out;
}

std::string ETraceGraphExecutor::show_graph(int verbose, std::ostream* out) const {
  BT_REQUIRE(verbose >= 0 && verbose <= 2,
             fmt::format("show_graph: verbose must be 0, 1 or 2, got {}", verbose));
  std::string text = CompilationReport(graph()).to_str(verbose);
  if (out) *out << text << '\n';
  return text;
}

}  // namespace braintrace
