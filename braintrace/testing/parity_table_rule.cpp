// SPDX-License-Identifier: Apache-2.0
// Runs the entries of the table of algorithms. The name of an entry is its rule and its
// method: "pp_09_ss", "d_rtrl_win3", "uoro_win2", "d_rtrl_ss_mask_mean".
#include <algorithm>

#include <fmt/core.h>

#include "braintrace/algo/algorithm_names.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/parity_table_impl.h"
#include "braintrace/train/learner.h"

namespace braintrace::testing::internal {
namespace {

using nlohmann::json;

struct EntryName {
  std::string rule;  // without the method
  VjpMethod method = VjpMethod::single_step;
  std::int64_t window = 1;
  bool mean = false;  // masked mean over the steps
};

EntryName parse_name(std::string name) {
  EntryName e;
  const auto drop = [&](const std::string& end) {
    const bool found = name.ends_with(end);
    if (found) name.resize(name.size() - end.size());
    return found;
  };
  e.mean = drop("_mask_mean");
  if (drop("_ms"))
    e.method = VjpMethod::multi_step;
  else if (const std::size_t at = name.find("_win"); at != std::string::npos) {
    e.method = VjpMethod::multi_step;
    e.window = std::stoll(name.substr(at + 4));
    name.resize(at);
  } else {
    drop("_ss");
  }
  e.rule = name;
  return e;
}

json config(std::initializer_list<json::object_t::value_type> fields) {
  return {{"class", "ETraceConfig"},
          {"args", {{"config", json(json::object_t(fields))}}}};
}

json rule_json(const std::string& rule) {
  if (rule == "d_rtrl") return {{"class", "D_RTRL"}};
  if (rule == "ostl_recurrent") return {{"class", "OSTLRecurrent"}};
  if (rule == "three_factor") return {{"class", "ThreeFactor"}};
  if (rule == "uoro") return {{"class", "UORO"}};
  if (rule == "bptt") return {{"class", "BPTT"}};
  if (rule == "eprop_k07")
    return {{"class", "EProp"}, {"args", {{"kappa_filter_decay", 0.7}}}};
  if (rule == "eprop_random")
    return {{"class", "EProp"},
            {"args", {{"feedback", "random"}, {"random_feedback_key", 0}}}};
  if (rule == "pp_09") return {{"class", "pp_prop"}, {"args", {{"decay_or_rank", 0.9}}}};
  if (rule == "pp_rank5") return {{"class", "pp_prop"}, {"args", {{"decay_or_rank", 5}}}};
  if (rule == "pp_08_03")
    return {{"class", "pp_prop"}, {"args", {{"decay_or_rank", {0.8, 0.3}}}}};
  if (rule == "leak05")
    return config({{"temporal_recursion", "scalar_leak"}, {"decay", 0.5}});
  if (rule == "none") return config({{"temporal_recursion", "none"}});
  if (rule == "io_coupled_09")
    return config({{"trace_factorization", "io_factorized"},
                   {"recurrence_scope", "coupled"},
                   {"decay", 0.9}});
  if (rule.starts_with("snap"))
    return {{"class", "SnAp"}, {"args", {{"n", std::stoll(rule.substr(4))}}}};
  throw UserError("unknown rule '" + rule + "'");
}

Algorithm algorithm_of(const EntryName& name) {
  json j = rule_json(name.rule);
  j["vjp_method"] = to_string(name.method);
  return algorithm_from_json(j.dump());
}

class EntryReplay {
 public:
  EntryReplay(const TableModel& model, const json& m, const EntryName& name,
              const json& entry, DType dtype)
      : name_(name),
        entry_(entry),
        dtype_(dtype),
        xs_(nested(m.at("xs"), dtype)),
        ys_(nested(m.at("ys"), dtype)),
        module_(nn::build_model(model.spec.dump())) {
    LearnerOptions options = compat(LearnerOptions{});
    if (xs_.rank() == 3) options.batch_size = xs_.shape()[1];
    options.dtype = dtype;
    learner_ = std::make_unique<Learner>(*module_, algorithm_of(name),
                                         std::vector{row(xs_, 0)}, options);
    load_state_dict(*module_, model.weights);
    if (entry.contains("B")) learner_->set_feedback({{0, nested(entry["B"], dtype)}});
    if (entry.contains("modulator")) learner_->set_modulator(scalar(0, dtype));
  }

  const Learner& learner() const { return *learner_; }
  StateDict grads;
  Array losses;  // one per step, or the masked mean

  void run() {
    const std::int64_t steps = xs_.shape()[0];
    if (name_.mean || name_.rule == "bptt") {
      add(call(0, steps));
      return;
    }
    std::vector<Array> parts;
    for (std::int64_t t = 0; t < steps; t += name_.window) {
      const GradResult r = call(t, name_.window);
      add(r);
      parts.push_back(r.losses);
    }
    losses = concat(Values(parts.begin(), parts.end()), 0).array();
  }

