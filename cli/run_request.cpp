// SPDX-License-Identifier: Apache-2.0
#include "run_request.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model_source.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/algo/algorithm_names.h"
#include "braintrace/algo/memory_plan.h"
#include "braintrace/base/error.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/nn/sized_model.h"
#include "braintrace/train/task_settings.h"

namespace braintrace::cli {

using nlohmann::json;

std::vector<std::pair<std::string, std::string>> named_values(
    const char* option, const std::vector<std::string>& pairs) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    BT_REQUIRE(equals != std::string::npos,
               fmt::format("{} needs name=value, got '{}'", option, pair));
    const std::string name = pair.substr(0, equals);
    for (const auto& [known, value] : out)
      BT_REQUIRE(known != name,
                 fmt::format("{} gives '{}' more than once: '{}={}' and '{}'", option,
                             name, known, value, pair));
    out.emplace_back(name, pair.substr(equals + 1));
  }
  return out;
}

CLI::Validator at_least_one() { return whole_number(1, (std::int64_t{1} << 31) - 1); }
// Compiling takes a tenth of a second per layer.
CLI::Validator layer_count() { return whole_number(1, 1000); }

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  return CLI::Validator(
      [=](std::string& text) {
        std::int64_t n = 0;
        const bool fits = CLI::detail::lexical_cast(text, n) && n >= least && n <= most;
        return fits ? std::string()
                    : fmt::format("must be a whole number from {} to {}, got '{}'", least,
                                  most, text);
      },
      "");
}

CLI::Validator positive_number(Zero zero) {
  return CLI::Validator(
      [=](std::string& text) {
        double v = 0;
        const bool fits = CLI::detail::lexical_cast(text, v) && std::isfinite(v) &&
                          (v > 0 || (v == 0 && zero == Zero::allowed));
        return fits ? std::string()
                    : fmt::format("must be a positive number{}, got '{}'",
                                  zero == Zero::allowed ? " or 0" : "", text);
      },
      "");
}

CLI::Validator one_of(const std::vector<std::string>& names) {
  return CLI::IsMember(names).description("");
}

CLI::Validator file_name() {
  return CLI::Validator(
      [](std::string& text) {
        return text.empty() ? std::string("must be the name of a file, got ''") : "";
      },
      "");
}

CLI::Validator seed_number() {
  return whole_number(0, std::numeric_limits<std::int64_t>::max() - 1);
}

void add_decay_options(CLI::App& app, RunRequest& r) {
  app.add_option("--decay", r.decay, "pp_prop, hybrid: smoothing of the factors")
      ->capture_default_str();
  app.add_option("--kappa", r.kappa, "eprop: filter of the trace")->capture_default_str();
  app.add_option("--snap-n", r.snap_n, "snap: steps of influence kept")
      ->capture_default_str();
}

void add_threads_option(CLI::App& app, int& threads) {
  app.add_option("--threads", threads, "0: as the environment says")
      ->check(whole_number(0, 1024))
      ->capture_default_str();
}

void add_run_options(CLI::App& app, RunRequest& r, RunOptionsWanted wanted) {
  const CLI::Validator size = at_least_one();
  app.add_option("--task", r.task, fmt::format("{}", fmt::join(task_names(), ", ")))
      ->check(one_of(task_names()))
      ->capture_default_str();
  app.add_option("--task-option", r.task_options,
                 "an option of the task, name=value (repeatable)");
  app.add_option("--model", r.model,
                 fmt::format("{}; a kind of the registry; JSON, or a file with it",
                             fmt::join(nn::sized_model_names(), ", ")))
      ->capture_default_str();
  app.add_option("--hidden", r.hidden, "recurrent units of a layer")
      ->check(size)
      ->capture_default_str();
  app.add_option("--layers", r.layers, "recurrent layers")
      ->check(layer_count())
      ->capture_default_str();
  app.add_option("--batch", r.batch, "samples per batch")
      ->check(size)
      ->capture_default_str();
  app.add_option("--seed", r.seed, "of weights and data")
      ->check(seed_number())
      ->capture_default_str();
  if (wanted.algorithm) {
    std::vector<std::string> names = algorithm_names();
    app.add_option("--algorithm", r.algorithm,
                   fmt::format("auto, {}", fmt::join(names, ", ")))
        ->capture_default_str();
    app.add_option("--memory", r.memory, "auto: the traces must fit, e.g. 64MB")
        ->capture_default_str();
  }
  add_decay_options(app, r);
  if (wanted.optimizer) {
    app.add_option("--optimizer", r.optimizer,
                   fmt::format("{}", fmt::join(optimizer_names(), ", ")))
        ->check(one_of(optimizer_names()))
        ->capture_default_str();
    app.add_option("--lr", r.lr, "learning rate")
        ->check(positive_number())
        ->capture_default_str();
    app.add_option("--clip-norm", r.clip_norm, "largest norm of a gradient; 0: any")
        ->check(positive_number(Zero::allowed))
        ->capture_default_str();
    app.add_option("--update", r.update,
                   "sequence or step: when the weights move; bptt: sequence")
        ->check(one_of({"sequence", "step"}))
        ->capture_default_str();
  }
  app.add_option("--set", r.set, "a compile or learning option, name=value (repeatable)");
}

