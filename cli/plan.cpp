// SPDX-License-Identifier: Apache-2.0
// `braintrace plan`: what each rule will store for a model, before anything runs.
#include <algorithm>
#include <memory>

#include "command.h"
#include "model_source.h"
#include "option_use.h"
#include "output.h"
#include "run_request.h"
#include "task_defaults.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/algo/algorithm_names.h"
#include "braintrace/algo/graph_options.h"
#include "braintrace/algo/memory_plan.h"
#include "braintrace/base/error.h"
#include "braintrace/train/tasks.h"

namespace braintrace::cli {
namespace {

using nlohmann::json;

constexpr const char* kPlanFooter =
    "Examples:\n"
    "  braintrace plan --model gru --hidden 256 --batch 16 --steps 1000\n"
    "  braintrace plan --model lif --hidden 400 --algorithm auto --memory 64MB\n"
    "  braintrace plan --model conv_rnn --algorithm d_rtrl        (array by array)\n";

struct PlanRequest {
  ModelRequest model{.model = "gru"};
  RunRequest rule;
  std::string task;
  std::int64_t steps = 100;
  bool json = false;
};

// A rule's plan, or why it cannot serve this model.
struct Entry {
  std::string name;
  MemoryPlan plan;
  std::string refused;
};

class Planner {
 public:
  explicit Planner(const PlanRequest& r) : request_(r), loaded_(load_model(r.model)) {}

  Entry plan(const std::string& name) {
    Entry e{.name = name, .plan = {}, .refused = {}};
    try {
      const Algorithm a = algorithm_named(name, request_.rule);
      const bool whole = a.engine == Engine::bptt;
      e.plan = memory_plan(graph(a), a, {.window = whole ? request_.steps : 0});
    } catch (const UserError& error) {
      e.refused = error.what();
    }
    return e;
  }

  AlgorithmChoice choose() {
    return choose_algorithm(graph(D_RTRL{}), parse_bytes(request_.rule.memory),
                            {.decay_or_rank = request_.rule.decay});
  }

  // UserError (compilation): what no rule can serve.
  void require_compiled() {
    try {
      graph(D_RTRL{});
    } catch (const UserError& e) {
      throw UserError(ErrorKind::compilation, e.what());
    }
  }

  std::int64_t parameters() const { return count_parameters(*loaded_.module); }

 private:
  ETraceGraph graph(const Algorithm& a) {
    return compile_etrace_graph(
        *loaded_.module, loaded_.inputs,
        graph_options(a, graph_options(request_.rule, loaded_.batched)));
  }

