// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/print.h"

#include <limits>

#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"

namespace print_test {

using namespace braintrace;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// An op without inputs that may carry one attribute of each kind.
std::vector<Type> infer_holder(std::span<const Type>, const Attrs&) { return {Type{}}; }
const OpDef holder = {.name = "holder",
                      .arity = 0,
                      .attrs = {{"array", AttrKind::array, true},
                                {"dtype", AttrKind::dtype, true},
                                {"flag", AttrKind::boolean, true},
                                {"graph", AttrKind::graph, true},
                                {"int", AttrKind::integer, true},
                                {"ints", AttrKind::ints, true},
                                {"real", AttrKind::real, true},
                                {"text", AttrKind::text, true}},
                      .infer = infer_holder};
// Two outputs: the input and its element type as f64.
std::vector<Type> infer_twins(std::span<const Type> in, const Attrs&) {
  return {in[0], {DType::f64, in[0].shape}};
}
const OpDef twins = {.name = "twins", .infer = infer_twins};
const OpDef* const kOps[] = {&holder, &twins};

Graph holding(const std::string& name, Attr value) {
  GraphParts p;
  p.types = {Type{}};
  p.nodes = {Node{.op = &holder, .outputs = {{0}}, .attrs = {{name, std::move(value)}}}};
  p.outputs = {{0}};
  return Graph(p);
}

// The round trip must give the graph back and the same text again.
void check_round_trip(const Graph& g) {
  const std::string text = print(g);
  CAPTURE(text);
  const Graph back = parse(text, kOps);
  CHECK(back == g);
  CHECK(print(back) == text);
}

void check_attr(const std::string& name, const Attr& value, const std::string& text) {
  CHECK(print(value) == text);
  check_round_trip(holding(name, value));
}

}  // namespace

TEST_CASE("a program prints one definition per line") {
  const std::string text =
      "in %0:f32[2] %1:f32[2]\n"
      "%2:f32[2] = add %0 %1\n"
      "%3:f32[2] = tanh %2\n"
      "out %3 %2\n";
  CHECK(print(parse(text)) == text);
}

TEST_CASE("programs without inputs, nodes or outputs print and parse") {
  CHECK(print(parse("in out")) == "in\nout\n");
  CHECK(parse("in\nout\n") == Graph());
  CHECK(print(parse("in %0:i32[] out")) == "in %0:i32[]\nout\n");
  CHECK(print(parse("in %0:i32[] out %0 %0")) == "in %0:i32[]\nout %0 %0\n");
}

TEST_CASE("white space is free and labels are names only") {
  CHECK(print(parse("in%7:f32[ 2 ]%3:f32[2]=tanh%7 out%3")) ==
        "in %0:f32[2]\n%1:f32[2] = tanh %0\nout %1\n");
}

TEST_CASE("types of node outputs may be left out") {
  CHECK(parse("in %0:f32[2] %1 = tanh %0 %2 = add %1 %0 out %2") ==
        parse("in %0:f32[2] %1:f32[2] = tanh %0 %2:f32[2] = add %1 %0 out %2"));
}

TEST_CASE("a node with several outputs prints them with commas") {
  const std::string text =
      "in %0:f32[2]\n"
      "%1:f32[2], %2:f64[2] = twins %0\n"
      "%3:f64[2], %4:f64[2] = twins %2\n"
      "out %1 %4\n";
  CHECK(print(parse(text, kOps)) == text);
  CHECK(parse("in %0:f32[2] %1,%2 = twins %0 %3,%4 = twins %2 out %1 %4", kOps) ==
        parse(text, kOps));
}

TEST_CASE("booleans, integers and dtypes round-trip") {
  check_attr("flag", true, "true");
  check_attr("flag", false, "false");
  check_attr("int", std::int64_t{0}, "0");
  check_attr("int", std::numeric_limits<std::int64_t>::max(), "9223372036854775807");
  check_attr("int", std::numeric_limits<std::int64_t>::min(), "-9223372036854775808");
  check_attr("dtype", DType::boolean, "bool");
  check_attr("dtype", DType::bf16, "bf16");
  check_attr("ints", Ints{}, "[]");
  check_attr("ints", Ints{-1, 0, 7}, "[-1,0,7]");
}

