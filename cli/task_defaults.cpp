// SPDX-License-Identifier: Apache-2.0
#include "task_defaults.h"

namespace braintrace::cli {
namespace {

struct TaskDefaults {
  const char* task;
  const char* model;
  const char* algorithm;
  std::int64_t hidden;
  double lr;
  std::int64_t epochs;
  double decay = 0.9;  // of pp_prop
};

// Settings that beat the best constant for seeds 0 to 4 (tests/cli_runs_test.py runs
// one).
constexpr TaskDefaults kDefaults[] = {
    {"copying", "gru", "d_rtrl", 64, 0.01, 30},
    {"integrator", "gru", "d_rtrl", 32, 0.01, 10},
    {"delayed_match", "lif", "pp_prop", 64, 0.003, 20},
    {"adding", "gru", "d_rtrl", 32, 0.01, 10},
    {"digits", "gru", "d_rtrl", 64, 0.01, 15},
    {"evidence", "lif", "pp_prop", 64, 0.003, 10, 0.98},
    {"pattern", "gru", "d_rtrl", 64, 0.005, 40},
    {"text", "gru", "d_rtrl", 64, 0.003, 8},
};

}  // namespace

void suit_task(RunRequest& r, const CLI::App& app) {
  const auto given = [&app](const char* name) {
    const CLI::Option* o = app.get_option_no_throw(name);
    return o != nullptr && o->count() > 0;
  };
  for (const TaskDefaults& d : kDefaults) {
    if (r.task != d.task) continue;
    if (!given("--epochs")) r.epochs = d.epochs;
    if (given("--model")) return;
    r.model = d.model;
    if (!given("--algorithm")) r.algorithm = d.algorithm;
    if (!given("--hidden")) r.hidden = d.hidden;
    if (!given("--lr")) r.lr = d.lr;
    if (!given("--decay")) r.decay = d.decay;
  }
}

}  // namespace braintrace::cli
