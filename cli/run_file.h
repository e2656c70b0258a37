// SPDX-License-Identifier: Apache-2.0
#pragma once
// A run of `braintrace train`, built from a request or from its checkpoint.
#include <memory>

#include "run_request.h"

namespace braintrace::cli {

struct BuiltRun {
  RunRequest request;
  std::string model_text;
  std::unique_ptr<Module> model;
  std::unique_ptr<TrainingRun> run;
};

BuiltRun build_run(const RunRequest& r, int threads);
// With weights, traces, moments and the log as they were.
BuiltRun load_run(const std::string& file, int threads);
void save_run(const std::string& file, const BuiltRun& b);

// Curves without rasters: what --json prints.
nlohmann::json curves_json(const RunLog& log);

}  // namespace braintrace::cli