 private:
  void add(const GradResult& r) {
    losses = r.losses;
    for (const auto& [leaf, g] : r.grads) {
      const auto [it, fresh] = grads.emplace(leaf, g);
      if (!fresh) it->second = (Value(it->second) + Value(g)).array();
    }
  }

  void give(std::int64_t t, std::int64_t count) {
    if (entry_.contains("modulator"))
      learner_->set_modulator(row(nested(entry_["modulator"], dtype_), t));
    if (!entry_.contains("nu")) return;
    const Array nu = nested(entry_["nu"], dtype_);
    learner_->set_rule_input("nu/0", count > 1 ? rows(nu, t, count) : row(nu, t));
  }

  GradResult call(std::int64_t t, std::int64_t count) {
    give(t, count);
    GradOptions options{.window = name_.rule == "bptt" ? 0 : 1,
                        .reduction = Reduction::sum};
    if (name_.window > 1) options.chunk_size = count;
    if (name_.mean) {
      options.mask = nested(entry_.at("mask"), dtype_);
      options.reduction = Reduction::mean;
      options.loss_output = LossOutput::scalar;
    }
    const auto loss = [&](const Values& in) {
      if (name_.window == 1)
        return LossResult{.loss = sum(square((*learner_)(in[0]) - in[1])), .results = {}};
      const Value d = (*learner_)(MultiStepData{{in[0]}})[0] - in[1];
      Ints axes = iota_ints(d.rank());
      axes.erase(axes.begin());
      return LossResult{.loss = sum(square(d), {.axes = axes}), .results = {}};
    };
    return learner_->etrace_grad(std::vector{rows(xs_, t, count), rows(ys_, t, count)},
                                 loss, options);
  }

  const EntryName& name_;
  const json& entry_;
  DType dtype_;
  Array xs_, ys_;
  std::unique_ptr<Module> module_;
  std::unique_ptr<Learner> learner_;
};

const Array& trace_of(const std::vector<TraceView>& all, const std::string& kind,
                      const std::string& key) {
  const auto it = std::find_if(all.begin(), all.end(), [&](const TraceView& t) {
    const bool named = t.slot.key == key || t.slot.key.ends_with("/" + key);
    return t.slot.kind == kind && (key.empty() || named);
  });
  BT_REQUIRE(it != all.end(), fmt::format("the learner has no trace {}/{}", kind, key));
  return it->value;
}

// The models of the table have one relation and one group wherever traces are recorded.
void compare_traces(const EntryReplay& replay, const json& entry, DType dtype,
                    const Comparison& check) {
  const std::vector<TraceView> have = replay.learner().etraces(TraceSpace::parameter);
  const auto same = [&](const std::string& kind, const std::string& key,
                        const json& want) {
    const Array recorded = nested(want, dtype);
    check("trace " + kind + "/" + key,
          trace_of(have, kind, key).reshaped(recorded.shape()), recorded);
  };
  if (entry.contains("final_trace"))
    for (const auto& [key, want] : entry["final_trace"].at(0).items())
      same("bwg", key, want);
  if (entry.contains("final_x")) same("x", "", entry["final_x"].at(0));
  if (entry.contains("final_f")) same("df", "", entry["final_f"].at(0));
  if (entry.contains("final_s")) same("s_tilde", "", entry["final_s"]);
  if (entry.contains("final_theta"))
    for (const auto& [key, want] : entry["final_theta"].items())
      same("theta_tilde", key, want);
}

void compare_pattern(const EntryReplay& replay, const json& entry) {
  if (!entry.contains("neighbours") || entry["neighbours"].is_null()) return;
  const auto& snap = replay.learner().graph().hidden_groups.at(0).snap;
  BT_REQUIRE(snap, "the group has no pattern");
  const json have = snap->neighbours;
  BT_REQUIRE(have == entry["neighbours"],
             fmt::format("neighbours: {}, recorded is {}", have.dump(),
                         entry["neighbours"].dump()));
}

}  // namespace

void compare_entry(const TableModel& model, const json& m, const std::string& rule,
                   const json& entry, DType dtype, ParityResult& result) {
  const EntryName name = parse_name(rule);
  const bool loose =
      dtype == DType::f32 || name.rule.starts_with("snap") || name.rule == "uoro";
  const Comparison check{result, loose ? Tolerance{2e-4, 2e-5} : Tolerance{}};
  EntryReplay replay(model, m, name, entry, dtype);
  replay.run();
  if (entry.contains("losses"))
    check("losses", replay.losses, nested(entry["losses"], dtype));
  if (entry.contains("scalar_loss"))
    check("scalar_loss", replay.losses, nested(entry["scalar_loss"], dtype));
  for (const auto& [leaf, want] : named_leaves(entry.at("grads"), dtype)) {
    const auto it = replay.grads.find(leaf);
    BT_REQUIRE(it != replay.grads.end(),
               fmt::format("the learner gives no gradient for '{}'", leaf));
    check("grads " + leaf, it->second, want);
  }
  compare_traces(replay, entry, dtype, check);
  compare_pattern(replay, entry);
}

}  // namespace braintrace::testing::internal
