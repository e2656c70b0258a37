// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include "model_source.h"
#include "output.h"
#include <fmt/format.h>

#include "braintrace/algo/graph_options.h"
#include "braintrace/algo/memory_plan.h"
#include "braintrace/base/error.h"
#include "braintrace/view/html.h"

namespace braintrace::cli {
namespace {

MemoryPlan own_plan(const BuiltRun& b) {
  const Learner& learner = b.run->learner();
  const bool whole = learner.algorithm().engine == Engine::bptt;
  return memory_plan(learner.graph(), learner.algorithm(),
                     {.window = whole ? b.run->task().shape().steps : 0});
}

// The rule in use first, then others that can serve the model.
std::vector<MemoryPlan> memory_of(const BuiltRun& b) {
  std::vector<MemoryPlan> plans = {own_plan(b)};
  const Task& task = b.run->task();
  for (const char* name :
       {"d_rtrl", "pp_prop", "hybrid", "eprop", "snap", "uoro", "rtrl", "bptt"}) {
    try {
      const Algorithm a = algorithm_named(name, b.request);
      if (a.name == plans.front().algorithm) continue;
      const ETraceGraph g = compile_etrace_graph(
          *b.model, {zeros({b.request.batch, task.shape().features})},
          graph_options(a, graph_options(b.request, true)));
      plans.push_back(memory_plan(
          g, a, {.window = a.engine == Engine::bptt ? task.shape().steps : 0}));
    } catch (const UserError&) {
      continue;  // this rule cannot serve the model
    }
  }
  return plans;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> facts_of(const BuiltRun& b) {
  const Task& task = b.run->task();
  const RunRequest& r = b.request;
  const Learner& learner = b.run->learner();
  return {{"task",
           fmt::format(
               "{}: {}, {}, {}; {}", task.name(), counted(task.shape().steps, "step"),
               counted(task.shape().features, "input"),
               counted(task.shape().outputs, "output"),
               task.loss() == TaskLoss::mse ? "mean squared error" : "cross-entropy")},
          {"model", fmt::format("{}: {} parameters", model_title(r.model),
                                count_text(count_parameters(*b.model)))},
          {"algorithm", fmt::format("{}: {} of traces for {}", learner.algorithm().name,
                                    bytes_text(own_plan(b).total_bytes()),
                                    counted(r.batch, "sample"))},
          {"optimiser", fmt::format("{}, learning rate {}, {}", r.optimizer, r.lr,
                                    r.update == "step" ? "an update at every scored step"
                                                       : "an update per sequence")}};
}

std::string report_page(BuiltRun& b) {
  RunLog log = b.run->log();
  log.facts = facts_of(b);
  log.facts.emplace_back(
      "batches", fmt::format("{} of {} samples, {}", b.run->updates(), b.request.batch,
                             duration_text(log.seconds)));
  if (log.seconds > 0)
    log.facts.emplace_back(
        "speed",
        fmt::format("{} steps per second",
                    rate_text(static_cast<double>(log.time_steps) / log.seconds)));
  HtmlOptions o{
      .title = fmt::format("{} on {}", model_title(b.request.model), b.request.task)};
  o.algorithm = b.run->learner().algorithm();
  o.memory = memory_of(b);
  // A certificate needs states of its own: those of the run stay.
  const Checkpoint before = b.run->checkpoint();
  o.certificate = b.run->certificate();
  b.run->restore(before);
  o.log = std::move(log);
  return to_html(b.run->learner().graph(), o);
}

}  // namespace braintrace::cli
