// SPDX-License-Identifier: Apache-2.0
#include "run_file.h"

#include <filesystem>
#include <optional>

#include "model_source.h"
#include "output.h"
#include <fmt/format.h>
#include <unistd.h>

#include "braintrace/algo/graph_options.h"
#include "braintrace/algo/memory_plan.h"
#include "braintrace/base/error.h"
#include "braintrace/model/step_model.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/train/run_log_json.h"

namespace braintrace::cli {
namespace {

using nlohmann::json;

std::string needs_of(const Task& task) {
  return fmt::format("task '{}' gives {} and wants {} per step", task.name(),
                     counted(task.shape().features, "input"),
                     counted(task.shape().outputs, "output"));
}

// A kind of the registry that does not take all sizes of a task: how it would fit, if it
// can.
std::optional<std::string> sizes_not_taken(const std::string& kind, const json& model,
                                           const Task& task) {
  const Task::Shape& shape = task.shape();
  for (const bool has_input : {true, false}) {
    json fewer = model;
    fewer.erase("n_out");
    if (!has_input) fewer.erase("n_in");
    try {
      nn::build_model(fewer.dump());
    } catch (const UserError&) {
      continue;
    }
    fewer["n_rec"] = shape.outputs;
    const bool fits = has_input || shape.features == shape.outputs;
    const char* why =
        has_input ? "has no readout (n_out): its output is its state"
                  : "takes no n_in and n_out: input, state and output have one size";
    return fmt::format(
        "--model: '{}' {}; {}: take a kind with n_out (docs/nn.md#kinds-of-models){}",
        kind, why, needs_of(task),
        fits ? fmt::format(", or as many units as outputs, --model '{}'", fewer.dump())
             : "");
  }
  return std::nullopt;
}

std::unique_ptr<Module> model_of(const BuiltRun& b, const Task& task) {
  try {
    return nn::build_model(b.model_text);
  } catch (const UserError& e) {
    const std::string& kind = b.request.model;
    if (is_model_file(kind)) throw;
    if (const auto why = sizes_not_taken(kind, json::parse(b.model_text), task))
      throw UserError(*why);
    throw UserError(e.what() + kind_hint(kind));
  }
}

// A model of one's own may have other sizes than the task.
void require_model_fits(const BuiltRun& b, const Task& task) {
  if (!is_model_file(b.request.model)) return;
  const std::unique_ptr<Module> model = nn::build_model(b.model_text);
  init_all_states(*model, {.batch_size = 1});
  Type out;
  try {
    const StepModel step =
        trace_step(*model, std::vector{zeros({1, task.shape().features})});
    out = step.program.type(step.program.outputs()[0]);
  } catch (const UserError& e) {
    throw UserError(fmt::format("{}; {}", e.what(), needs_of(task)));
  }
  const std::int64_t wanted = task.shape().outputs;
  const bool scores = task.loss() == TaskLoss::softmax_xent;  // more of them do no harm
  const bool fits = out.rank() == 2 && out.shape[0] == 1 &&
                    (scores ? out.shape[1] >= wanted : out.shape[1] == wanted);
  BT_REQUIRE(fits, fmt::format("--model: {}, the model gives {} for one sample",
                               needs_of(task), to_string(out.shape)));
}

void build(BuiltRun& b, int threads) {
  const Task task = task_of(b.request);
  b.model = model_of(b, task);
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
  require_model_fits(b, task);
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
