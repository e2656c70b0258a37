// SPDX-License-Identifier: Apache-2.0
#pragma once
// What several commands ask for in the same words: a task, a model that fits it, a rule,
// an optimiser. Kept in checkpoints, so that a run can be built again.
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "braintrace/algo/algorithm.h"
#include "braintrace/etrace/etrace_graph.h"
#include "braintrace/train/training_run.h"

namespace braintrace::cli {

struct RunRequest {
  std::string task = "integrator", model = "gru", algorithm = "d_rtrl";
  std::string memory = "64MB";  // budget of `--algorithm auto`
  std::string optimizer = "adam", update = "sequence";
  std::int64_t hidden = 32, layers = 1, batch = 32;
  std::uint64_t seed = 0;
  double lr = 0.01, clip_norm = 1;
  double decay = 0.9, kappa = 0.9;
  std::int64_t snap_n = 2;
  std::vector<std::string> task_options;                        // name=value
  std::vector<std::string> set;                                 // name=value
  std::int64_t epochs = 10, samples = 640, test_samples = 256;  // may grow on the way
};

// The options by which requests differ. `algorithm`: false where a command has its own.
struct RunOptionsWanted {
  bool algorithm = true, optimizer = true;
};
// Validators that leave the help text alone.
CLI::Validator at_least_one();  // below 2^31
CLI::Validator layer_count();
CLI::Validator whole_number(std::int64_t least, std::int64_t most);
enum class Zero { refused, allowed };
CLI::Validator positive_number(Zero zero = Zero::refused);
CLI::Validator one_of(const std::vector<std::string>& names);
CLI::Validator file_name();    // not empty
CLI::Validator seed_number();  // 0 to 2^63 - 2: what is read of larger ones is 2^63 - 1
void add_run_options(CLI::App& app, RunRequest& r, RunOptionsWanted wanted = {});
void add_decay_options(CLI::App& app, RunRequest& r);  // arguments of rules
void add_threads_option(CLI::App& app, int& threads);
// "name=value" in order; UserError for other texts and for a name given twice.
std::vector<std::pair<std::string, std::string>> named_values(
    const char* option, const std::vector<std::string>& pairs);
// name=value, to the option's owner. UserError lists all names.
void set_options(const std::vector<std::string>& set, LearningOptions& learning,
                 CompileOptions& graph);

nlohmann::json to_json(const RunRequest& r);
RunRequest run_request_from_json(const nlohmann::json& j);  // UserError

Task task_of(const RunRequest& r);
std::string model_text(const RunRequest& r, const Task& task);  // for nn::build_model
CompileOptions graph_options(const RunRequest& r, bool batched);
TrainingOptions training_options(const RunRequest& r);
UpdateRule update_rule(const RunRequest& r);
std::vector<std::string> optimizer_names();

// UserError when the rule needs signals that only a program can give.
void require_alone(const Algorithm& a);
// A rule by name with the arguments it takes from the request.
bool takes_decay(std::string_view algorithm);
bool takes_kappa(std::string_view algorithm);
Algorithm algorithm_named(const std::string& name, const RunRequest& r);
// The same, and "auto": the best rule whose traces fit the budget.
Algorithm algorithm_of(const RunRequest& r, Module& model, const Task& task);

// "3,489 parameters"
std::int64_t count_parameters(const Module& model);

}  // namespace braintrace::cli
