// SPDX-License-Identifier: Apache-2.0
// Replays the learning rule of one recorded case.
#include <algorithm>
#include <charconv>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "braintrace/algo/algorithm_names.h"
#include "braintrace/array/array_json.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/parity_impl.h"
#include "braintrace/train/learner.h"

namespace braintrace::testing::internal {
namespace {

using nlohmann::json;

std::int64_t group_index(const std::string& text) {
  std::int64_t index = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, index);
  BT_REQUIRE(error == std::errc() && stop == end,
             fmt::format("a group must be a whole number, got '{}'", text));
  return index;
}

void check_coordinates(const json& recorded, const Algorithm& a) {
  const auto it = recorded.find("resolved_config");
  if (it == recorded.end()) return;
  BT_REQUIRE(
      a.config == ETraceConfig::from_json(it->dump()),
      fmt::format("resolved_config: {}, recorded is {}", a.config.to_json(), it->dump()));
}

class RuleReplay {
 public:
  RuleReplay(const GoldenCase& c, DType dtype)
      : case_(c), text_(json::parse(c.text)), dtype_(dtype) {
    model_ = nn::build_model(c.text);
    const RecordedRule rule = recorded_rule(text_);
    check_coordinates(text_.at("algorithm"), rule.algorithm);
    LearnerOptions options = compat(LearnerOptions{});
    options.graph = rule.graph;
    options.batch_size = c.mode == GoldenMode::none ? std::nullopt : c.batch;
    options.vmap = c.mode == GoldenMode::vmap;
    options.dtype = dtype;
    learner_ = std::make_unique<Learner>(
        *model_, rule.algorithm, std::vector{in_dtype(row(c.inputs, 0), dtype)}, options);
    load(c, *model_, dtype);
    inject();
  }

  void run(const Comparison& check) {
    const std::int64_t chunk = case_.chunk_size.value_or(1);
    std::map<std::string, std::vector<Array>> grads;
    std::vector<std::vector<TraceView>> traces;
    const bool every_call = expected().contains("etrace_per_step");
    for (std::int64_t t = 0; t < case_.steps; t += chunk) {
      prepare(t, chunk);
      const GradResult r = one_call(t, chunk);
      for (const auto& [leaf, g] : r.grads) grads[leaf].push_back(g);
      if (every_call) traces.push_back(learner_->etraces(TraceSpace::parameter));
    }
    compare_gradients(check, grads);
    compare_traces(check);
    if (every_call)
      compare_traces_per_call(check, expected().at("etrace_per_step"), traces);
    if (expected().contains("running_index_final"))
      BT_REQUIRE(
          learner_->running_index() == expected().at("running_index_final"),
          fmt::format("running_index: {}, recorded is {}", learner_->running_index(),
                      expected().at("running_index_final").dump()));
  }

 private:
  const json& expected() const { return text_.at("expected"); }

  // Random draws of the recorded run, given as arrays.
  void inject() {
    if (text_.contains("random_feedback_B")) {
      FeedbackMatrices b;
      for (const auto& [group, m] : text_.at("random_feedback_B").items())
        b[group_index(group)] = array_from_json("random_feedback_B", m);
      learner_->set_feedback(std::move(b));
    }
    if (text_.contains("modulator")) learner_->set_modulator(scalar(0, dtype_));
    if (text_.contains("synthesizer")) inject_synthesizer();
  }

  void inject_synthesizer() {
    std::map<std::int64_t, Shape> shapes;
    for (const HiddenGroup& g : learner_->graph().hidden_groups) {
      shapes[g.index] = g.varshape();
      shapes[g.index].push_back(g.num_state());
    }
    SyntheticGradient s(shapes);
    for (const auto& [group, w] : text_.at("synthesizer").at("w").items())
      s.set_parameters(group_index(group),
                       {array_from_json("w", w).astype(DType::f32),
                        array_from_json("b", text_.at("synthesizer").at("b").at(group))
                            .astype(DType::f32)});
    learner_->set_synthesizer(std::move(s));
  }

  // What the rule is given at step t.
  void prepare(std::int64_t t, std::int64_t chunk) {
    if (text_.contains("modulator"))
      learner_->set_modulator(
          row(array_from_json("modulator", text_.at("modulator")), t));
    if (!text_.contains("uoro_projection")) return;
    for (const auto& [group, table] : text_.at("uoro_projection").items()) {
      if (!is_traced(group_index(group))) continue;
      const Array nu = array_from_json("uoro_projection", table);
      learner_->set_rule_input("nu/" + group,
                               chunk > 1 ? rows(nu, t, chunk) : row(nu, t));
    }
  }

  // The reference projects groups that no weight reaches, too, and nobody reads it.
  bool is_traced(std::int64_t group) const {
    const auto& relations = learner_->graph().hidden_param_op_relations;
    return std::any_of(relations.begin(), relations.end(), [&](const auto& r) {
      return std::find(r.group_indices.begin(), r.group_indices.end(), group) !=
             r.group_indices.end();
    });
  }

  GradResult one_call(std::int64_t t, std::int64_t chunk) {
    GradOptions options{.reduction = Reduction::sum};
    Array mask = zeros({chunk}, DType::f64);
    for (std::int64_t k = 0; k < chunk; ++k)
      mask.mutable_data<double>()[k] = case_.mask[static_cast<std::size_t>(t + k)];
    options.mask = mask;
    if (chunk > 1) options.chunk_size = chunk;
    const auto loss = [&](const Values& in) {
      if (chunk == 1)
        return LossResult{
            .loss = loss_of(case_, (*learner_)(in[0]), row(case_.targets, t)),
            .results = {}};
      const Value y = (*learner_)(MultiStepData{{in[0]}})[0];
      Values losses;
      for (std::int64_t k = 0; k < chunk; ++k)
        losses.push_back(loss_of(case_, squeeze(slice_axis(y, 0, k, 1), 0),
                                 row(case_.targets, t + k)));
      return LossResult{.loss = stack(losses), .results = {}};
    };
    return learner_->etrace_grad(
        std::vector{in_dtype(rows(case_.inputs, t, chunk), dtype_)}, loss, options);
  }

