// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/run_log_json.h"

#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "braintrace/base/error.h"

namespace braintrace {
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

// JSON writes null for what is infinite or not a number.
double number_from(const json& j) {
  return j.is_null() ? std::numeric_limits<double>::quiet_NaN() : j.get<double>();
}

std::vector<RunPoint> points_from(const json& j) {
  std::vector<RunPoint> out;
  for (const json& one : j) {
    RunPoint p{.update = one.at("update"), .loss = number_from(one.at("loss"))};
    if (one.contains("accuracy")) p.accuracy = number_from(one["accuracy"]);
    if (one.contains("firing_rate")) p.firing_rate = number_from(one["firing_rate"]);
    out.push_back(p);
  }
  return out;
}

json rasters_json(const std::vector<SpikeRaster>& rasters) {
  json out = json::array();
  for (const SpikeRaster& r : rasters)
    out.push_back({{"population", r.population},
                   {"steps", r.steps},
                   {"units", r.units},
                   {"spikes", r.spikes}});
  return out;
}

std::vector<SpikeRaster> rasters_from(const json& j) {
  std::vector<SpikeRaster> out;
  for (const json& one : j) {
    SpikeRaster r{one.at("population"), one.at("steps"), one.at("units"),
                  one.at("spikes")};
    for (const auto& [step, unit] : r.spikes)
      BT_REQUIRE(step >= 0 && step < r.steps && unit >= 0 && unit < r.units,
                 fmt::format("a run's log: spike ({}, {}) lies outside {} steps of {} "
                             "units",
                             step, unit, r.steps, r.units));
    out.push_back(std::move(r));
  }
  return out;
}

}  // namespace

std::string run_log_to_json(const RunLog& log, RunLogPart part) {
  json j = {{"training", points_json(log.training)},
            {"evaluations", points_json(log.evaluations)},
            {"constant_loss", log.constant_loss},
            {"seconds", log.seconds},
            {"time_steps", log.time_steps}};
  if (log.constant_accuracy) j["constant_accuracy"] = *log.constant_accuracy;
  if (part == RunLogPart::all) j["rasters"] = rasters_json(log.rasters);
  return j.dump();
}

RunLog run_log_from_json(std::string_view text) {
  try {
    const json j = json::parse(text);
    RunLog log;
    log.training = points_from(j.at("training"));
    log.evaluations = points_from(j.at("evaluations"));
    log.constant_loss = number_from(j.at("constant_loss"));
    if (j.contains("constant_accuracy"))
      log.constant_accuracy = number_from(j["constant_accuracy"]);
    log.seconds = j.at("seconds");
    log.time_steps = j.at("time_steps");
    if (j.contains("rasters")) log.rasters = rasters_from(j["rasters"]);
    return log;
  } catch (const json::exception& e) {
    throw UserError(fmt::format("a run's log is damaged: {}", e.what()));
  }
}

}  // namespace braintrace
