// SPDX-License-Identifier: Apache-2.0
#include "braintrace/view/code.h"

#include <doctest/doctest.h>

#include "braintrace/ir/print.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/ops/registry.h"

namespace code_test {

using namespace braintrace;

namespace {

std::string code_of(const char* program, CodeOptions options = {}) {
  return to_code(parse(program), options);
}

}  // namespace

TEST_CASE("single-use values are written in place with the parentheses they need") {
  CHECK(code_of(R"(in %0:f32[2] %1:f32[2] %2:f32[2]
%3:f32[2] = add %1 %2
%4:f32[2] = sub %0 %3
%5:f32[2] = mul %4 %1
%6:f32[2] = sub %5 %2
out %6)") == R"(auto f(auto a0,    // f32[2]
       auto a1,    // f32[2]
       auto a2) {  // f32[2]
  auto v0 = (a0 - (a1 + a2)) * a1 - a2;  // f32[2]
  return v0;
}
)");
}

TEST_CASE("operators of equal rank keep the order of evaluation") {
  const std::string left = code_of(
      "in %0:f32[] %1:f32[] %2:f32[] %3:f32[] = add %0 %1 %4:f32[] = add %3 %2 out %4");
  const std::string right = code_of(
      "in %0:f32[] %1:f32[] %2:f32[] %3:f32[] = add %1 %2 %4:f32[] = add %0 %3 out %4");
  CHECK(left.find("= a0 + a1 + a2;") != std::string::npos);
  CHECK(right.find("= a0 + (a1 + a2);") != std::string::npos);
}

TEST_CASE("a minus sign never meets another") {
  const std::string twice =
      code_of("in %0:f32[] %1:f32[] = neg %0 %2:f32[] = neg %1 out %2");
  const std::string literal = code_of(
      "in %0:f32[] %1:f32[] = constant {value=f32[](-1)} %2:f32[] = sub %0 %1 out %2");
  CHECK(twice.find("= -(-a0);") != std::string::npos);
  CHECK(literal.find("= a0 - (-1);") != std::string::npos);
}

TEST_CASE("a value used twice gets a name, a long expression its own line") {
  const char* program = "in %0:f32[2] %1:f32[2] = tanh %0 %2:f32[2] = mul %1 %1 out %2";
  CHECK(code_of(program) == R"(auto f(auto a0) {  // f32[2]
  auto v0 = tanh(a0);  // f32[2]
  auto v1 = v0 * v0;  // f32[2]
  return v1;
}
)");
  const std::string spread = code_of(
      "in %0:f32[2] %1:f32[2] = tanh %0 %2:f32[2] = exp %1 out %2", {.inline_width = 0});
  CHECK(spread.find("auto v0 = tanh(a0);") != std::string::npos);
  CHECK(spread.find("auto v1 = exp(v0);") != std::string::npos);
}

TEST_CASE("sub-programs become lambdas with names of their own") {
  CHECK(code_of(R"(in %0:f32[2] %1:f32[3,2]
%2:f32[2] = scan {body={
  in %0:f32[2] %1:f32[2]
  %2:f32[2] = mul %0 %1
  %3:f32[2] = tanh %2
  out %3
}, length=3, num_carry=1, num_consts=0, reverse=false} %0 %1
out %2)") == R"(auto f(auto a0,    // f32[2]
       auto a1) {  // f32[3,2]
  auto v1 = scan([=](auto a2, auto a3) {
    auto v0 = tanh(a2 * a3);  // f32[2]
    return v0;
  }, 3, a0, a1);  // f32[2]
  return v1;
}
)");
}

TEST_CASE("several outputs are taken apart and returned together") {
  const std::string text = code_of(R"(in %0:bool[] %1:f32[]
%2:f32[], %3:f32[] = cond {
  false_branch={ in %0:f32[] %1:f32[] = neg %0 out %1 %0 },
  true_branch={ in %0:f32[] out %0 %0 }} %0 %1
out %3 %2)");
  CHECK(text.find("auto [v1, v2] = cond(a0, [=](auto a2) {") != std::string::npos);
  CHECK(text.find("return {v2, v1};") != std::string::npos);
}

TEST_CASE("wished names become unique words") {
  const CodeOptions options{.names = {{ValueId{0}, "rnn/h"}, {ValueId{1}, "rnn h"}}};
  const std::string text =
      code_of("in %0:f32[] %1:f32[] %2:f32[] = add %0 %1 out %2", options);
  CHECK(text.find("auto v0 = rnn_h + rnn_h_2;") != std::string::npos);
}

TEST_CASE("constants are numbers beside operators and short everywhere else") {
  const std::string all = code_of(R"(in %0:f32[3]
%1:f32[3] = constant {value=f32[3](splat 2)}
%2:f32[3] = mul %1 %0
out %2)");
  CHECK(all.find("= 2 * a0;") != std::string::npos);
  const std::string list = code_of(R"(in %0:f32[5]
%1:f32[5] = constant {value=f32[5](1, 2, 3, 4, 5)}
%2:f32[5] = max %0 %1
out %2)");
  CHECK(list.find("max(a0, f32[5]{1, 2, 3, 4, ...})") != std::string::npos);
}

TEST_CASE("a step reads as its equations, with the names of its states") {
  const auto model =
      nn::build_model(R"({"kind": "single_rnn", "n_in": 2, "n_rec": 3, "n_out": 1})");
  init_all_states(*model);
  CHECK(to_code(trace_step(*model, std::vector<Array>{zeros({2})})) ==
        R"(auto step(auto x0,                   // f32[2]
          auto rnn_h,                // f32[3]  HiddenState
          auto rnn_W_weight_bias,    // f32[3]  ParamState
          auto rnn_W_weight_weight,  // f32[5,3]  ParamState
          auto out_weight_bias,      // f32[1]  ParamState
          auto out_weight_weight) {  // f32[3,1]  ParamState
  auto v0 = matmul(concatenate(0, x0, rnn_h), rnn_W_weight_weight, rnn_W_weight_bias);  // f32[3]
  auto rnn_h_next = v0 <= 0 ? 0 : v0;  // f32[3]
  auto y0 = matmul(rnn_h_next, out_weight_weight, out_weight_bias);  // f32[1]
  return {y0, rnn_h_next};
}
)");
}

TEST_CASE("every op prints without a left-over of its template") {
  for (const OpDef* op : op_table()) {
    CAPTURE(op->name);
    CHECK_FALSE(op->code.empty());
    for (std::size_t i = 0; i + 1 < op->code.size(); ++i)
      if (op->code[i] == '$') {
        const char next = op->code[i + 1];
        CHECK((next == '*' || (next >= '0' && next <= '9')));
      }
    std::size_t at = op->code.find('{');
    for (; at != std::string_view::npos; at = op->code.find('{', at + 1)) {
      const auto name = op->code.substr(at + 1, op->code.find('}', at) - at - 1);
      const bool declared =
          std::any_of(op->attrs.begin(), op->attrs.end(),
                      [&](const AttrSpec& a) { return a.name == name; });
      CHECK_MESSAGE(declared, name);
    }
  }
}

}  // namespace code_test