  const PlanRequest& request_;
  LoadedModel loaded_;
};

json items_json(const MemoryPlan& plan) {
  json items = json::array();
  for (const MemoryItem& i : plan.items)
    items.push_back({{"kind", i.kind},
                     {"owner", i.owner},
                     {"key", i.key},
                     {"shape", i.shape},
                     {"dtype", i.dtype},
                     {"bytes", i.bytes}});
  return items;
}

json plan_json(const Entry& e) {
  if (!e.refused.empty()) return {{"name", e.name}, {"refused", e.refused}};
  return {{"name", e.name},
          {"algorithm", e.plan.algorithm},
          {"bytes", e.plan.total_bytes()},
          {"items", items_json(e.plan)}};
}

std::string kinds_text(const MemoryPlan& plan) {
  std::vector<std::string> kinds;
  for (const MemoryItem& i : plan.items)
    if (std::find(kinds.begin(), kinds.end(), i.kind) == kinds.end())
      kinds.push_back(i.kind);
  std::string text;
  for (const std::string& k : kinds)
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", k, bytes_text(plan.bytes_of(k)));
  return text;
}

struct KindMeaning {
  const char* kind;
  const char* meaning;
};
constexpr KindMeaning kKinds[] = {
    {"bwg", "a trace for every entry of a weight"},
    {"kappa_filtered", "the same, filtered"},
    {"x", "the factor of a trace that follows a weight's input"},
    {"df", "the factor of a trace that follows the hidden state"},
    {"dense", "full sensitivity of a state to a weight"},
    {"dense_filtered", "the same, filtered"},
    {"s_tilde", "random projection of the states' sensitivity"},
    {"theta_tilde", "its partner, as large as the weights"},
    {"window", "values of all steps, for the way back"},
};

// What the kinds in these plans are.
std::string legend(const std::vector<MemoryPlan>& plans) {
  std::string text;
  for (const KindMeaning& k : kKinds)
    if (std::any_of(plans.begin(), plans.end(),
                    [&](const MemoryPlan& p) { return p.bytes_of(k.kind) > 0; }))
      text += fmt::format("  {:<14}  {}\n", k.kind, k.meaning);
  return text.empty() ? "" : "\n" + text;
}

std::string items_text(const MemoryPlan& plan) {
  std::vector<std::vector<std::string>> rows;
  for (const MemoryItem& i : plan.items)
    rows.push_back({i.kind, i.key.empty() ? i.owner : i.owner + "/" + i.key,
                    fmt::format("{}[{}]", i.dtype, fmt::join(i.shape, ",")),
                    bytes_text(i.bytes)});
  return text_table({"kind", "of", "array", "bytes"}, rows, 3);
}

std::string refusals_text(const std::vector<Entry>& entries) {
  std::string text;
  for (const Entry& e : entries)
    if (!e.refused.empty()) text += fmt::format("  {}: {}\n", e.name, e.refused);
  return text.empty() ? "" : "\nNot for this model:\n" + text;
}

// Every rule under one of its names.
std::vector<std::string> planned_names() {
  std::vector<std::string> names;
  for (const std::string& n : algorithm_names())
    if (n != "es_d_rtrl" && n != "esd_rtrl" && n != "e_prop") names.push_back(n);
  return names;
}

std::string head_text(const PlanRequest& r, const Planner& planner) {
  return fmt::format("{}: {} parameters ({}), batch {}\n\n", model_title(r.model.model),
                     count_text(planner.parameters()),
                     bytes_text(4 * planner.parameters()), r.model.batch.value_or(1));
}

void plan_all(const PlanRequest& r, Planner& planner) {
  std::vector<Entry> entries;
  for (const std::string& name : planned_names()) entries.push_back(planner.plan(name));
  if (std::all_of(entries.begin(), entries.end(),
                  [](const Entry& e) { return !e.refused.empty(); }))
    planner.require_compiled();
  if (r.json) {
    json j = {{"model", r.model.model}, {"steps", r.steps}, {"rules", json::array()}};
    for (const Entry& e : entries) j["rules"].push_back(plan_json(e));
    write_text(json_text(j) + "\n");
    return;
  }
  std::vector<std::vector<std::string>> rows;
  std::vector<MemoryPlan> plans;
  for (const Entry& e : entries) {
    plans.push_back(e.plan);
    if (e.refused.empty())
      rows.push_back({e.name, kinds_text(e.plan), bytes_text(e.plan.total_bytes())});
  }
  write_text(
      head_text(r, planner) + text_table({"rule", "keeps", "in all"}, rows, 2) +
      legend(plans) +
      fmt::format("\nbptt keeps every step of a sequence of {}, its gates beside what "
                  "is counted here (docs/cli.md);\nthe others take the same for any "
                  "length.\n",
                  r.steps) +
      refusals_text(entries));
}

void plan_one(const PlanRequest& r, Planner& planner) {
  const Entry e = planner.plan(r.rule.algorithm);
  if (!e.refused.empty()) planner.require_compiled();
  BT_REQUIRE_KIND(e.refused.empty(), ErrorKind::not_supported, e.refused);
  if (r.json) {
    write_text(json_text(plan_json(e)) + "\n");
    return;
  }
  write_text(head_text(r, planner) + items_text(e.plan) + legend({e.plan}) +
             fmt::format("\n{} keeps {} in all.\n", e.plan.algorithm,
                         bytes_text(e.plan.total_bytes())));
}

void plan_auto(const PlanRequest& r, Planner& planner) {
  planner.require_compiled();
  const AlgorithmChoice choice = planner.choose();
  if (r.json) {
    json j = {{"chosen", choice.algorithm.name},
              {"budget", parse_bytes(r.rule.memory)},
              {"bytes", choice.plan.total_bytes()},
              {"items", items_json(choice.plan)},
              {"considered", json::array()}};
    for (const MemoryPlan& p : choice.considered)
      j["considered"].push_back({{"algorithm", p.algorithm}, {"bytes", p.total_bytes()}});
    write_text(json_text(j) + "\n");
    return;
  }
  std::vector<std::vector<std::string>> rows;
  for (const MemoryPlan& p : choice.considered)
    rows.push_back({p.algorithm, kinds_text(p), bytes_text(p.total_bytes())});
  write_text(head_text(r, planner) + text_table({"rule", "keeps", "in all"}, rows, 2) +
             legend(choice.considered) +
             fmt::format("\n{} is the first that fits into {}.\n", choice.algorithm.name,
                         bytes_text(parse_bytes(r.rule.memory))));
}

// The model `braintrace train` would take for the task, unless one is given.
void take_model_of_task(PlanRequest& r, const CLI::App& app) {
  RunRequest trained = r.rule;
  trained.task = r.task;
  suit_task(trained, app);
  if (app.count("--model") == 0) r.model.model = trained.model;
  if (app.count("--hidden") == 0) r.model.sizes.n_rec = trained.hidden;
  r.rule.decay = trained.decay;
}

void plan(const PlanRequest& given, const CLI::App& app) {
  PlanRequest r = given;
  if (!r.task.empty()) {
    take_model_of_task(r, app);
    const Task task = make_task(r.task);
    r.model.sizes.n_in = task.shape().features;
    r.model.sizes.n_out = task.shape().outputs;
    if (app.count("--steps") == 0) r.steps = task.shape().steps;
  }
  Planner planner(r);
  if (r.rule.algorithm == "all") return plan_all(r, planner);
  if (r.rule.algorithm == "auto") return plan_auto(r, planner);
  plan_one(r, planner);
}

}  // namespace

Command add_plan(CLI::App& app) {
  auto r = std::make_shared<PlanRequest>();
  r->rule.algorithm = "all";
  CLI::App* c = app.add_subcommand("plan", "how much memory each rule will take");
  c->footer(kPlanFooter);
  c->fallthrough();
  add_model_options(*c, r->model);
  c->add_option("--task", r->task, "take model, inputs, outputs and steps from this task")
      ->check(one_of(task_names()));
  c->add_option("--steps", r->steps, "length of a sequence, for bptt")
      ->check(at_least_one())
      ->capture_default_str();
  c->add_option("--algorithm", r->rule.algorithm, "all, auto, or one rule by name")
      ->capture_default_str();
  c->add_option("--memory", r->rule.memory, "auto: the traces must fit, e.g. 64MB")
      ->capture_default_str();
  add_decay_options(*c, r->rule);
  c->add_option("--set", r->rule.set, "a compile option, name=value (repeatable)");
  c->add_flag("--json", r->json, "one JSON object instead of text");
  return {c, [r, c] {
            require_arguments_used(*c, {r->rule.algorithm});
            plan(*r, *c);
          }};
}

}  // namespace braintrace::cli
