// SPDX-License-Identifier: Apache-2.0
// Properties of every compiled graph, on random step models in the default mode and in
// the reference's. A failure prints the model.
#include "compiler_checks.h"
#include <doctest/doctest.h>

#include "braintrace/ir/print.h"
#include "braintrace/testing/micro_model.h"
#include "braintrace/testing/random_model.h"

namespace compiler_property_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

// Unoptimised builds check a sample.
#ifdef NDEBUG
constexpr std::uint64_t kModels = 5000;
#else
constexpr std::uint64_t kModels = 1000;
#endif
constexpr std::uint64_t kLeast = 20 * kModels / 5000;  // of everything that can occur
constexpr std::uint64_t kJacobianEvery = 4;            // models with numeric Jacobians

using Counts = std::map<std::string, std::uint64_t>;

std::string text(const Counts& counts) {
  std::string out;
  for (const auto& [name, n] : counts) out += " " + name + " " + std::to_string(n);
  return out;
}

struct Tally {
  Counts features, kinds, verdicts, refusals;
  std::uint64_t compiled = 0, chained_groups = 0, positions_checked = 0;
};

// Groups, relations and verdicts, states under names that do not decide any order.
std::string summary(const ETraceGraph& g, const RandomModel& m) {
  const auto label = [&](const Path& p) {
    const StepState* used = g.module_info.step.find(p);
    return m.label(used ? *used->state : state_at(m, p));
  };
  std::string out;
  for (const HiddenGroup& group : g.hidden_groups) {
    out += "group";
    for (const Path& p : group.hidden_paths()) out += " " + label(p);
    out += "\n" + print(group.transition_program);
  }
  for (const HiddenParamOpRelation& r : g.hidden_param_op_relations) {
    out += r.primitive + (r.kind == RelationKind::direct ? " direct" : " dense");
    for (const Trainable& t : r.trainables) out += " " + label(t.path);
    for (std::int64_t i : r.group_indices) out += " " + std::to_string(i);
    out += "\n";
    for (const Graph& tail : r.tails) out += print(tail);
  }
  std::set<std::string> verdicts;
  for (const ParameterVerdict& v : g.verdicts)
    verdicts.insert(label(v.path) + " " + std::string(to_string(v.verdict)) + "\n");
  for (const std::string& v : verdicts) out += v;
  return out;
}

void check_repeatable(const ETraceGraph& g, RandomModel& m, std::uint64_t seed,
                      const CompileOptions& options) {
  const ETraceGraph again = compile_etrace_graph(m, m.args(), options);
  require(CompilationReport(again).to_str(2) == CompilationReport(g).to_str(2) &&
              again.diagnostics.size() == g.diagnostics.size(),
          "two compiles differ");
  RandomModel reversed(seed, {.reversed_names = true});
  reversed.init();
  const ETraceGraph other = compile_etrace_graph(reversed, reversed.args(), options);
  require(summary(other, reversed) == summary(g, m),
          "the result depends on the order of declaration:\n" + summary(g, m) +
              "-- other order --\n" + summary(other, reversed));
}

// Errors by the words that do not change from model to model.
std::string refusal(const std::string& message) {
  for (const char* known :
       {"is used inside a while", "is used inside a scan", "is used inside a cond",
        "that the compiler does not open", "while_hidden is 'error'",
        "only through a while loop", "reads 2 hidden states",
        "feeds a hidden state that a long scan updates", "differ in shape",
        "needs a widened Jacobian"})
    if (message.find(known) != std::string::npos) return "'" + std::string(known) + "'";
  return "other: " + message;
}

bool has_chained_group(const ETraceGraph& g, const RandomModel& m) {
  for (const auto& [from, to] : m.in_step_edges())
    for (const HiddenGroup& group : g.hidden_groups) {
      const auto states = group.hidden_states();
      const auto in = [&](const State* s) {
        return std::find(states.begin(), states.end(), s) != states.end();
      };
      if (in(from) && in(to)) return true;
    }
  return false;
}

void check_model(std::uint64_t seed, RandomModel& m, const CompileOptions& options,
                 Tally& tally) {
  std::optional<ETraceGraph> g;
  try {
    g = compile_etrace_graph(m, m.args(), options);
  } catch (const UserError& e) {
    require(std::string(e.what()).size() > 10, "an error without a message");
    ++tally.refusals[refusal(e.what())];
    return;
  }
  ++tally.compiled;
  for (const CompilationRecord& r : g->diagnostics)
    ++tally.kinds[std::string(to_string(r.kind))];
  for (const ParameterVerdict& v : g->verdicts)
    ++tally.verdicts[std::string(to_string(v.verdict))];
  tally.chained_groups += has_chained_group(*g, m) ? 1 : 0;
  check_verdicts(*g, m);
  check_graphs(*g);
  check_values(*g, m.args());
  check_repeatable(*g, m, seed, options);
  const bool sound = options.mixing == Mixing::cut && !options.include_recurrent_mixing;
  if (!sound || seed % kJacobianEvery != 0) return;
  check_positions(*g, m.args());
  ++tally.positions_checked;
}

