// SPDX-License-Identifier: Apache-2.0
// Runs the entries of the table of algorithms.
#include <algorithm>

#include <fmt/core.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/parity_table_impl.h"
#include "braintrace/train/learner.h"

namespace braintrace::testing::internal {
namespace {

using nlohmann::json;

// "zeros", one array for the only state, or arrays by path.
StateDict initial_states(const json& m, const Module& module, DType dtype) {
  const auto it = m.find("h0");
  if (it == m.end() || it->is_null() || *it == "zeros") return {};
  if (it->is_object()) return named_leaves(*it, dtype);
  std::vector<std::string> hidden;
  for (const NamedState& s : collect_states(module))
    if (is_hidden(s.state->kind())) hidden.push_back(to_slashes(s.path));
  BT_REQUIRE(it->is_array() && hidden.size() == 1,
             fmt::format("h0: must be \"zeros\", arrays by path, or one array for one "
                         "state, got {} for {} states",
                         it->dump().substr(0, 80), hidden.size()));
  return {{hidden[0], nested(*it, dtype)}};
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
    load_state_dict(*module_, initial_states(m, *module_, dtype));
    if (entry.contains("B")) learner_->set_feedback({{0, nested(entry.at("B"), dtype)}});
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
      learner_->set_modulator(row(nested(entry_.at("modulator"), dtype_), t));
    if (!entry_.contains("nu")) return;
    const Array nu = nested(entry_.at("nu"), dtype_);
    learner_->set_rule_input("nu/0", count > 1 ? rows(nu, t, count) : row(nu, t));
  }

  GradResult call(std::int64_t t, std::int64_t count) {
    give(t, count);
    GradOptions options{.window = name_.rule == "bptt" ? 0 : 1,
                        .reduction = Reduction::sum};
    if (name_.window > 1) options.chunk_size = name_.window;
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
                      const std::string& key, std::int64_t relation) {
  const auto it = std::find_if(all.begin(), all.end(), [&](const TraceView& t) {
    const auto& readers = t.slot.readers;
    const bool mine =
        relation < 0 || t.slot.relation == relation ||
        std::find(readers.begin(), readers.end(), relation) != readers.end();
    const bool named = t.slot.key == key || t.slot.key.ends_with("/" + key);
    return t.slot.kind == kind && mine && (key.empty() || named);
  });
  BT_REQUIRE(it != all.end(),
             fmt::format("the learner has no trace {}/{}/{}", kind, relation, key));
  return it->value;
}

// Lists have one entry per relation; the traces of random projections are the group's.
void compare_entry_traces(const EntryReplay& replay, const json& entry, DType dtype,
                          const Comparison& check) {
  constexpr std::int64_t group = -1;
  const std::vector<TraceView> have = replay.learner().etraces(TraceSpace::parameter);
  const auto same = [&](const std::string& kind, const std::string& key,
                        std::int64_t relation, const json& want) {
    const Array recorded = nested(want, dtype);
    const Array& ours = trace_of(have, kind, key, relation);
    BT_REQUIRE(ours.size() == recorded.size(),
               fmt::format("trace {}/{}: has shape {}, recorded is {}", kind, key,
                           to_string(ours.shape()), to_string(recorded.shape())));
    check(fmt::format("trace {}/{}/{}", kind, relation, key),
          ours.reshaped(recorded.shape()), recorded);
  };
  const auto per_relation = [&](const char* field, const auto& compare_one) {
    if (!entry.contains(field)) return;
    const json& list = entry.at(field);
    for (std::size_t r = 0; r < list.size(); ++r)
      compare_one(static_cast<std::int64_t>(r), list.at(r));
  };
  per_relation("final_trace", [&](std::int64_t r, const json& row) {
    for (const auto& [key, want] : row.items()) same("bwg", key, r, want);
  });
  per_relation("final_x",
               [&](std::int64_t r, const json& want) { same("x", "", r, want); });
  per_relation("final_f",
               [&](std::int64_t r, const json& want) { same("df", "", r, want); });
  if (entry.contains("final_s")) same("s_tilde", "", group, entry.at("final_s"));
  if (entry.contains("final_theta"))
    for (const auto& [key, want] : entry.at("final_theta").items())
      same("theta_tilde", key, group, want);
}

void require_same(const std::string& field, const json& have, const json& want) {
  BT_REQUIRE(have == want,
             fmt::format("{}: {}, recorded is {}", field, have.dump(), want.dump()));
}

void compare_pattern(const ETraceGraph& g, const json& entry) {
  const bool widened = entry.contains("neighbours") && !entry.at("neighbours").is_null();
  if (!widened && !entry.contains("K")) return;
  BT_REQUIRE(!g.hidden_groups.empty(), "the model has no group");
  const auto& snap = g.hidden_groups[0].snap;
  if (widened) {
    BT_REQUIRE(snap, "the group has no pattern");
    require_same("neighbours", snap->neighbours, entry.at("neighbours"));
  }
  if (entry.contains("K"))
    require_same("K", snap ? snap->num_neighbour() : 1, entry.at("K"));
}

void compare_structure(const ETraceGraph& g, const json& recorded) {
  if (recorded.contains("groups")) {
    json groups = json::array();
    for (const HiddenGroup& group : g.hidden_groups) {
      groups.push_back(json::array());
      for (const Path& p : group.hidden_paths()) groups.back().push_back(to_slashes(p));
    }
    require_same("groups", groups, recorded.at("groups"));
  }
  if (!recorded.contains("relations")) return;
  json relations = json::array();
  for (const HiddenParamOpRelation& r : g.hidden_param_op_relations)
    relations.push_back(to_slashes(r.path()));
  require_same("relations", relations, recorded.at("relations"));
}

}  // namespace

void compare_entry(const TableModel& model, const json& m, const std::string& rule,
                   const json& entry, DType dtype, ParityResult& result) {
  const EntryName name = parse_entry_name(rule);
  const bool loose = dtype == DType::f32 || amplifies_rounding(algorithm_of(name));
  const Comparison check{result, loose ? Tolerance{2e-4, 2e-5} : Tolerance{}};
  EntryReplay replay(model, m, name, entry, dtype);
  replay.run();
  if (entry.contains("losses"))
    check("losses", replay.losses, nested(entry.at("losses"), dtype));
  if (entry.contains("scalar_loss"))
    check("scalar_loss", replay.losses, nested(entry.at("scalar_loss"), dtype));
  for (const auto& [leaf, want] : named_leaves(entry.at("grads"), dtype)) {
    const auto it = replay.grads.find(leaf);
    BT_REQUIRE(it != replay.grads.end(),
               fmt::format("the learner gives no gradient for '{}'", leaf));
    check("grads " + leaf, it->second, want);
  }
  compare_entry_traces(replay, entry, dtype, check);
  const ETraceGraph& graph = replay.learner().graph();
  compare_structure(graph, m);
  compare_structure(graph, entry);
  compare_pattern(graph, entry);
}

}  // namespace braintrace::testing::internal
