// SPDX-License-Identifier: Apache-2.0
// `braintrace export`: a learner as one header for devices that learn while they run.
#include <memory>

#include "command.h"
#include "model_source.h"
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
  bool c99 = false;
};

// What a header is made of; the learner sees one sample at a time.
struct Source {
  std::unique_ptr<Module> model;
  Algorithm algorithm;
  Array input;
  TaskLoss loss = TaskLoss::mse;
  StateDict weights;  // empty: as initialised
};

Source from_checkpoint(const ExportRequest& r) {
  const BuiltRun b = load_run(r.checkpoint, 0);
  return {nn::build_model(b.model_text), b.run->learner().algorithm(),
          zeros({b.run->task().shape().features}), b.run->task().loss(),
          b.run->checkpoint().weights};
}

Source from_options(const ExportRequest& r) {
  LoadedModel m = load_model(r.model);
  BT_REQUIRE(
      m.inputs.size() == 1,
      fmt::format("export: the model must have one input, got {}", m.inputs.size()));
  return {std::move(m.module),
          algorithm_named(r.rule.algorithm, r.rule),
          m.inputs[0],
          r.loss == "mse" ? TaskLoss::mse : TaskLoss::softmax_xent,
          {}};
}

void export_to_file(const ExportRequest& r) {
  Source s = r.checkpoint.empty() ? from_options(r) : from_checkpoint(r);
  LearnerOptions options{
      .batch_size = r.checkpoint.empty() ? r.model.batch : std::nullopt,
      .seed = r.rule.seed,
      .dtype = dtype_from_string(r.dtype)};
  options.graph = graph_options(r.rule, false);
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
  write_text(
      export_learner(
          learner, loss, {s.input, zeros(target, labels ? DType::i32 : out.dtype)},
          {.name = r.name,
           .learning_rate = r.rule.lr,
           .optimizer = r.rule.optimizer == "sgd" ? std::nullopt
                                                  : std::optional(update_rule(r.rule)),
           .language = r.c99 ? ExportLanguage::c99 : ExportLanguage::cpp17}),
      r.out);
  if (!r.out.empty())
    fmt::print(stderr, "wrote {}: {} learns with {}, {} parameters\n", r.out,
               r.checkpoint.empty() ? r.model.model : r.checkpoint, s.algorithm.name,
               count_text(count_parameters(*s.model)));
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
  c->add_option("--decay", r->rule.decay, "pp_prop, hybrid: smoothing of the factors")
      ->capture_default_str();
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
                "model, rule and weights of what braintrace train saved");
  c->add_option("--seed", r->rule.seed, "of the weights")->capture_default_str();
  c->add_option("--dtype", r->dtype, "element type")
      ->check(one_of({"f32", "f64"}))
      ->capture_default_str();
  c->add_option("--set", r->rule.set, "a compile option, name=value (repeatable)");
  c->add_option("--name", r->name, "namespace (C++) or prefix (C)")
      ->capture_default_str();
  c->add_flag("--c99", r->c99, "C99 instead of C++17");
  c->add_option("--out", r->out, "write to this file instead of the terminal");
  return {c, [r] { export_to_file(*r); }};
}

}  // namespace braintrace::cli
