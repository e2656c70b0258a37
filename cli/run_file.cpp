// SPDX-License-Identifier: Apache-2.0
#include "run_file.h"

#include <filesystem>

#include "model_source.h"
#include "output.h"
#include <fmt/format.h>
#include <unistd.h>

#include "braintrace/algo/graph_options.h"
#include "braintrace/algo/memory_plan.h"
#include "braintrace/base/error.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/train/run_log_json.h"

namespace braintrace::cli {
namespace {

using nlohmann::json;

std::unique_ptr<Module> model_of(const BuiltRun& b) {
  try {
    return nn::build_model(b.model_text);
  } catch (const UserError& e) {
    if (is_model_file(b.request.model)) throw;
    throw UserError(std::string(e.what()) + kKindHint);
  }
}

void build(BuiltRun& b, int threads) {
  const Task task = task_of(b.request);
  b.model = model_of(b);
  const Algorithm algorithm = algorithm_of(b.request, *b.model, task);
  TrainingOptions options = training_options(b.request);
  options.learner.threads = threads;
  b.run = std::make_unique<TrainingRun>(task, *b.model, algorithm, update_rule(b.request),
                                        options);
}

void require_memory(double bytes, const std::string& option) {
  const double there = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<double>(sysconf(_SC_PAGE_SIZE));
  const auto text = [](double b) {
    return bytes_text(static_cast<std::int64_t>(std::min(b, 9e18)));
  };
  BT_REQUIRE(bytes <= there,
             fmt::format("{} needs about {} of memory, this machine has {}", option,
                         text(bytes), text(there)));
}

// Before anything of that size is made: samples and traces of a usual batch, times as
// many.
void require_fitting_sizes(const RunRequest& r, const Task& task) {
  const double hidden = static_cast<double>(r.hidden);
  if (!is_model_file(r.model))
    require_memory(4 * hidden * hidden * static_cast<double>(r.layers),
                   r.layers == 1
                       ? fmt::format("--hidden {}", r.hidden)
                       : fmt::format("--hidden {} --layers {}", r.hidden, r.layers));
  constexpr std::int64_t usual = 1024;
  if (r.batch <= usual) return;
  RunRequest small = r;
  small.batch = usual;
  const std::unique_ptr<Module> model = nn::build_model(model_text(small, task));
  const Algorithm a = algorithm_of(small, *model, task);
  init_all_states(*model, {.batch_size = usual});
  const ETraceGraph graph =
      compile_etrace_graph(*model, {zeros({usual, task.shape().features})},
                           graph_options(a, graph_options(small, true)));
  const bool whole = a.engine == Engine::bptt;
  const auto traces =
      memory_plan(graph, a, {.window = whole ? task.shape().steps : 0}).total_bytes();
  const auto samples =
      4 * usual * task.shape().steps * (task.shape().features + task.shape().outputs);
  require_memory(
      static_cast<double>(traces + samples) * static_cast<double>(r.batch) / usual,
      fmt::format("--batch {}", r.batch));
}

}  // namespace

json curves_json(const RunLog& log) {
  return json::parse(run_log_to_json(log, RunLogPart::curves));
}

BuiltRun build_run(const RunRequest& r, int threads) {
  const Task task = task_of(r);
  require_fitting_sizes(r, task);
  BuiltRun b{.request = r, .model_text = model_text(r, task)};
  build(b, threads);
  return b;
}

BuiltRun load_run(const std::string& file, int threads) {
  BT_REQUIRE(std::filesystem::exists(file),
             fmt::format("there is no checkpoint '{}'", file));
  const Checkpoint c = load_checkpoint(file);
  const json config = json::parse(c.config, nullptr, false);
  BT_REQUIRE(config.is_object() && config.contains("run") && config.contains("log"),
             fmt::format("'{}' was not written by braintrace train", file));
  BuiltRun b{.request = run_request_from_json(config["run"]), .model_text = c.model};
  build(b, threads);
  b.run->restore(c);
  b.run->log() = run_log_from_json(config["log"].dump());
  return b;
}

void save_run(const std::string& file, const BuiltRun& b) {
  Checkpoint c = b.run->checkpoint();
  json config = json::parse(c.config);
  config["run"] = to_json(b.request);
  config["log"] = json::parse(run_log_to_json(b.run->log()));
  c.config = json_text(config);
  c.model = b.model_text;
  save_checkpoint(file, c);
}

}  // namespace braintrace::cli
