// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/graph.h"

#include <doctest/doctest.h>

#include "braintrace/ops/op_list.h"
#include "braintrace/ops/registry.h"

namespace graph_test {

using namespace braintrace;

namespace {

const Type kVec{DType::f32, {2}};

// %2 = add %0 %1; %3 = tanh %2
GraphParts good_parts() {
  GraphParts p;
  p.types = {kVec, kVec, kVec, kVec};
  p.inputs = {{0}, {1}};
  p.nodes = {Node{.op = &add_op, .inputs = {{0}, {1}}, .outputs = {{2}}},
             Node{.op = &tanh_op, .inputs = {{2}}, .outputs = {{3}}}};
  p.outputs = {{3}};
  return p;
}

// An op that carries a sub-graph and passes its input on.
std::vector<Type> infer_box(std::span<const Type> in, const Attrs&) { return {in[0]}; }
const OpDef box = {
    .name = "box", .attrs = {{"body", AttrKind::graph}}, .infer = infer_box};

GraphParts boxed(GraphPtr body) {
  GraphParts p;
  p.types = {kVec, kVec};
  p.inputs = {{0}};
  p.nodes = {Node{.op = &box,
                  .inputs = {{0}},
                  .outputs = {{1}},
                  .attrs = {{"body", std::move(body)}}}};
  p.outputs = {{1}};
  return p;
}

void check_broken(const GraphParts& p, const std::string& invariant,
                  const std::string& what) {
  const Graph g(p);
  try {
    verify(g);
    FAIL("verify accepted a graph that breaks " << invariant);
  } catch (const InternalError& e) {
    const std::string message = e.what();
    CAPTURE(message);
    CHECK(message.find("verify: " + invariant + " broken") == 0);
    CHECK(message.find(what) != std::string::npos);
  }
}

void check_differ(const Graph& a, const Graph& b) {
  CHECK(!(a == b));
  CHECK(structural_hash(a) != structural_hash(b));
}

}  // namespace

TEST_CASE("a well-formed graph verifies") {
  CHECK_NOTHROW(verify(Graph(good_parts())));
  CHECK_NOTHROW(verify(Graph()));
}

TEST_CASE("types of inputs and outputs are looked up by id") {
  GraphParts p = good_parts();
  p.types[1] = {DType::i32, {}};
  const Graph g(p);
  CHECK(g.input_types() == std::vector<Type>{kVec, {DType::i32, {}}});
  CHECK(g.output_types() == std::vector<Type>{kVec});
  CHECK(g.num_values() == 4);
}

TEST_CASE("graphs are equal by structure, and the hash agrees") {
  const Graph a(good_parts()), b(good_parts());
  CHECK(a == b);
  CHECK(structural_hash(a) == structural_hash(b));
}

TEST_CASE("source locations are no part of a program") {
  GraphParts p = good_parts();
  p.nodes[0].loc = SourceLoc("model.cpp", 12);
  CHECK(Graph(p) == Graph(good_parts()));
  CHECK(structural_hash(Graph(p)) == structural_hash(Graph(good_parts())));
}

TEST_CASE("every part of a program is part of its identity") {
  const Graph g(good_parts());
  GraphParts p = good_parts();
  p.nodes[0].inputs = {{1}, {0}};
  check_differ(g, Graph(p));
  p = good_parts();
  p.outputs = {{2}};
  check_differ(g, Graph(p));
  p = good_parts();
  p.outputs = {{3}, {3}};
  check_differ(g, Graph(p));
  p = good_parts();
  p.types = {{DType::f64, {2}}, {DType::f64, {2}}, {DType::f64, {2}}, {DType::f64, {2}}};
  check_differ(g, Graph(p));
  p = good_parts();
  p.nodes[1].op = &convert_op;
  check_differ(g, Graph(p));
}

TEST_CASE("constants are compared and hashed by value") {
  const auto constant = [](std::string_view literal) {
    return parse("in %0:" + std::string(literal.substr(0, literal.find('('))) +
                 " = constant {value=" + std::string(literal) + "} out %0");
  };
  check_differ(constant("f32[2](1, 2)"), constant("f32[2](1, 3)"));
  check_differ(constant("f32[1](0)"), constant("f32[1](-0)"));
  check_differ(constant("f32[1,2](1, 2)"), constant("f32[2,1](1, 2)"));
  CHECK(constant("f32[1](nan)") == constant("f32[1](nan)"));
}

TEST_CASE("sub-graphs are compared and hashed by structure") {
  const auto body = [](std::string_view text) {
    return std::make_shared<const Graph>(parse(text));
  };
  const Graph a(boxed(body("in %0:f32[2] out %0")));
  const Graph b(boxed(body("in %5:f32[2] out %5")));
  CHECK(a == b);
  CHECK(structural_hash(a) == structural_hash(b));
  check_differ(a, Graph(boxed(body("in %0:f32[2] %1:f32[2] = tanh %0 out %1"))));
}

TEST_CASE("I2: inputs must take the first ids in order") {
  GraphParts p = good_parts();
  p.inputs = {{1}, {0}};
  check_broken(p, "I2", "defines %1 where %0 is next");
}

TEST_CASE("I2: node outputs must take the next id") {
  GraphParts p = good_parts();
  p.nodes[0].outputs = {{3}};
  check_broken(p, "I2", "defines %3 where %2 is next");
}

TEST_CASE("I2: an input must have a type") {
  GraphParts p;
  p.inputs = {{0}};
  check_broken(p, "I2", "%0 has no type");
}

TEST_CASE("I2: every typed value must be defined") {
  GraphParts p = good_parts();
  p.types.push_back(kVec);
  check_broken(p, "I2", "a value is never defined");
}

TEST_CASE("I3: a node must have an op") {
  GraphParts p = good_parts();
  p.nodes[1].op = nullptr;
  check_broken(p, "I3", "node without an op");
}

TEST_CASE("I3: a value must be defined before its use") {
  GraphParts p = good_parts();
  p.nodes[0].inputs = {{0}, {3}};
  check_broken(p, "I3", "uses %3 before its definition");
}

TEST_CASE("I3: a node may not read its own output") {
  GraphParts p = good_parts();
  p.nodes[1].inputs = {{3}};
  check_broken(p, "I3", "uses %3 before its definition");
}

TEST_CASE("I3: an output of the program must exist") {
  GraphParts p = good_parts();
  p.outputs = {{99}};
  check_broken(p, "I3", "uses %99");
}

TEST_CASE("I3: a value must have the type its op infers") {
  GraphParts p = good_parts();
  p.types[3] = {DType::f32, {3}};
  check_broken(p, "I3", "output 0 is not f32[2]");
}

TEST_CASE("I3: a node must define as many values as its op gives") {
  GraphParts p = good_parts();
  p.types.push_back(kVec);
  p.nodes[1].outputs = {{3}, {4}};
  check_broken(p, "I3", "wrong number of outputs");
  p = good_parts();
  p.types.pop_back();
  p.nodes[1].outputs = {};
  p.outputs = {{2}};
  check_broken(p, "I3", "wrong number of outputs");
}

TEST_CASE("I6: attributes must be the declared ones") {
  GraphParts p = good_parts();
  p.nodes[1].attrs.set("axis", std::int64_t{0});
  check_broken(p, "I6", "tanh: unknown attribute 'axis'");
  p = boxed(std::make_shared<const Graph>());
  p.nodes[0].attrs = {};
  check_broken(p, "I6", "box: missing attribute 'body'");
  p.nodes[0].attrs = {{"body", 1.0}};
  check_broken(p, "I6", "box: attribute 'body' must be graph, got real");
  check_broken(boxed(nullptr), "I6", "box: attribute 'body' holds no graph");
}

TEST_CASE("I6: what the op refuses is reported with the op's words") {
  GraphParts p = good_parts();
  p.nodes[1].inputs = {{0}, {1}};
  check_broken(p, "I6", "tanh: needs 1 inputs, got 2");
}

TEST_CASE("I6: sub-graphs are verified too") {
  GraphParts inner = good_parts();
  inner.nodes[0].inputs = {{0}, {3}};
  check_broken(boxed(std::make_shared<const Graph>(inner)), "I3",
               "uses %3 before its definition");
  CHECK_NOTHROW(verify(Graph(boxed(std::make_shared<const Graph>(good_parts())))));
}

TEST_CASE("the report marks the offending node among its neighbours") {
  GraphParts p = good_parts();
  p.nodes[1].inputs = {{3}};
  check_broken(p, "I3", "  %2 = add %0 %1\n> %3 = tanh %3\n");
  check_broken(p, "I3", "at node 1");
}

}  // namespace graph_test
