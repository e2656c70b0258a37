// SPDX-License-Identifier: Apache-2.0
// The text of a compiled graph: the three tutorial models, byte for byte.
#include "braintrace/etrace/report.h"

#include <doctest/doctest.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/micro_model.h"

namespace report_test {

using namespace braintrace;

namespace {

const std::string kRule(120, '=');

ETraceGraph compiled(const std::string& model, const Shape& input,
                     const CompileOptions& options) {
  static std::vector<std::unique_ptr<Module>>
      alive;  // graphs point to the model's states
  alive.push_back(nn::build_model(model));
  init_all_states(*alive.back());
  return compile_etrace_graph(*alive.back(), {zeros(input)}, options);
}

}  // namespace

TEST_CASE("single_rnn prints as the reference prints it") {
  const CompilationReport r(compiled("single_rnn", {10}, compat()));
  const std::string level1 = kRule + R"(
The hidden groups are:

   Group 0: [('rnn', 'h')]


The weight parameters which are associated with the hidden states are:

   Weight 0: ('rnn', 'W', 'weight')  is associated with hidden group 0


The non-etrace weight parameters are:

   Weight 0: ('out', 'weight')  (excluded: relation_excluded_non_temporal)


)";
  CHECK(r.to_str(1) == level1);
  CHECK(r.to_str(2) == level1 + R"(Compiler diagnostics (warnings / errors):

   [warning] relation_excluded_non_temporal: ETP primitive etp_mv (weight=('out', 'weight')) has no connected hidden states. It will be treated as a non-temporal parameter.


)");
  CHECK(r.one_line() ==
        "CompilationReport(hidden_groups=1, etrace_weights=2, excluded_weights=1, "
        "warnings=1, errors=0)");
  CHECK(r.to_str(0) == r.one_line());
}

TEST_CASE("two_layer_gru prints as the reference prints it") {
  const CompilationReport r(compiled("two_layer_gru", {10}, compat()));
  CHECK(r.to_str(1) == kRule + R"(
The hidden groups are:

   Group 0: [('rnn1', 'h')]
   Group 1: [('rnn2', 'h')]


The weight parameters which are associated with the hidden states are:

   Weight 0: ('rnn1', 'Wz', 'weight')  is associated with hidden group 0
   Weight 1: ('rnn1', 'Wh', 'weight')  is associated with hidden group 0
   Weight 2: ('rnn2', 'Wz', 'weight')  is associated with hidden group 1
   Weight 3: ('rnn2', 'Wh', 'weight')  is associated with hidden group 1


The non-etrace weight parameters are:

   Weight 0: ('out', 'weight')  (excluded: relation_excluded_non_temporal)
   Weight 1: ('rnn1', 'Wr', 'weight')  (excluded: relation_excluded_weight_to_weight)
   Weight 2: ('rnn2', 'Wr', 'weight')  (excluded: relation_excluded_weight_to_weight)


)");
  CHECK(r.one_line() ==
        "CompilationReport(hidden_groups=2, etrace_weights=8, excluded_weights=3, "
        "warnings=3, errors=0)");
}

TEST_CASE(
    "conv_rnn prints as the reference prints it, and associates the kernel by default") {
  const CompilationReport r(compiled("conv_rnn", {1, 28, 28}, compat()));
  CHECK(r.to_str(1) == kRule + R"(
The hidden groups are:

   Group 0: [('rnn', 'h')]


The weight parameters which are associated with the hidden states are:

   Weight 0: ('rnn', 'W', 'weight')  is associated with hidden group 0


The non-etrace weight parameters are:

   Weight 0: ('conv', 'weight')  (excluded: relation_excluded_weight_to_weight)
   Weight 1: ('out', 'weight')  (excluded: relation_excluded_non_temporal)


)");
  const std::string text =
      CompilationReport(compiled("conv_rnn", {1, 28, 28}, {})).to_str(1);
  CHECK(text.find("('conv', 'weight')  is associated with hidden group 0") !=
        std::string::npos);
}

