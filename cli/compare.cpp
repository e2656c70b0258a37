// SPDX-License-Identifier: Apache-2.0
// `braintrace compare`: several rules on one model and the same data.
#include <algorithm>
#include <limits>
#include <memory>

#include "command.h"
#include "interrupt.h"
#include "model_source.h"
#include "option_use.h"
#include "output.h"
#include "run_file.h"
#include "task_defaults.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/algo/memory_plan.h"
#include "braintrace/base/error.h"
#include "braintrace/train/metrics.h"
#include "braintrace/view/chart.h"

namespace braintrace::cli {
namespace {

using nlohmann::json;

constexpr const char* kCompareFooter =
    "Every rule starts from the same weights and sees the same batches. The cosine is\n"
    "that between its gradient and the gradient of back-propagation through time, on "
    "one\n"
    "batch, at the first weights and at the weights the rule ended with.\n"
    "Examples:\n"
    "  braintrace compare\n"
    "  braintrace compare --task delayed_match --model lif --algorithms "
    "pp_prop,d_rtrl,bptt\n"
    "  braintrace compare --updates 300 --out rules.svg --json\n";

struct CompareRequest {
  RunRequest run;
  std::vector<std::string> algorithms = {"d_rtrl", "pp_prop", "eprop", "bptt"};
  std::int64_t updates = 100;
  int threads = 0;
  std::string out;
  bool json = false;
};

struct Result {
  std::string name;
  RunLog log;
  double cosine_first = 0, cosine_last = 0;
  std::int64_t bytes = 0;
  bool diverged = false;  // its last loss is no number; the rest is of before
  double step_us() const {
    return log.time_steps > 0 ? 1e6 * log.seconds / static_cast<double>(log.time_steps)
                              : 0;
  }
};

class Comparison {
 public:
  explicit Comparison(const CompareRequest& r)
      : request_(r), judge_(built("bptt")), progress_(!r.json) {}

  Result run(const std::string& name, std::size_t index) {
    BuiltRun b = built(name);
    Result out{.name = name, .log = {}};
    out.cosine_first = cosine(b);
    TrainingLength length{.updates = request_.updates,
                          .evaluate_every = request_.updates};
    length.evaluation.samples = request_.run.test_samples;
    const std::int64_t all =
        request_.updates * static_cast<std::int64_t>(request_.algorithms.size());
    length.on_update = [&](std::int64_t done, const RunLog& log) {
      progress_.show(static_cast<std::int64_t>(index) * request_.updates + done, all,
                     spent_ + log.seconds,
                     fmt::format("{}  batch {}/{}  loss {}", name, done, request_.updates,
                                 number_text(log.training.back().loss)));
      return !interrupt_.wanted();
    };
    const bool finished = trained(b, length);
    progress_.clear();
    out.log = b.run->log();
    out.diverged = diverged(out.log);
    BT_REQUIRE_KIND(finished || out.diverged, ErrorKind::runtime,
                    "compare: stopped before the end");
    out.cosine_last = out.diverged ? std::numeric_limits<double>::quiet_NaN() : cosine(b);
    spent_ += out.log.seconds;
    const Learner& learner = b.run->learner();
    out.bytes = memory_plan(learner.graph(), learner.algorithm(),
                            {.window = b.run->task().shape().steps})
                    .total_bytes();
    return out;
  }

 private:
  BuiltRun built(const std::string& name) const {
    RunRequest r = request_.run;
    r.algorithm = name;
    return build_run(r, request_.threads);
  }

  // A loss that is no number ends this rule, not the others.
  static bool trained(BuiltRun& b, const TrainingLength& length) {
    try {
      return b.run->train(length);
    } catch (const UserError&) {
      if (!diverged(b.run->log())) throw;
      return false;
    }
  }

  // Both gradients at the weights of `b`.
  double cosine(BuiltRun& b) {
    const TaskBatch batch = b.run->task().batch(Split::test, 0, request_.run.batch);
    StateDict weights;
    for (const auto& [path, value] : b.run->checkpoint().weights)
      weights.emplace(path, value);
    load_state_dict(*judge_.model, weights);
    return gradient_cosine(b.run->gradient(batch).grads,
                           judge_.run->gradient(batch).grads);
  }