TEST_CASE("reals round-trip bit by bit and never look like integers") {
  check_attr("real", 1.0, "1.0");
  check_attr("real", -0.0, "-0.0");
  check_attr("real", 0.1, "0.1");
  check_attr("real", 1e300, "1e+300");
  check_attr("real", 1e-7, "1e-07");
  check_attr("real", kNaN, "nan");
  check_attr("real", kInf, "inf");
  check_attr("real", -kInf, "-inf");
  check_round_trip(holding("real", std::numeric_limits<double>::denorm_min()));
  check_round_trip(holding("real", std::numeric_limits<double>::max()));
  check_round_trip(holding("real", 1.0 / 3));
  check_round_trip(holding("real", 123456789012345678.0));
}

TEST_CASE("text round-trips whatever it holds") {
  check_attr("text", std::string(), "\"\"");
  check_attr("text", std::string("a b"), "\"a b\"");
  check_attr("text", std::string("say \"hi\""), R"("say \"hi\"")");
  check_attr("text", std::string("back\\slash"), R"("back\\slash")");
  check_attr("text", std::string("two\nlines"), R"("two\nlines")");
  check_attr("text", std::string("\\n is not a newline"), R"("\\n is not a newline")");
  check_round_trip(holding("text", std::string("} , = %1 out {")));
  check_round_trip(holding("text", std::string("tab\t return\r nul\0 end", 19)));
  check_round_trip(holding("text", std::string("\xff\xfe bytes")));
}

TEST_CASE("array literals round-trip in every type") {
  check_attr("array", array({1, 2.5}), "f32[2](1, 2.5)");
  check_attr("array", array({0.1}), "f32[1](0.1)");
  check_attr("array", array({1.0 / 3}, DType::f64), "f64[1](0.3333333333333333)");
  check_attr("array", array({1, 0}, DType::boolean), "bool[2](true, false)");
  check_attr("array", array({2147483647, -2147483648.0}, DType::i32),
             "i32[2](2147483647, -2147483648)");
  check_attr("array", array({1.0078125, 2}, DType::bf16), "bf16[2](1.0078125, 2)");
  check_attr("array", scalar(3), "f32[](3)");
  check_attr("array", zeros({0, 3}), "f32[0,3]()");
  check_attr("array", array({kNaN, kInf, -kInf, -0.0}), "f32[4](nan, inf, -inf, -0)");
}

TEST_CASE("extreme floats round-trip") {
  using F = std::numeric_limits<float>;
  check_round_trip(holding("array", array({F::denorm_min(), F::min(), F::max(),
                                           -F::denorm_min(), 16777217, 1.0f / 3})));
  using D = std::numeric_limits<double>;
  check_round_trip(holding(
      "array", array({D::denorm_min(), D::min(), D::max(), 2.0 / 3}, DType::f64)));
}

TEST_CASE("equal elements print as a splat") {
  check_attr("array", full({2, 3}, 0.5), "f32[2,3](splat 0.5)");
  check_attr("array", full({2}, kNaN), "f32[2](splat nan)");
  check_attr("array", full({2}, -0.0), "f32[2](splat -0)");
  check_attr("array", full({2}, 1, DType::boolean), "bool[2](splat true)");
  check_attr("array", full({3}, -4, DType::i32), "i32[3](splat -4)");
  // 0 and -0 are equal numbers but different bits.
  check_attr("array", array({0.0, -0.0}), "f32[2](0, -0)");
}

TEST_CASE("a view prints its own elements") {
  const Array t = array({2, 2}, {1, 2, 3, 4}).transposed({1, 0});
  CHECK(print(Attr(t)) == "f32[2,2](1, 3, 2, 4)");
}

TEST_CASE("sub-graphs print indented and round-trip, nested too") {
  const auto inner =
      std::make_shared<const Graph>(parse("in %0:f32[2] %1, %2 = twins %0 out %2", kOps));
  const auto middle = std::make_shared<const Graph>(holding("graph", inner));
  const Graph g = holding("graph", middle);
  CHECK(print(g) ==
        "in\n"
        "%0:f32[] = holder {graph={\n"
        "  in\n"
        "  %0:f32[] = holder {graph={\n"
        "    in %0:f32[2]\n"
        "    %1:f32[2], %2:f64[2] = twins %0\n"
        "    out %2\n"
        "  }}\n"
        "  out %0\n"
        "}}\n"
        "out %0\n");
  check_round_trip(g);
}

TEST_CASE("attributes print in the order of their names") {
  GraphParts p;
  p.types = {Type{}};
  p.nodes = {Node{.op = &holder,
                  .outputs = {{0}},
                  .attrs = {{"text", std::string("t")}, {"flag", true}}}};
  p.outputs = {{0}};
  const Graph g(p);
  CHECK(print(g) == "in\n%0:f32[] = holder {flag=true, text=\"t\"}\nout %0\n");
  check_round_trip(g);
}

}  // namespace print_test
