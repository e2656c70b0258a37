// SPDX-License-Identifier: Apache-2.0
// A cut names the op a person knows.
#include "braintrace/etrace/cut_set.h"

#include <doctest/doctest.h>

#include "braintrace/testing/micro_model.h"

namespace cut_set_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

std::vector<CompilationRecord> cuts_of(const ETraceGraph& g) {
  return g.explain({.kind = DiagnosticKind::history_cut});
}

}  // namespace

TEST_CASE("history that enters [x, h] W is cut at the product, not at the join") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    s.set("h", tanh(matmul(concat({x, h}), s.w())));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {8, 4});
  const auto cuts = cuts_of(m.compile());
  REQUIRE(cuts.size() == 1);
  CHECK(cuts[0].primitive == "etp_mv");
  CHECK(cuts[0].weight_path == Path{"w"});
  CHECK(cuts[0].message.rfind("etp_mv(('w',))", 0) == 0);
}

TEST_CASE("every product that reads one join is named") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    const Value both = concat({x, h});
    const Value z = sigmoid(matmul(both, s.w("z")));
    const Value n = tanh(matmul(both, s.w("n")));
    s.set("h", (1.0 - z) * h + z * n);
    return s.h();
  });
  m.hidden("h", {4}).param("z", {8, 4}).param("n", {8, 4});
  std::vector<std::optional<Path>> named;
  for (const CompilationRecord& r : cuts_of(m.compile())) named.push_back(r.weight_path);
  CHECK(named == std::vector<std::optional<Path>>{Path{"z"}, Path{"n"}});
}

TEST_CASE("a product that leads to no state is not named") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    const Value both = concat({x, h});
    s.set("h", tanh(matmul(both, s.w())));
    return matmul(both, s.w("out"));
  });
  m.hidden("h", {4}).param("w", {8, 4}).param("out", {8, 2});
  const auto cuts = cuts_of(m.compile());
  REQUIRE(cuts.size() == 1);
  CHECK(cuts[0].weight_path == Path{"w"});
}

TEST_CASE("a join that is read entry by entry is named itself") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    const Value y = matmul(x, s.w());
    const Value shifted = concat({slice_axis(h, 0, 1, 3), slice_axis(h, 0, 0, 1)});
    s.set("h", 0.5 * h + 0.1 * shifted + y);
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  const auto cuts = cuts_of(m.compile());
  REQUIRE(!cuts.empty());
  for (const CompilationRecord& r : cuts) CHECK(r.primitive == "slice");
}

TEST_CASE("the program is cut where positions stop, whatever is named") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    s.set("h", tanh(matmul(concat({x, h}), s.w())));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {8, 4});
  const ETraceGraph g = m.compile();
  const auto cuts = cut_set(g.module_info, g.hidden_groups, g.hidden_param_op_relations);
  REQUIRE(cuts.size() == 1);
  const Node& n = g.module_info.index->node(cuts[0].use.node);
  CHECK(n.inputs[cuts[0].use.input] == g.hidden_groups[0].hidden_invars()[0]);
}

TEST_CASE("a cut is found under every weight whose past it drops") {
  MicroModel m([](MicroModel& s, Value x) {
    s.set("a", 0.9 * s.h("a") + matmul(x, s.w("w1") + s.w("w2")));
    s.set("b", 0.5 * s.h("b") + reshape(s.h("a"), {2, 2}));
    return s.h("b");
  });
  m.hidden("a", {4}).hidden("b", {2, 2});
  m.param("w1", {4, 4}).param("w2", {4, 4}).param("other", {1});
  const ETraceGraph g = m.compile();
  const auto under = [&](const char* name) {
    return g.explain({.weight_path = Path{name}, .kind = DiagnosticKind::history_cut})
        .size();
  };
  CHECK(under("w1") == 1);
  CHECK(under("w2") == 1);
  CHECK(under("other") == 0);
}

TEST_CASE("an edge between two groups is a cut, also where positions are kept") {
  MicroModel m([](MicroModel& s, Value x) {
    s.set("a", 0.9 * s.h("a") + matmul(x, s.w()));
    s.set("b", 0.5 * s.h("b") + reshape(s.h("a"), {2, 2}));
    return s.h("b");
  });
  m.hidden("a", {4}).hidden("b", {2, 2}).param("w", {4, 4});
  const ETraceGraph g = m.compile();
  REQUIRE(g.hidden_groups.size() == 2);
  const auto cuts = cut_set(g.module_info, g.hidden_groups, g.hidden_param_op_relations);
  REQUIRE(cuts.size() == 1);
  CHECK(cuts[0].op == "add");
  CHECK(cuts[0].from == std::vector<Path>{Path{"a"}});
  CHECK(cuts[0].weights == std::vector<Path>{Path{"w"}});
  CHECK(cuts[0].to == std::vector<Path>{Path{"b"}});
  CHECK(
      g.explain({.hidden_path = Path{"b"}, .kind = DiagnosticKind::history_cut}).size() ==
      1);
}

}  // namespace cut_set_test
