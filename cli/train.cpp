// SPDX-License-Identifier: Apache-2.0
// `braintrace train`: a run from the first batch to the last, or on from a checkpoint.
#include <chrono>
#include <cmath>
#include <memory>

#include "command.h"
#include "interrupt.h"
#include "option_use.h"
#include "output.h"
#include "report.h"
#include "run_file.h"
#include "task_defaults.h"
#include <fmt/format.h>

#include "braintrace/base/error.h"

namespace braintrace::cli {
namespace {

using nlohmann::json;

constexpr const char* kTrainFooter =
    "An epoch is --samples fresh samples; after each the model is tested on others. A "
    "task\n"
    "brings its own model, rule and number of epochs; with --model you choose them.\n"
    "Examples:\n"
    "  braintrace train\n"
    "  braintrace train --task delayed_match\n"
    "  braintrace train --task copying --task-option delay=40 --model lstm --hidden 64\n"
    "  braintrace train --checkpoint run.safetensors      (Ctrl-C saves and stops)\n"
    "  braintrace train --resume run.safetensors --epochs 40\n"
    "  braintrace train --report run.html\n"
    "  braintrace train --config run.toml                 (options under [train])\n";

struct TrainRequest {
  RunRequest run;
  std::int64_t save_every = 1;
  int threads = 0;
  std::string checkpoint, resume, report;
  bool json = false, quiet = false;
};

// After Ctrl-C there must be something to go on from.
constexpr const char* kInterrupted = "interrupted.safetensors";

void describe(const BuiltRun& b) {
  std::string text;
  for (const auto& [name, value] : facts_of(b))
    text += fmt::format("{:<10} {}\n", name, value);
  write_text(text + "\n");
}

class Trainer {
 public:
  Trainer(const TrainRequest& request, BuiltRun& built)
      : request_(request),
        built_(built),
        quiet_(request.quiet || request.json),
        progress_(!request.quiet) {
    const std::int64_t batch = built.request.batch;
    per_epoch_ = (built.request.samples + batch - 1) / batch;
    total_ = built.request.epochs * per_epoch_;
    first_ = built.run->updates();
  }

  // True when it reached the end.
  bool run() {
    BT_REQUIRE(first_ <= total_,
               fmt::format("train: {} batches are done and --epochs {} asks for {}; give "
                           "more epochs",
                           first_, built_.request.epochs, total_));
    start_ = std::chrono::steady_clock::now();
    TrainingLength length{.updates = total_, .evaluate_every = per_epoch_};
    length.evaluation.samples = built_.request.test_samples;
    length.evaluation.raster_units = 64;
    length.evaluation.threads = request_.threads;
    length.on_update = [this](std::int64_t done, const RunLog& log) {
      return after_update(done, log);
    };
    length.on_evaluation = [this](const RunLog& log) { after_evaluation(log); };
    const bool finished = built_.run->train(length);
    progress_.clear();
    const std::string file = saved_to(finished);
    if (!file.empty()) save_run(file, built_);
    return finished;
  }

  std::string saved_to(bool finished) const {
    if (!request_.checkpoint.empty()) return request_.checkpoint;
    return finished                  ? request_.resume
           : request_.resume.empty() ? kInterrupted
                                     : request_.resume;
  }
  std::int64_t total() const { return total_; }

 private:
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_)
        .count();
  }

  bool after_update(std::int64_t done, const RunLog& log) {
    const double per_second =
        log.seconds > 0 ? static_cast<double>(log.time_steps) / log.seconds : 0;
    progress_.show(
        done - first_, total_ - first_, elapsed(),
        fmt::format("batch {}/{}  loss {}  {} steps/s", done, total_,
                    number_text(log.training.back().loss), rate_text(per_second)));
    const bool epoch_ends = done % per_epoch_ == 0;
    const std::string& file =
        request_.checkpoint.empty() ? request_.resume : request_.checkpoint;
    if (epoch_ends && !file.empty() && done / per_epoch_ % request_.save_every == 0)
      save_run(file, built_);
    return !interrupt_.wanted();
  }