json to_json(const RunRequest& r) {
  return {{"task", r.task},
          {"model", r.model},
          {"algorithm", r.algorithm},
          {"memory", r.memory},
          {"optimizer", r.optimizer},
          {"update", r.update},
          {"hidden", r.hidden},
          {"layers", r.layers},
          {"batch", r.batch},
          {"seed", r.seed},
          {"lr", r.lr},
          {"clip_norm", r.clip_norm},
          {"decay", r.decay},
          {"kappa", r.kappa},
          {"snap_n", r.snap_n},
          {"set", r.set},
          {"task_options", r.task_options},
          {"epochs", r.epochs},
          {"samples", r.samples},
          {"test_samples", r.test_samples}};
}

RunRequest run_request_from_json(const json& j) {
  try {
    RunRequest r;
    j.at("task").get_to(r.task);
    j.at("model").get_to(r.model);
    j.at("algorithm").get_to(r.algorithm);
    j.at("memory").get_to(r.memory);
    j.at("optimizer").get_to(r.optimizer);
    j.at("update").get_to(r.update);
    j.at("hidden").get_to(r.hidden);
    j.at("layers").get_to(r.layers);
    j.at("batch").get_to(r.batch);
    j.at("seed").get_to(r.seed);
    j.at("lr").get_to(r.lr);
    j.at("clip_norm").get_to(r.clip_norm);
    j.at("decay").get_to(r.decay);
    j.at("kappa").get_to(r.kappa);
    j.at("snap_n").get_to(r.snap_n);
    j.at("set").get_to(r.set);
    if (j.contains("task_options")) j["task_options"].get_to(r.task_options);
    j.at("epochs").get_to(r.epochs);
    j.at("samples").get_to(r.samples);
    j.at("test_samples").get_to(r.test_samples);
    return r;
  } catch (const json::exception& e) {
    throw UserError(
        fmt::format("the checkpoint does not say how its run was made: {}", e.what()));
  }
}

Task task_of(const RunRequest& r) {
  TaskSettings settings;
  for (const auto& [name, value] : named_values("--task-option", r.task_options))
    settings[name] = value;
  return configured_task(r.task, settings, {.seed = r.seed});
}

std::string model_text(const RunRequest& r, const Task& task) {
  require_model(r.model);
  if (!is_model_file(r.model))
    return nn::sized_model(r.model, {.n_in = task.shape().features,
                                     .n_rec = r.hidden,
                                     .n_out = task.shape().outputs,
                                     .layers = r.layers});
  return model_file(r.model).dump();
}

namespace {

// Arguments of rules, by their names in C++ and Python, have options of their own.
std::string option_instead(const std::string& name) {
  const std::pair<std::string_view, const char*> options[] = {
      {"decay_or_rank", "--decay"},      {"decay", "--decay"},   {"kappa", "--kappa"},
      {"kappa_filter_decay", "--kappa"}, {"snap_n", "--snap-n"}, {"n", "--snap-n"}};
  for (const auto& [argument, option] : options)
    if (argument == name) return fmt::format("; give {}", option);
  return "";
}

}  // namespace

