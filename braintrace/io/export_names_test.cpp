// SPDX-License-Identifier: Apache-2.0
// Fields of exported headers: what they are called, and who keeps a name that two want.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "braintrace/io/export_header.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/testing/run_source.h"

namespace export_names_test {

using namespace braintrace;
using namespace braintrace::testing;
using Role = ExportPort::Role;

namespace {

// One weight called `name` learns: loss = (w x)^2.
std::string one_weight(const std::string& name, ExportLanguage language,
                       const std::string& header = "p", const std::string& x = "x") {
  const auto b = Builder::create();
  const Value in = b->input({DType::f32, {}}), w = b->input({DType::f32, {}});
  const Value y = tanh(w * in);
  ExportSpec spec{.name = header};
  spec.inputs = {{x, Role::argument, scalar(3)}, {name, Role::parameter, scalar(0.5)}};
  spec.outputs = {{"loss", Role::loss}, {name, Role::gradient}};
  return export_header(b->finish(std::vector<Value>{y * y, 2 * y * in}), spec, language);
}

std::string main_of(ExportLanguage language, const std::string& field) {
  const bool cpp = language == ExportLanguage::cpp17;
  return fmt::format(
      "#include <stdio.h>\nint main(void) {{\n  {}\n  printf(\"%.9g\", (double){});\n  "
      "return 0;\n}}\n",
      cpp ? "p::Learner l; l.step();" : "p_Learner l; p_init(&l); p_step(&l);", field);
}

}  // namespace

TEST_CASE("names become distinct identifiers") {
  const auto b = Builder::create();
  Values in;
  for (int i = 0; i < 4; ++i) in.push_back(b->input({DType::f32, {}}));
  ExportSpec spec{.name = "p"};
  spec.inputs = {{"a/b", Role::argument, scalar(1)},
                 {"a b", Role::state, scalar(2)},
                 {"1x", Role::argument, scalar(3)},
                 {"float", Role::parameter, scalar(4)}};
  spec.outputs = {{"a_b", Role::output}};
  const std::string source =
      "#include <cstdio>\n" +
      export_header(b->finish(std::vector<Value>{in[0] + in[1] + in[2] + in[3]}), spec) +
      "int main() {\n  p::Learner l; l.step();\n" +
      "  std::printf(\"%g %g %g %g %g\", double(l.a_b_2[0]), double(l.a_b_3[0]), "
      "double(l._1x[0]), double(l.float_2[0]), double(l.a_b[0]));\n}\n";
  CHECK(run_source(source, ExportLanguage::cpp17) == std::vector<double>{1, 2, 3, 4, 10});
}

TEST_CASE("the loss keeps its name whatever parameters and arguments are called") {
  for (const auto language : {ExportLanguage::cpp17, ExportLanguage::c99}) {
    const std::string main = main_of(language, "l.loss[0]");
    const std::vector<double> usual =
        run_source(one_weight("w", language) + main, language);
    CHECK(run_source(one_weight("loss", language) + main, language) == usual);
    CHECK(run_source(one_weight("w", language, "p", "loss") + main, language) == usual);
  }
}

TEST_CASE("a gradient keeps its name beside a parameter called like it") {
  const auto b = Builder::create();
  const Value w = b->input({DType::f32, {}}), other = b->input({DType::f32, {}});
  ExportSpec spec{.name = "p"};
  spec.inputs = {{"w", Role::parameter}, {"grad_w", Role::parameter}};
  spec.outputs = {{"w", Role::gradient}};
  CHECK(export_header(b->finish(std::vector<Value>{w * other}), spec)
            .find("float grad_w[1] = {};  // gradient") != std::string::npos);
}

TEST_CASE("headers compile whatever word a parameter is called") {
  for (const auto language : {ExportLanguage::cpp17, ExportLanguage::c99}) {
    std::string source;
    int n = 0;
    for (const char* word :
         {"restrict", "_Bool",    "constexpr", "alignas", "asm",         "nullptr",
          "wchar_t",  "co_await", "char8_t",   "typeof",  "int32_t",     "uint32_t",
          "NULL",     "INFINITY", "I",         "bt_tanh", "bt_tanh_f32", "static_assert",
          "self",     "p",        "exp",       "memcpy"})
      source += one_weight(word, language, n++ == 0 ? "p" : fmt::format("p{}", n));
    source += main_of(language, "l.learning_rate");
    CHECK(run_source(source, language) == std::vector<double>{0});
  }
}

TEST_CASE("names of the C library are refused as namespaces, not as prefixes") {
  for (const char* name : {"exp", "memcpy", "sinf", "main", "int32_t"}) {
    CHECK_THROWS_WITH_AS(one_weight("w", ExportLanguage::cpp17, name),
                         doctest::Contains("is a name of the C library"), UserError);
    CHECK_NOTHROW(one_weight("w", ExportLanguage::c99, name));
  }
  for (const char* name : {"restrict", "_Bool", "co_await"})
    CHECK_THROWS_WITH_AS(one_weight("w", ExportLanguage::c99, name),
                         doctest::Contains("is a keyword"), UserError);
}

}  // namespace export_names_test
