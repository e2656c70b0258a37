// SPDX-License-Identifier: Apache-2.0
#include "run_file.h"

#include <filesystem>

#include <fmt/format.h>

#include "braintrace/base/error.h"
#include "braintrace/nn/model_registry.h"

namespace braintrace::cli {
namespace {

using nlohmann::json;

json points_json(const std::vector<RunPoint>& points) {
  json out = json::array();
  for (const RunPoint& p : points) {
    json one = {{"update", p.update}, {"loss", p.loss}};
    if (p.accuracy) one["accuracy"] = *p.accuracy;
    if (p.firing_rate) one["firing_rate"] = *p.firing_rate;
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<RunPoint> points_from(const json& j) {
  std::vector<RunPoint> out;
  for (const json& one : j) {
    RunPoint p{.update = one.at("update"), .loss = one.at("loss")};
    if (one.contains("accuracy")) p.accuracy = one["accuracy"].get<double>();
    if (one.contains("firing_rate")) p.firing_rate = one["firing_rate"].get<double>();
    out.push_back(p);
  }
  return out;
}

RunLog log_from(const json& j) {
  try {
    RunLog log;
    log.training = points_from(j.at("training"));
    log.evaluations = points_from(j.at("evaluations"));
    log.constant_loss = j.at("constant_loss");
    if (j.contains("constant_accuracy"))
      log.constant_accuracy = j["constant_accuracy"].get<double>();
    log.seconds = j.at("seconds");
    log.time_steps = j.at("time_steps");
    return log;
  } catch (const json::exception& e) {
    throw UserError(fmt::format("the checkpoint's curves are damaged: {}", e.what()));
  }
}

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
  json j = {{"training", points_json(log.training)},
            {"evaluations", points_json(log.evaluations)},
            {"constant_loss", log.constant_loss},
            {"seconds", log.seconds},
            {"time_steps", log.time_steps}};
  if (log.constant_accuracy) j["constant_accuracy"] = *log.constant_accuracy;
  return j;
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
  b.run->log() = log_from(config["log"]);
  return b;
}

void save_run(const std::string& file, const BuiltRun& b) {
  Checkpoint c = b.run->checkpoint();
  json config = json::parse(c.config);
  config["run"] = to_json(b.request);
  config["log"] = curves_json(b.run->log());
  c.config = config.dump();
  c.model = b.model_text;
  save_checkpoint(file, c);
}

}  // namespace braintrace::cli