  void compare_gradients(const Comparison& check,
                         const std::map<std::string, std::vector<Array>>& grads) const {
    const auto of = [&](const std::string& leaf) {
      const auto it = grads.find(leaf);
      BT_REQUIRE(it != grads.end(),
                 fmt::format("the learner gives no gradient for '{}'", leaf));
      return stacked(it->second);
    };
    if (expected().contains("grad_per_step"))
      for (const auto& [leaf, want] : expected().at("grad_per_step").items()) {
        const Array recorded = array_from_json(leaf, want);
        check("grad_per_step " + leaf, same_shape(of(leaf), recorded), recorded);
      }
    for (const auto& [leaf, want] : case_.expected.grad_sum)
      check("grad_sum " + leaf, same_shape(sum(of(leaf), {.axes = {0}}).array(), want),
            want);
  }

  // Recorded arrays may have lost axes of length one.
  static Array same_shape(const Array& got, const Array& want) {
    BT_REQUIRE(got.size() == want.size(),
               fmt::format("has shape {}, recorded is {}", to_string(got.shape()),
                           to_string(want.shape())));
    return got.reshaped(want.shape());
  }

  static std::string label(const json& want) {
    return fmt::format("trace {}/{}/{}/{}", want.at("kind").get<std::string>(),
                       want.at("relation").get<int>(), want.at("group").get<int>(),
                       want.at("key").get<std::string>());
  }

  void compare_traces(const Comparison& check) const {
    if (!expected().contains("etrace_final")) return;
    const std::vector<TraceView> have = learner_->etraces(TraceSpace::parameter);
    for (const json& want : expected().at("etrace_final")) {
      if (is_unread(want)) continue;
      const Array recorded = array_from_json("etrace_final", want);
      check(label(want), same_shape(find(have, want, recorded.size()), recorded),
            recorded);
    }
  }

  bool is_unread(const json& want) const {
    return want.at("kind") == "s_tilde" && !is_traced(want.at("group"));
  }

  void compare_traces_per_call(const Comparison& check, const json& recorded_rows,
                               const std::vector<std::vector<TraceView>>& traces) const {
    for (const json& want : recorded_rows) {
      if (is_unread(want)) continue;
      std::vector<Array> rows;
      const Array recorded = array_from_json("etrace_per_step", want);
      const auto calls = static_cast<std::int64_t>(traces.size());
      for (const std::vector<TraceView>& now : traces)
        rows.push_back(find(now, want, recorded.size() / calls));
      check(label(want) + " per call", same_shape(stacked(rows), recorded), recorded);
    }
  }

  static Array find(const std::vector<TraceView>& have, const json& want,
                    std::int64_t size) {
    for (const auto& test :
         {&RuleReplay::same_key, &RuleReplay::same_last_key, &RuleReplay::sibling}) {
      const TraceView* found = nullptr;
      for (const TraceView& t : have)
        if (matches(t.slot, want) && test(t.slot, want.at("key"))) found = &t;
      // The reference keeps a factor for every array of a parameter, zero where no op
      // has it.
      if (found && test == &RuleReplay::sibling) return zeros({size}, DType::f64);
      if (found) return found->value;
    }
    throw UserError(fmt::format("the learner has no {}", label(want)));
  }

  static bool same_key(const TraceSlot& t, const std::string& key) {
    return t.kind == "x" || t.kind == "df" || t.kind == "s_tilde" || t.key == key;
  }
  // A key may be written as the end of a path.
  static bool same_last_key(const TraceSlot& t, const std::string& key) {
    return t.key.ends_with("/" + key) || key.ends_with("/" + t.key);
  }

  // Another array of the same parameter.
  static bool sibling(const TraceSlot& t, const std::string& key) {
    return t.kind == "theta_tilde" &&
           t.key.substr(0, t.key.rfind('/')) == key.substr(0, key.rfind('/'));
  }
  static bool matches(const TraceSlot& t, const json& want) {
    const auto relation = want.at("relation").get<std::int64_t>();
    const bool shared =
        std::find(t.readers.begin(), t.readers.end(), relation) != t.readers.end();
    return t.kind == want.at("kind") && (t.relation == relation || shared) &&
           t.group == want.at("group");
  }

  const GoldenCase& case_;
  json text_;
  DType dtype_;
  std::unique_ptr<Module> model_;
  std::unique_ptr<Learner> learner_;
};

}  // namespace

RecordedRule recorded_rule(const json& golden_case) {
  json a = golden_case.at("algorithm");
  if (golden_case.contains("uoro_projection_eps"))
    a["args"]["projection_eps"] = golden_case.at("uoro_projection_eps");
  const std::string text = a.dump();
  RecordedRule rule{algorithm_from_json(text), compat(CompileOptions{})};
  rule.graph.control_flow = control_flow_from_json(text, rule.graph.control_flow);
  return rule;
}

bool amplifies_rounding(const Algorithm& a) {
  return a.config.recurrence_scope() == RecurrenceScope::sparse_n ||
         a.config.trace_factorization() == TraceFactorization::random_projection;
}

void compare_rule(const GoldenCase& c, const Comparison& check, DType dtype) {
  RuleReplay(c, dtype).run(check);
}

}  // namespace braintrace::testing::internal