  const CompareRequest& request_;
  BuiltRun judge_;
  double spent_ = 0;
  Interrupt interrupt_;
  ProgressLine progress_;
};

json result_json(const std::vector<Result>& results, const CompareRequest& r) {
  json j = {{"run", to_json(r.run)}, {"updates", r.updates}, {"rules", json::array()}};
  j["run"].erase("algorithm");
  for (const Result& x : results) {
    json one = {{"algorithm", x.name},
                {"diverged", x.diverged},
                {"test_loss", x.diverged ? json() : json(x.log.evaluations.back().loss)},
                {"constant_loss", x.log.constant_loss},
                {"cosine_to_bptt", {{"first", x.cosine_first}, {"last", x.cosine_last}}},
                {"bytes", x.bytes},
                {"step_us", x.step_us()}};
    if (const auto a = x.log.evaluations.back().accuracy; a && !x.diverged)
      one["accuracy"] = *a;
    json losses = json::array();
    for (const RunPoint& p : x.log.training) losses.push_back(p.loss);
    one["losses"] = losses;
    j["rules"].push_back(one);
  }
  return j;
}

std::string result_text(const std::vector<Result>& results, const CompareRequest& r) {
  const bool labels = results.front().log.evaluations.back().accuracy.has_value();
  std::vector<std::string> head = {"rule", "test loss", "of constant"};
  if (labels) head.push_back("accuracy");
  for (const char* h : {"cosine first", "cosine last", "memory", "us per step"})
    head.emplace_back(h);
  std::vector<std::vector<std::string>> rows;
  for (const Result& x : results) {
    const RunPoint& last = x.log.evaluations.back();
    const auto unless_lost = [&](std::string text) { return x.diverged ? "-" : text; };
    std::vector<std::string> row = {
        x.name, x.diverged ? "diverged" : number_text(last.loss),
        unless_lost(percent_text(last.loss / x.log.constant_loss))};
    if (labels) row.push_back(unless_lost(percent_text(last.accuracy.value_or(0))));
    row.push_back(fmt::format("{:.3f}", x.cosine_first));
    row.push_back(unless_lost(fmt::format("{:.3f}", x.cosine_last)));
    row.push_back(bytes_text(x.bytes));
    row.push_back(fmt::format("{:.2f}", x.step_us()));
    rows.push_back(row);
  }
  return fmt::format("{} on {}, {} batches of {}, seed {}\n\n", model_title(r.run.model),
                     r.run.task, r.updates, r.run.batch, r.run.seed) +
         text_table(head, rows) +
         "\ncosine: between the rule's gradient and that of bptt, at the first and at "
         "the last weights.\nus per step: of one sample.\n";
}

std::string picture(const std::vector<Result>& results, const CompareRequest& r) {
  std::vector<ChartSeries> series;
  for (const Result& x : results) {
    ChartSeries s{x.name, {}};
    for (const RunPoint& p : x.log.training)
      s.points.emplace_back(static_cast<double>(p.update), p.loss);
    series.push_back(std::move(s));
  }
  return line_chart(
      series,
      {.title = fmt::format("{} on {}: loss", model_title(r.run.model), r.run.task),
       .x_name = "batch",
       .y_name = "loss",
       .log_y = true,
       .level = ChartLevel{"best constant", results.front().log.constant_loss},
       .height = 360,
       .max_points = 120});
}

// "d_rtrl at batch 3, bptt at batch 4"
std::string lost_text(const std::vector<Result>& results) {
  std::vector<std::string> lost;
  for (const Result& x : results)
    if (x.diverged)
      lost.push_back(fmt::format("{} at batch {}", x.name, x.log.training.size()));
  return fmt::format("{}", fmt::join(lost, ", "));
}

void require_one_left(const std::vector<Result>& results) {
  const bool left = std::any_of(results.begin(), results.end(),
                                [](const Result& x) { return !x.diverged; });
  BT_REQUIRE_KIND(
      left, ErrorKind::runtime,
      fmt::format("compare: every rule has diverged ({}); a smaller --lr or a "
                  "--clip-norm may help",
                  lost_text(results)));
}

void compare(const CompareRequest& r) {
  require_writable(r.out);
  std::vector<Result> results;
  Comparison comparison(r);
  for (std::size_t i = 0; i < r.algorithms.size(); ++i)
    results.push_back(comparison.run(r.algorithms[i], i));
  if (!r.out.empty()) write_text(picture(results, r), r.out);
  if (r.json) {
    write_text(json_text(result_json(results, r)) + "\n");
    return require_one_left(results);
  }
  const std::string lost = lost_text(results);
  write_text(result_text(results, r) +
             (lost.empty() ? "" : fmt::format("diverged: {}.\n", lost)) +
             (r.out.empty() ? "" : fmt::format("picture of the losses: {}\n", r.out)));
  require_one_left(results);
}

}  // namespace

Command add_compare(CLI::App& app) {
  auto r = std::make_shared<CompareRequest>();
  CLI::App* c = app.add_subcommand("compare", "several rules on one model and data");
  c->footer(kCompareFooter);
  c->fallthrough();
  add_run_options(*c, r->run, {.algorithm = false});
  c->add_option("--algorithms", r->algorithms, "rules by name, separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  const CLI::Validator size = at_least_one();
  c->add_option("--updates", r->updates, "batches each rule sees")
      ->check(size)
      ->capture_default_str();
  c->add_option("--test-samples", r->run.test_samples, "samples of a test")
      ->check(size)
      ->capture_default_str();
  add_threads_option(*c, r->threads);
  c->add_option("--out", r->out, "write the curves to this SVG file")->check(file_name());
  c->add_flag("--json", r->json, "one JSON object instead of text");
  return {c, [r, c] {
            suit_task(r->run, *c);
            require_arguments_used(*c, r->algorithms);
            compare(*r);
          }};
}

}  // namespace braintrace::cli