Tally run(const CompileOptions& base) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= kModels; ++seed) {
    RandomModel m(seed);
    m.init();
    for (const std::string& f : m.features()) ++tally.features[f];
    try {
      check_model(seed, m, m.tuned(base), tally);
    } catch (const std::exception& e) {
      FAIL_CHECK("seed " << seed << ": " << std::string(e.what()) << "\n" << m.text());
    }
  }
  MESSAGE(kModels << " models, " << tally.compiled << " compiled, "
                  << tally.chained_groups << " with chained states, "
                  << tally.positions_checked << " with Jacobians\nverdicts:"
                  << text(tally.verdicts) << "\nrecords:" << text(tally.kinds)
                  << "\nrefused:" << text(tally.refusals)
                  << "\nfeatures:" << text(tally.features));
  return tally;
}

// Records of both modes that random models lead to.
const std::vector<std::string> kCommonKinds = {"relation_included",
                                               "relation_excluded_no_paramstate",
                                               "relation_excluded_non_temporal",
                                               "relation_excluded_weight_to_weight",
                                               "relation_partial_path",
                                               "trainable_invar_not_paramstate",
                                               "cond_if_converted",
                                               "cond_conversion_skipped",
                                               "scan_unrolled",
                                               "scan_unroll_skipped",
                                               "scan_descent_applied",
                                               "scan_descent_skipped",
                                               "scan_descent_no_relations",
                                               "control_flow_opaque_fwd",
                                               "control_flow_recurrent_mixing",
                                               "primitive_inside_control_flow",
                                               "snap_pattern_degenerate",
                                               "hidden_group_merged",
                                               "state_mismatch",
                                               "parameter_local"};
// Records that come with an error, so that no graph shows them: counted by their words.
const std::vector<std::string> kCommonRefusals = {"'is used inside a while'"};
// Cannot occur:
//   primitive_inside_nested_jit      programs have no nested calls; functions are inlined
//   multi_output_primitive_detected  every trainable op has one result
//   pytree_weight_leaf_ambiguous     a leaf is a value of its own, never looked up
//   transition_tail_bounded          tails are cut by position, never by size
//   relation_excluded_shape_mismatch, _sliced_weight, snap_pattern_conservative
//                                    in the default mode: the first two are traced or
//                                    local, patterns follow every op's position map
//   relation_dense, history_cut, parameter_refused, weight_in_control_flow
//                                    in the reference's mode, which knows none of the
//                                    first three and makes the last an error

void check_coverage(const Tally& t, const std::vector<std::string>& kinds,
                    const std::vector<std::string>& verdicts,
                    const std::vector<std::string>& refusals) {
  const auto often = [](const Counts& c, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      CAPTURE(name);
      const auto it = c.find(name);
      CHECK((it == c.end() ? 0 : it->second) >= kLeast);
    }
  };
  often(t.kinds, kCommonKinds);
  often(t.kinds, kinds);
  often(t.verdicts, verdicts);
  often(t.refusals, kCommonRefusals);
  often(t.refusals, refusals);
  for (const auto& [feature, n] : t.features) {
    CAPTURE(feature);
    CHECK(n >= kLeast);
  }
  for (const auto& [message, n] : t.refusals) CHECK(message.front() == '\'');  // known
  CHECK(t.chained_groups * 10 >= kModels);
}

}  // namespace

TEST_CASE("every random model compiles soundly or is refused by name") {
  const Tally tally = run({});
  CHECK(tally.compiled * 10 >= kModels * 8);
  check_coverage(tally,
                 {"relation_dense", "history_cut", "weight_in_control_flow",
                  "weight_in_while", "parameter_refused"},
                 {"direct", "dense", "local", "refused"},
                 {"'only through a while loop'"});
}

TEST_CASE("every random model compiles as the reference would or is refused by name") {
  const Tally tally = run(compat());
  CHECK(tally.compiled * 10 >= kModels * 7);
  check_coverage(tally,
                 {"relation_excluded_shape_mismatch", "relation_excluded_sliced_weight",
                  "snap_pattern_conservative"},
                 {"direct", "local"},
                 {"'is used inside a scan'", "'is used inside a cond'",
                  "'that the compiler does not open'", "'reads 2 hidden states'",
                  "'feeds a hidden state that a long scan updates'"});
}

TEST_CASE("a random model is a function of its seed") {
  RandomModel a(3), b(3), c(4);
  for (RandomModel* m : {&a, &b, &c}) m->init();
  CHECK(a.text() == b.text());
  CHECK(a.text() != c.text());
}

}  // namespace compiler_property_test
