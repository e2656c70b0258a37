// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/executor.h"

#include <sstream>

#include <doctest/doctest.h>

#include "braintrace/nn/model_registry.h"

namespace executor_test {

using namespace braintrace;

namespace {

// The contract only: a rule's executor fills in the two solve methods.
class ShowOnly : public ETraceGraphExecutor {
 public:
  using ETraceGraphExecutor::ETraceGraphExecutor;
  StepSolution solve_h2w_h2h_jacobian(const std::vector<StepArgument>&,
                                      const TraceStepper&, std::vector<Array>) override {
    return {};
  }
  StepSolution solve_h2w_h2h_l2h_jacobian(const std::vector<StepArgument>&,
                                          const TraceStepper&,
                                          std::vector<Array>) override {
    return {};
  }
};

}  // namespace

TEST_CASE("the graph exists after compile_graph only") {
  const auto model = nn::build_model("single_rnn");
  init_all_states(*model);
  ShowOnly executor(*model, compat());
  CHECK(!executor.is_compiled());
  CHECK_THROWS_WITH_AS(executor.graph(),
                       "ETraceGraphExecutor::graph: call compile_graph(args) first",
                       UserError);
  executor.compile_graph({StepArgument(zeros({10}))});
  const ETraceGraph* first = &executor.graph();
  executor.compile_graph({StepArgument(zeros({10}))});
  CHECK(&executor.graph() == first);
}

TEST_CASE("show_graph returns the text and writes it where asked") {
  const auto model = nn::build_model("single_rnn");
  init_all_states(*model);
  ShowOnly executor(*model, compat());
  executor.compile_graph({StepArgument(zeros({10}))});
  std::ostringstream out;
  const std::string text = executor.show_graph(1, &out);
  CHECK(out.str() == text + "\n");
  CHECK(text == CompilationReport(executor.graph()).to_str(1));
  CHECK_THROWS_WITH_AS(executor.show_graph(3),
                       "show_graph: verbose must be 0, 1 or 2, got 3", UserError);
}

TEST_CASE("path_to_states lists what the step uses, sorted by path") {
  const auto model = nn::build_model("single_rnn");
  init_all_states(*model);
  ShowOnly executor(*model);
  executor.compile_graph({StepArgument(zeros({10}))});
  std::vector<Path> paths;
  for (const NamedState& n : executor.path_to_states()) paths.push_back(n.path);
  CHECK(paths == std::vector<Path>{Path{"out", "weight"}, Path{"rnn", "W", "weight"},
                                   Path{"rnn", "h"}});
  CHECK(executor.states().size() == 3);
}

}  // namespace executor_test
