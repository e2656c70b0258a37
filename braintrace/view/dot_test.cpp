// SPDX-License-Identifier: Apache-2.0
#include "braintrace/view/dot.h"

#include <doctest/doctest.h>

#include "braintrace/ir/print.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/ops/registry.h"
#include "braintrace/view/dot_impl.h"
#include "braintrace/view/svg.h"

namespace dot_test {

using namespace braintrace;

namespace {

std::string dot_of(const std::string& text, const Shape& input,
                   const CompileOptions& options = {}) {
  const auto model = nn::build_model(text);
  init_all_states(*model);
  return to_dot(compile_etrace_graph(*model, {zeros(input)}, options));
}

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++n;
  return n;
}

}  // namespace

TEST_CASE("a program is drawn with one node per op and one edge per operand") {
  const std::string dot =
      to_dot(parse("in %0:f32[2] %1:f32[2] = tanh %0 %2:f32[2] = mul %1 %0 out %2"));
  const std::string body = dot.substr(dot.find("  \"v0\""));
  CHECK(
      body ==
      R"(  "v0" [label="%0\nf32[2]", shape=ellipse, style=filled, fillcolor="#e6f6ea", color="#1a7f37", class="input"];
  "n0" [label="tanh", shape=box, style="rounded,filled", fillcolor="#ffffff", class="op", tooltip=""];
  "v0" -> "n0" [label="f32[2]"];
  "n1" [label="mul", shape=box, style="rounded,filled", fillcolor="#ffffff", class="op", tooltip=""];
  "n0" -> "n1" [label="f32[2]"];
  "v0" -> "n1" [label="f32[2]"];
  "out0" [label="out 0", shape=ellipse, style=filled, fillcolor="#fbefff", color="#8250df", class="output"];
  "n1" -> "out0" [label="f32[2]"];
}
)");
}

TEST_CASE("two GRU layers are two clusters with direct and dense edges") {
  const std::string dot = dot_of("two_layer_gru", {10});
  CHECK(count(dot, "subgraph cluster_group_") == 2);
  CHECK(count(dot, "class=\"relation direct\"") == 4);
  CHECK(count(dot, "class=\"relation dense\"") == 2);
  CHECK(count(dot, "class=\"cut\"") == 3);
  CHECK(count(dot, "class=\"weight local\"") == 1);
  CHECK(dot.find("local: it reaches no hidden state") != std::string::npos);
}

TEST_CASE("compat draws the reference's relations only") {
  const std::string dot = dot_of("two_layer_gru", {10}, compat());
  CHECK(count(dot, "class=\"relation direct\"") == 4);
  CHECK(count(dot, "class=\"relation dense\"") == 0);
}

TEST_CASE("64 layers are stacked in one column that is no wider than two layers") {
  const auto stack = [](int layers) {
    std::string text = R"({"kind": "sequential", "in_shape": [4], "layers": [)";
    for (int i = 0; i < layers; ++i)
      text += (i ? ", " : "") + std::string(R"({"name": "l)") + std::to_string(100 + i) +
              R"(", "class": "GRUCell", "args": {"in_size": 4, "out_size": 4}})";
    return dot_of(text + "]}", {4});
  };
  // width="533pt" height="418pt"
  const auto width = [](const std::string& svg) {
    return std::stod(svg.substr(svg.find("width=\"") + 7));
  };
  const std::string deep = stack(64);
  CHECK(count(deep, "subgraph cluster_group_") == 64);
  CHECK(width(dot_to_svg(deep)) < 1.2 * width(dot_to_svg(stack(2))));
}

TEST_CASE("a step's picture carries the names of its states") {
  const auto model = nn::build_model("single_rnn");
  init_all_states(*model);
  const std::string dot = to_dot(trace_step(*model, std::vector<Array>{zeros({10})}));
  CHECK(count(dot, "label=\"rnn/h\\nf32[32]\"") == 1);
  CHECK(count(dot, "label=\"rnn/h at exit\"") == 1);
  CHECK(count(dot, "label=\"etp_mv\"") == 2);
  CHECK(count(dot, "rnn/W/weight[bias] at exit") == 0);
}

TEST_CASE("strings are escaped for Graphviz") {
  CHECK(internal::dot_string("x\" \\ y\nz\t.") == R"("x\" \\ y\nz .")");
}

TEST_CASE("long reasons are wrapped at spaces only") {
  CHECK(internal::wrapped("one two three", 7) == "one two\nthree");
  CHECK(internal::wrapped("unbreakable", 4) == "unbreakable");
  CHECK(internal::wrapped("", 4).empty());
}

}  // namespace dot_test