void set_options(const std::vector<std::string>& set, LearningOptions& learning,
                 CompileOptions& graph) {
  std::vector<std::string> known = learning_option_names();
  for (std::string& name : option_names()) known.push_back(std::move(name));
  for (const auto& [name, value] : named_values("--set", set)) {
    BT_REQUIRE(std::find(known.begin(), known.end(), name) != known.end(),
               fmt::format("--set: no option '{}'{}; there are {}", name,
                           option_instead(name), fmt::join(known, ", ")));
    if (!set_option(learning, name, value)) set_option(graph, name, value);
  }
}

CompileOptions graph_options(const RunRequest& r, bool batched) {
  CompileOptions options;
  LearningOptions unused;
  options.batched = batched;
  set_options(r.set, unused, options);
  return options;
}

TrainingOptions training_options(const RunRequest& r) {
  TrainingOptions o{.batch = r.batch, .update = update_at_from_string(r.update)};
  o.learner.seed = r.seed;
  set_options(r.set, o.learner.learning, o.learner.graph);
  if (r.clip_norm > 0) o.optimizer.clip_norm = r.clip_norm;
  return o;
}

namespace {

struct NamedRule {
  const char* name;
  UpdateRule (*make)(double lr);
};
constexpr NamedRule rules[] = {
    {"adam", [](double lr) -> UpdateRule { return Adam{.lr = lr}; }},
    {"adamw", [](double lr) -> UpdateRule { return AdamW{.lr = lr}; }},
    {"sgd", [](double lr) -> UpdateRule { return SGD{.lr = lr}; }},
    {"momentum", [](double lr) -> UpdateRule { return SGD{.lr = lr, .momentum = 0.9}; }},
    {"rmsprop", [](double lr) -> UpdateRule { return RMSprop{.lr = lr}; }},
    {"lion", [](double lr) -> UpdateRule { return Lion{.lr = lr}; }},
};

}  // namespace

UpdateRule update_rule(const RunRequest& r) {
  for (const NamedRule& rule : rules)
    if (rule.name == r.optimizer) return rule.make(r.lr);
  throw UserError(fmt::format("unknown optimizer '{}'; known: {}", r.optimizer,
                              fmt::join(optimizer_names(), ", ")));
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const NamedRule& rule : rules) names.emplace_back(rule.name);
  return names;
}

bool takes_decay(std::string_view name) {
  return name == "pp_prop" || name == "es_d_rtrl" || name == "esd_rtrl" ||
         name == "hybrid";
}

bool takes_kappa(std::string_view name) { return name == "eprop" || name == "e_prop"; }

Algorithm algorithm_named(const std::string& name, const RunRequest& r) {
  AlgorithmArgs args;
  if (takes_decay(name)) args.decay_or_rank = r.decay;
  if (takes_kappa(name)) args.kappa_filter_decay = r.kappa;
  if (name == "snap") args.n = r.snap_n;
  return algorithm_by_name(name, args);
}

void require_alone(const Algorithm& a) {
  const LearningSignal signal = a.config.learning_signal();
  const bool modulated = signal == LearningSignal::modulatory;
  BT_REQUIRE_KIND(!modulated && signal != LearningSignal::bootstrapped,
                  ErrorKind::not_supported,
                  fmt::format("{} needs a {} from outside, which the command line cannot "
                              "give; use it from C++ or Python",
                              a.name,
                              modulated ? "modulator at every step"
                                        : "predictor of future gradients"));
}

Algorithm algorithm_of(const RunRequest& r, Module& model, const Task& task) {
  if (r.algorithm != "auto") {
    const Algorithm a = algorithm_named(r.algorithm, r);
    require_alone(a);
    return a;
  }
  init_all_states(model, {.batch_size = r.batch});
  const ETraceGraph graph = compile_etrace_graph(
      model, {zeros({r.batch, task.shape().features})}, graph_options(r, true));
  return choose_algorithm(graph, parse_bytes(r.memory), {.decay_or_rank = r.decay})
      .algorithm;
}

std::int64_t count_parameters(const Module& model) {
  std::int64_t n = 0;
  for (const NamedState& s : collect_states(model))
    if (s.state->kind() == StateKind::param)
      for (std::size_t k = 0; k < s.state->num_leaves(); ++k)
        n += s.state->stored(k).size();
  return n;
}

}  // namespace braintrace::cli
