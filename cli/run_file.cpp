// SPDX-License-Identifier: Apache-2.0
#include "run_file.h"

#include <filesystem>

#include <fmt/format.h>

#include "braintrace/base/error.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/train/run_log_json.h"

namespace braintrace::cli {
namespace {

using nlohmann::json;

void build(BuiltRun& b, int threads) {
  const Task task = task_of(b.request);
  b.model = nn::build_model(b.model_text);
  const Algorithm algorithm = algorithm_of(b.request, *b.model, task);
  TrainingOptions options = training_options(b.request);
  options.learner.threads = threads;
  b.run = std::make_unique<TrainingRun>(task, *b.model, algorithm, update_rule(b.request),
                                        options);
}

}  // namespace

json curves_json(const RunLog& log) {
  return json::parse(run_log_to_json(log, RunLogPart::curves));
}

BuiltRun build_run(const RunRequest& r, int threads) {
  BuiltRun b{.request = r, .model_text = model_text(r, task_of(r))};
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
  c.config = config.dump();
  c.model = b.model_text;
  save_checkpoint(file, c);
}

}  // namespace braintrace::cli
