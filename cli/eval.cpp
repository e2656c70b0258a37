// SPDX-License-Identifier: Apache-2.0
// `braintrace eval`: how well a saved run does on data it was not trained on.
#include <memory>

#include "command.h"
#include "model_source.h"
#include "output.h"
#include "run_file.h"
#include <fmt/format.h>

#include "braintrace/base/error.h"

namespace braintrace::cli {
namespace {

struct EvalRequest {
  std::string checkpoint, split = "test";
  std::int64_t samples = 1024, first = 0;
  int threads = 0;
  bool json = false;
};

void eval(const EvalRequest& r) {
  BuiltRun b = load_run(r.checkpoint, r.threads);
  const Evaluation e = evaluate(b.run->task(), *b.model,
                                {.split = r.split == "train" ? Split::train : Split::test,
                                 .first = r.first,
                                 .samples = r.samples,
                                 .threads = r.threads});
  if (r.json) {
    nlohmann::json j = {{"task", b.request.task},
                        {"model", b.request.model},
                        {"updates", b.run->updates()},
                        {"split", r.split},
                        {"samples", r.samples},
                        {"loss", e.loss},
                        {"constant_loss", e.constant.loss}};
    if (e.accuracy) j["accuracy"] = *e.accuracy;
    if (e.constant.accuracy) j["constant_accuracy"] = *e.constant.accuracy;
    if (e.firing_rate) j["firing_rate"] = *e.firing_rate;
    write_text(json_text(j) + "\n");
    return;
  }
  std::string text = fmt::format(
      "{} on {} after {} batches, {} {} samples\n  loss      {:<10} best constant {}\n",
      model_title(b.request.model), b.request.task, b.run->updates(), r.samples, r.split,
      number_text(e.loss), number_text(e.constant.loss));
  if (e.accuracy)
    text += fmt::format("  accuracy  {:<10} best constant {}\n",
                        percent_text(*e.accuracy), percent_text(*e.constant.accuracy));
  if (e.firing_rate)
    text += fmt::format("  firing    {} of the units in a step\n",
                        percent_text(*e.firing_rate));
  write_text(text);
}

}  // namespace

Command add_eval(CLI::App& app) {
  auto r = std::make_shared<EvalRequest>();
  CLI::App* c = app.add_subcommand("eval", "test a saved run");
  c->footer("Example:\n  braintrace eval --checkpoint run.safetensors\n");
  c->fallthrough();
  c->add_option("--checkpoint", r->checkpoint, "what braintrace train saved")
      ->check(file_name())
      ->required();
  c->add_option("--split", r->split, "test (samples not trained on) or train")
      ->check(one_of({"test", "train"}))
      ->capture_default_str();
  const CLI::Validator size = at_least_one();
  c->add_option("--samples", r->samples, "how many")->check(size)->capture_default_str();
  c->add_option("--first", r->first, "number of the first sample")
      ->check(whole_number(0, std::int64_t{1} << 31))
      ->capture_default_str();
  add_threads_option(*c, r->threads);
  c->add_flag("--json", r->json, "one JSON object instead of text");
  return {c, [r] { eval(*r); }};
}

}  // namespace braintrace::cli