TEST_CASE("by default a GRU's reset gate is associated with its layer's group") {
  const ETraceGraph g = compiled("two_layer_gru", {10}, {});
  CHECK(g.hidden_param_op_relations.size() == 6);
  for (const HiddenParamOpRelation& r : g.hidden_param_op_relations) {
    const bool reset = std::get<std::string>(r.path().keys[1]) == "Wr";
    CHECK(r.kind == (reset ? RelationKind::dense : RelationKind::direct));
    const bool second = std::get<std::string>(r.path().keys[0]) == "rnn2";
    CHECK(r.group_indices == std::vector<std::int64_t>{second ? 1 : 0});
  }
}

TEST_CASE("a record prints its non-empty fields as the reference does") {
  const ETraceGraph g = compiled("single_rnn", {10}, compat());
  CHECK(to_string(g.diagnostics[0]) ==
        "CompilationRecord(kind=relation_included, level=info, primitive='etp_mv', "
        "weight_path=('rnn', 'W', 'weight'), hidden_paths=[('rnn', 'h')], "
        "message=\"etp_mv(('rnn', 'W', 'weight')) -> [0]\", "
        "context={'hidden_group_indices': (0,), 'path_classification': {('rnn', 'h'): "
        "'all_direct'}})");
}

TEST_CASE("explain filters by weight, hidden state and kind together") {
  const ETraceGraph g = compiled("two_layer_gru", {10}, compat());
  CHECK(g.explain().size() == 7);
  CHECK(g.explain({.weight_path = Path{"rnn1", "Wr", "weight"}}).size() == 1);
  CHECK(g.explain({.hidden_path = Path{"rnn2", "h"}}).size() == 2);
  CHECK(g.explain({.weight_path = Path{"rnn1", "Wz", "weight"},
                   .kind = DiagnosticKind::relation_excluded_non_temporal})
            .empty());
}

TEST_CASE("every kind has a name of its own") {
  for (DiagnosticKind k : all_diagnostic_kinds())
    CHECK(diagnostic_kind_from_string(to_string(k)) == k);
  CHECK(!diagnostic_kind_from_string("no_such_kind"));
}

TEST_CASE("the verdict table names every parameter once") {
  const std::string text =
      CompilationReport(compiled("two_layer_gru", {10}, {})).verdict_table();
  for (const char* path : {"('out', 'weight')", "('rnn1', 'Wh', 'weight')",
                           "('rnn1', 'Wr', 'weight')", "('rnn2', 'Wz', 'weight')"})
    CHECK(text.find(std::string("   ") + path) != std::string::npos);
  CHECK(text.find("History is dropped here:") != std::string::npos);
}

TEST_CASE("a parameter the step does not use has a verdict too") {
  for (const CompileOptions& o : {CompileOptions{}, compat()}) {
    testing::MicroModel m([](testing::MicroModel& s, Value x) {
      s.set("h", 0.9 * s.h() + matmul(x, s.w()));
      return s.h();
    });
    m.hidden("h", {4}).param("w", {4, 4}).param("spare", {4});
    const ETraceGraph g = m.compile(o);
    REQUIRE(g.verdicts.size() == 2);
    CHECK(g.verdicts[1].path == Path{"spare"});
    CHECK(g.verdicts[1].verdict == Verdict::local);
    CHECK(g.verdicts[1].reason == "the step does not use it");
    const bool sound = o.weight_paths != WeightPaths::exclude;
    CHECK(g.explain({.weight_path = Path{"spare"}}).size() == (sound ? 2 : 1));
    // The reference drops it from its listings.
    CHECK(CompilationReport(g).excluded_weights.empty());
  }
}

TEST_CASE("parameters are counted once, whatever uses them how often") {
  testing::MicroModel m([](testing::MicroModel& s, Value x) {
    const Value h = s.h();
    s.set("h", tanh(0.9 * h + matmul(x, s.w()) + matmul(h, s.w()) +
                    matmul(x, s.w("a") + s.w("b"))));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4}).param("a", {4, 4}).param("b", {4, 4});
  const CompilationReport report(m.compile());
  CHECK(report.counts.at("etrace_weights") == 3);     // uses
  CHECK(report.counts.at("etrace_parameters") == 3);  // w, a, b
  const CompilationReport reference(m.compile(compat()));
  CHECK(reference.counts.at("etrace_weights") == 3);
  CHECK(reference.counts.at("etrace_parameters") == 2);  // b is not seen
}

}  // namespace report_test
