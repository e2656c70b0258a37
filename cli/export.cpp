// SPDX-License-Identifier: Apache-2.0
// `braintrace export`: a learner as one header for devices that learn while they run.
#include <memory>

#include "command.h"
#include "model_source.h"
#include "option_use.h"
#include "output.h"
#include "run_file.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/base/error.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/train/export_learner.h"
#include "braintrace/train/losses.h"

namespace braintrace::cli {
namespace {

constexpr const char* kExportFooter =
    "The header needs nothing but libm: a struct with every array and one function for "
    "a\n"
    "step, which learns (docs/export.md).\n"
    "Examples:\n"
    "  braintrace export --model gru --n-in 3 --n-out 2 --hidden 16 --algorithm d_rtrl "
    "--out learner.hpp\n"
    "  braintrace export --checkpoint run.safetensors --c99 --out learner.h\n";

struct ExportRequest {
  ModelRequest model{.model = "gru"};
  RunRequest rule;
  std::string checkpoint, out, name = "learner", loss = "mse", dtype = "f32";
  bool c99 = false, json = false;
};

// What a header is made of; the learner sees one sample at a time.
struct Source {
  std::unique_ptr<Module> model;
  Algorithm algorithm;
  Array input;
  TaskLoss loss = TaskLoss::mse;
  StateDict weights;  // empty: as initialised
  std::optional<std::int64_t> batch = {};
  std::vector<std::string> set = {};  // what the saved run was compiled with
};

Source from_checkpoint(const ExportRequest& r) {
  const BuiltRun b = load_run(r.checkpoint, 0);
  return {nn::build_model(b.model_text),
          b.run->learner().algorithm(),
          zeros({b.run->task().shape().features}),
          b.run->task().loss(),
          b.run->checkpoint().weights,
          {},
          b.request.set};
}

Source from_options(const ExportRequest& r) {
  LoadedModel m = load_model(r.model);
  BT_REQUIRE(
      m.inputs.size() == 1,
      fmt::format("export: the model must have one input, got {}", m.inputs.size()));
  Source s{.model = std::move(m.module),
           .algorithm = algorithm_named(r.rule.algorithm, r.rule),
           .input = m.inputs[0],
           .loss = r.loss == "mse" ? TaskLoss::mse : TaskLoss::softmax_xent,
           .weights = {}};
  require_alone(s.algorithm);
  if (m.batched) s.batch = s.input.shape()[0];
  return s;
}

std::string header_of(Source& s, const ExportRequest& r) {
  LearnerOptions options{
      .batch_size = s.batch, .seed = r.rule.seed, .dtype = dtype_from_string(r.dtype)};
  set_options(s.set, options.learning, options.graph);
  set_options(r.rule.set, options.learning, options.graph);
  Learner learner(*s.model, s.algorithm, {s.input}, options);
  load_state_dict(*s.model, s.weights);
  const StepModel& step = learner.graph().module_info.step;
  const Type out = step.program.type(step.program.outputs()[0]);
  const bool labels = s.loss == TaskLoss::softmax_xent;
  Shape target = out.shape;
  if (labels) target.pop_back();
  const TracedFn loss = [&](const Values& in) {
    const Value y = learner(in[0]);
    return LossResult{.loss = labels ? softmax_cross_entropy(y, in[1]) : mse(y, in[1]),
                      .results = {y}};
  };
  const bool plain = r.rule.optimizer == "sgd";
  return export_learner(
      learner, loss, {s.input, zeros(target, labels ? DType::i32 : out.dtype)},
      {.name = r.name,
       .learning_rate = plain ? r.rule.lr : 0,
       .optimizer = plain ? std::nullopt : std::optional(update_rule(r.rule)),
       .language = r.c99 ? ExportLanguage::c99 : ExportLanguage::cpp17});
}

void export_to_file(const ExportRequest& r) {
  require_writable(r.out);
  Source s = r.checkpoint.empty() ? from_options(r) : from_checkpoint(r);
  const std::string header = header_of(s, r);
  const std::string model =
      r.checkpoint.empty() ? model_title(r.model.model) : r.checkpoint;
  const std::int64_t parameters = count_parameters(*s.model);
  if (!r.out.empty() || !r.json) write_text(header, r.out);
  if (r.json) {
    nlohmann::json j = {{"model", model},
                        {"algorithm", s.algorithm.name},
                        {"language", r.c99 ? "c99" : "cpp17"},
                        {"name", r.name},
                        {"parameters", parameters},
                        {"bytes", header.size()}};
    j[r.out.empty() ? "header" : "file"] = r.out.empty() ? header : r.out;
    write_text(json_text(j) + "\n");
  } else if (!r.out.empty()) {
    tell(fmt::format("wrote {}: {} learns with {}, {} parameters\n", r.out, model,
                     s.algorithm.name, count_text(parameters)));
  }
}

}  // namespace

Command add_export(CLI::App& app) {
  auto r = std::make_shared<ExportRequest>();
  CLI::App* c = app.add_subcommand("export", "write a learner as one C++ or C header");
  c->footer(kExportFooter);
  c->fallthrough();
  add_model_options(*c, r->model);
  c->add_option("--algorithm", r->rule.algorithm, "a rule by name")
      ->capture_default_str();
  add_decay_options(*c, r->rule);
  c->add_option("--loss", r->loss, "mse, or cross_entropy of a label")
      ->check(one_of({"mse", "cross_entropy"}))
      ->capture_default_str();
  r->rule.optimizer = "sgd";
  c->add_option("--optimizer", r->rule.optimizer,
                fmt::format("what moves the weights at every step: {}",
                            fmt::join(optimizer_names(), ", ")))
      ->check(one_of(optimizer_names()))
      ->capture_default_str();
  c->add_option("--lr", r->rule.lr, "learning rate; 0: gradients only")
      ->check(positive_number(Zero::allowed))
      ->capture_default_str();
  c->add_option("--checkpoint", r->checkpoint,
                "model, rule and weights of what braintrace train saved")
      ->check(file_name());
  c->add_option("--seed", r->rule.seed, "of the weights")
      ->check(seed_number())
      ->capture_default_str();
  c->add_option("--dtype", r->dtype, "element type: f32 or f64")
      ->check(one_of({"f32", "f64"}))
      ->capture_default_str();
  c->add_option("--set", r->rule.set,
                "a compile or learning option, name=value (repeatable)");
  c->add_option("--name", r->name, "namespace (C++) or prefix (C)")
      ->capture_default_str();
  c->add_flag("--c99", r->c99, "C99 instead of C++17");
  c->add_flag("--json", r->json,
              "one JSON object: what was written, or the header itself without --out");
  c->add_option("--out", r->out, "write to this file instead of the terminal")
      ->check(file_name());
  return {c, [r, c] {
            if (r->checkpoint.empty())
              require_arguments_used(*c, {r->rule.algorithm});
            else
              require_only(*c, "--checkpoint",
                           {"--optimizer", "--lr", "--dtype", "--set", "--name", "--c99",
                            "--json", "--out"});
            export_to_file(*r);
          }};
}

}  // namespace braintrace::cli
