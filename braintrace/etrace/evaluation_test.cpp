// SPDX-License-Identifier: Apache-2.0
// The walk that the passes share.
#include "braintrace/etrace/evaluation.h"

#include <doctest/doctest.h>

#include "braintrace/ir/evaluate.h"
#include "braintrace/ir/print.h"
#include "braintrace/ops/ops.h"

namespace evaluation_test {

using namespace braintrace;

namespace {

// One node of every kind: tanh, scan, while, cond.
Graph one_of_each() {
  const auto b = Builder::create();
  const Value x = b->input({DType::f64, {3}});
  const Value a = tanh(x);
  const Value s =
      scan([](const Values& c) { return Values{sin(c[0])}; }, {a}, {}, {.length = 5})
          .carry[0];
  const Value w = while_loop([](const Values& c) { return Values{sum(c[0]) < 9.0}; },
                             [](const Values& c) { return Values{exp(c[0])}; }, {s})[0];
  const Value c = cond(
      sum(w) > 0.0, [](const Values& v) { return Values{cos(v[0])}; },
      [](const Values& v) { return v; }, {w})[0];
  return b->finish(std::vector{c});
}

class Kinds : public GraphEvaluation {
 public:
  std::string text;

 private:
  void eval_scan(std::size_t, const Node&) override { text += "scan "; }
  void eval_control_flow(std::size_t, const Node&, std::string_view kind) override {
    text += "(" + std::string(kind) + ") ";
  }
  void eval_node(std::size_t, const Node& n) override {
    if (n.op->name == std::string_view("tanh")) text += "node ";
  }
};

class Plain : public GraphEvaluation {
 public:
  std::size_t nodes = 0;

 private:
  void eval_node(std::size_t i, const Node&) override { CHECK(i == nodes++); }
};

// Doubles what loops give.
class Doubled : public GraphRewrite {
 public:
  using GraphRewrite::GraphRewrite;
  Graph run() {
    evaluate(graph());
    return builder().finish(values(graph().outputs()));
  }

 private:
  void eval_scan(std::size_t i, const Node& n) override {
    eval_node(i, n);
    define(n, {2.0 * value(n.outputs[0])});
  }
};

class Copied : public GraphRewrite {
 public:
  using GraphRewrite::GraphRewrite;
  Graph run() {
    evaluate(graph());
    return builder().finish(values(graph().outputs()));
  }
};

}  // namespace

TEST_CASE("loops and branches have hooks of their own; bodies are not entered") {
  Kinds kinds;
  kinds.evaluate(one_of_each());
  CHECK(kinds.text == "node scan (while) (cond) ");
}

TEST_CASE("without hooks every node is an ordinary one, in program order") {
  const Graph g = one_of_each();
  Plain plain;
  plain.evaluate(g);
  CHECK(plain.nodes == g.nodes().size());
}

TEST_CASE("a rewrite without hooks is a copy; with one it changes that node alone") {
  const Graph g = one_of_each();
  CHECK(print(Copied(g).run()) == print(g));
  const auto b = Builder::create();
  const Value x = b->input({DType::f64, {3}});
  const Graph loop = b->finish(scan([](const Values& c) { return Values{sin(c[0])}; },
                                    {tanh(x)}, {}, {.length = 5})
                                   .carry);
  const std::vector<Array> in = {ones({3}, DType::f64)};
  CHECK(eval_graph(Doubled(loop).run(), in)[0].at(0) ==
        2 * eval_graph(loop, in)[0].at(0));
}

}  // namespace evaluation_test