  void after_evaluation(const RunLog& log) {
    if (quiet_) return;
    progress_.clear();
    const RunPoint& p = log.evaluations.back();
    if (!head_shown_) {
      tell(fmt::format("{:>8}  {:>10}  {:>10}{}{}\n", "batch", "loss", "test loss",
                       p.accuracy ? "  accuracy" : "", p.firing_rate ? "    firing" : ""),
           stdout);
      head_shown_ = true;
    }
    tell(fmt::format(
             "{:>8}  {:>10}  {:>10}{}{}\n", p.update,
             log.training.empty() ? "" : number_text(mean_of_epoch(log)),
             number_text(p.loss),
             p.accuracy ? fmt::format("  {:>8}", percent_text(*p.accuracy)) : "",
             p.firing_rate ? fmt::format("  {:>8}", percent_text(*p.firing_rate)) : ""),
         stdout);
  }

  double mean_of_epoch(const RunLog& log) const {
    const auto n =
        std::min<std::size_t>(log.training.size(), static_cast<std::size_t>(per_epoch_));
    double sum = 0;
    for (std::size_t i = log.training.size() - n; i < log.training.size(); ++i)
      sum += log.training[i].loss;
    return sum / static_cast<double>(n);
  }

  const TrainRequest& request_;
  BuiltRun& built_;
  bool quiet_, head_shown_ = false;
  std::int64_t per_epoch_ = 0, total_ = 0, first_ = 0;
  std::chrono::steady_clock::time_point start_ = {};
  Interrupt interrupt_;
  ProgressLine progress_;
};

// Better than the best constant answer by more than chance: a loss below 0.7 of it, or
// an accuracy 3 standard errors above.
bool beats_constant(const RunLog& log, std::int64_t samples) {
  if (log.evaluations.empty()) return false;
  const RunPoint& p = log.evaluations.back();
  if (p.loss < 0.7 * log.constant_loss) return true;
  if (!p.accuracy || !log.constant_accuracy) return false;
  const double chance = *log.constant_accuracy;
  const double error = std::sqrt(chance * (1 - chance) / static_cast<double>(samples));
  return *p.accuracy > chance + 3 * error;
}

json result_json(const BuiltRun& b, bool finished, const std::string& file) {
  const RunLog& log = b.run->log();
  json j = curves_json(log);
  j["run"] = to_json(b.request);
  j["algorithm"] = b.run->learner().algorithm().name;
  j["updates"] = b.run->updates();
  j["finished"] = finished;
  j["diverged"] = diverged(log);
  j["beats_constant"] = beats_constant(log, b.request.test_samples);
  if (!log.evaluations.empty()) j["test_loss"] = log.evaluations.back().loss;
  j["steps_per_second"] =
      log.seconds > 0 ? static_cast<double>(log.time_steps) / log.seconds : 0;
  if (!file.empty()) j["checkpoint"] = file;
  return j;
}

std::string summary(const BuiltRun& b) {
  const RunLog& log = b.run->log();
  std::vector<double> losses;
  for (const RunPoint& p : log.training) losses.push_back(p.loss);
  const RunPoint& last = log.evaluations.back();
  std::string text =
      "\nloss of the batches\n" +
      text_plot(losses, {.level = log.constant_loss, .level_name = "best constant"});
  text += fmt::format("\n{} batches of {} samples in {}: {} steps per second\n",
                      b.run->updates(), b.request.batch, duration_text(log.seconds),
                      rate_text(static_cast<double>(log.time_steps) / log.seconds));
  text += fmt::format("test loss {}; the best constant answer has {}",
                      number_text(last.loss), number_text(log.constant_loss));
  if (last.accuracy && log.constant_accuracy)
    text += fmt::format("; accuracy {}, constant {}", percent_text(*last.accuracy),
                        percent_text(*log.constant_accuracy));
  if (diverged(log)) return text + ".\n";
  return text + (beats_constant(log, b.request.test_samples)
                     ? ".\nIt has learned: better than any constant.\n"
                     : ".\nNot better than a constant yet: more epochs, another learning "
                       "rate or another rule may help.\n");
}

constexpr const char* kDiverged =
    "warning: the run has diverged: its loss is no longer a finite number. A smaller "
    "--lr or a --clip-norm may help.\n";

// A run that broke off because its loss is no number still tells what it came to.
bool run_and_tell(Trainer& trainer, const TrainRequest& r, const BuiltRun& built) {
  try {
    return trainer.run();
  } catch (const UserError&) {
    if (r.json && diverged(built.run->log()))
      write_text(json_text(result_json(built, false, "")) + "\n");
    throw;
  }
}

// Options that say what a run is cannot be changed on its way.
void refuse_changes(const CLI::App& app) {
  RunRequest unused;
  CLI::App own;
  add_run_options(own, unused);
  for (const CLI::Option* o : own.get_options()) {
    const std::string name = o->get_name();
    if (name == "--help") continue;
    BT_REQUIRE(app.count(name) == 0,
               fmt::format("train: {} is a part of the run that is resumed and cannot "
                           "be given again",
                           name));
  }
}

BuiltRun resumed(const TrainRequest& r, const CLI::App& app) {
  refuse_changes(app);
  BuiltRun built = load_run(r.resume, r.threads);
  if (app.count("--epochs")) built.request.epochs = r.run.epochs;
  if (app.count("--samples")) built.request.samples = r.run.samples;
  if (app.count("--test-samples")) built.request.test_samples = r.run.test_samples;
  return built;
}

void train(const TrainRequest& r, const CLI::App& app) {
  for (const std::string& file : {r.report, r.checkpoint, r.resume})
    require_writable(file);
  BuiltRun built = r.resume.empty() ? build_run(r.run, r.threads) : resumed(r, app);
  if (!r.json && !r.quiet) describe(built);
  Trainer trainer(r, built);
  const bool finished = run_and_tell(trainer, r, built);
  const std::string file = trainer.saved_to(finished);
  if (!r.report.empty()) write_text(report_page(built), r.report);
  if (r.json) {
    write_text(json_text(result_json(built, finished, file)) + "\n");
    return;
  }
  if (!finished)
    write_text(fmt::format(
        "stopped after {} of {} batches; go on with: braintrace train --resume {}\n",
        built.run->updates(), trainer.total(), file));
  else if (!r.quiet)
    write_text(summary(built));
  if (diverged(built.run->log())) tell(kDiverged);
  if (!r.report.empty() && !r.quiet) write_text(fmt::format("report: {}\n", r.report));
  if (finished && !file.empty() && !r.quiet)
    write_text(fmt::format("saved to {}; test it with: braintrace eval --checkpoint {}\n",
                           file, file));
}

}  // namespace

Command add_train(CLI::App& app) {
  auto r = std::make_shared<TrainRequest>();
  CLI::App* c = app.add_subcommand("train", "train a model on a task, online");
  c->footer(kTrainFooter);
  c->fallthrough();
  add_run_options(*c, r->run);
  const CLI::Validator size = at_least_one();
  c->add_option("--epochs", r->run.epochs, "how often --samples samples are seen")
      ->check(size)
      ->capture_default_str();
  c->add_option("--samples", r->run.samples, "samples of an epoch")
      ->check(size)
      ->capture_default_str();
  c->add_option("--test-samples", r->run.test_samples, "samples of a test")
      ->check(size)
      ->capture_default_str();
  c->add_option("--checkpoint", r->checkpoint,
                "save here after every epoch, at the end and on Ctrl-C")
      ->check(file_name());
  c->add_option("--save-every", r->save_every, "epochs between two saves")
      ->check(size)
      ->capture_default_str();
  c->add_option("--resume", r->resume,
                "go on from this checkpoint, bit for bit, and save to it")
      ->check(file_name());
  c->add_option("--report", r->report,
                "write a page about the run: curves, graph, equations, memory, "
                "certificate")
      ->check(file_name());
  add_threads_option(*c, r->threads);
  c->add_flag("--json", r->json, "one JSON object instead of text");
  c->add_flag("--quiet", r->quiet, "print nothing but errors");
  return {c, [r, c] {
            suit_task(r->run, *c);
            if (r->resume.empty()) require_arguments_used(*c, {r->run.algorithm});
            train(*r, *c);
          }};
}

}  // namespace braintrace::cli
