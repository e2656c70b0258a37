// SPDX-License-Identifier: Apache-2.0
// Exported headers compile without warnings and compute what the interpreter computes.
#include "braintrace/io/export_header.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "braintrace/array/rng.h"
#include "braintrace/passes/pipeline.h"
#include "braintrace/run/interpreter.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/derivatives.h"
#include "braintrace/testing/random_graph.h"
#include "braintrace/testing/run_source.h"

namespace export_header_test {

using namespace braintrace;
using namespace braintrace::testing;
using Role = ExportPort::Role;

namespace {

std::string print_field(const std::string& field, const Type& t) {
  return fmt::format(
      "  for (int i = 0; i < {}; ++i) printf(\"%.17g\\n\", (double){}[i]);\n", t.size(),
      field);
}

Array take_array(const std::vector<double>& numbers, std::size_t& at, const Type& t) {
  const auto n = static_cast<std::ptrdiff_t>(t.size());
  REQUIRE(at + static_cast<std::size_t>(n) <= numbers.size());
  const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(at);
  at += static_cast<std::size_t>(n);
  return array(t.shape, std::vector<double>(begin, begin + n), t.dtype);
}

// Ports for a program without learning: x0, x1 .. with values, y0, y1 ..
ExportSpec plain_spec(const std::string& name, const Program& p) {
  ExportSpec spec{.name = name};
  for (std::size_t i = 0; i < p.inputs.size(); ++i)
    spec.inputs.push_back({fmt::format("x{}", i), Role::argument, p.inputs[i]});
  for (std::size_t i = 0; i < p.graph.outputs().size(); ++i)
    spec.outputs.push_back({fmt::format("y{}", i), Role::output});
  return spec;
}

// All programs in one executable, compared with the interpreter.
void check_exports(const std::vector<Program>& programs, ExportLanguage language) {
  const bool cpp = language == ExportLanguage::cpp17;
  std::string source = cpp ? "#include <cstdio>\n" : "#include <stdio.h>\n", body;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const std::string name = fmt::format("p{}", i);
    source += export_header(programs[i].graph, plain_spec(name, programs[i]), language);
    body +=
        cpp ? fmt::format("  static {0}::Learner l{0}; l{0}.step();\n", name)
            : fmt::format(
                  "  static {0}_Learner l{0}; {0}_init(&l{0}); {0}_step(&l{0});\n", name);
    const std::vector<Type> types = programs[i].graph.output_types();
    for (std::size_t o = 0; o < types.size(); ++o)
      body += print_field(fmt::format("l{}.y{}", name, o), types[o]);
  }
  const std::vector<double> numbers =
      run_source(source + "int main(void) {\n" + body + "  return 0;\n}\n", language);
  std::size_t at = 0;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const std::vector<Array> want = interpret(programs[i].graph, programs[i].inputs);
    for (std::size_t o = 0; o < want.size(); ++o)
      CHECK_NOTHROW(check_close(fmt::format("program {} output {}", i, o),
                                take_array(numbers, at, type_of(want[o])), want[o],
                                value_tolerance(want[o].dtype())));
  }
  CHECK(at == numbers.size());
}

Graph lowered(const Graph& g) {
  PassRunner run;
  return lower(g, {.if_convert = true, .unroll = {.max_length = 64}}, run);
}

bool can_be_exported(const Program& p) {
  try {
    export_header(p.graph, plain_spec("p", p));
    return true;
  } catch (const UserError& e) {
    CHECK(e.kind() == ErrorKind::not_supported);
    return false;
  }
}

Program program(const std::function<Values(const Values&)>& f, std::vector<Array> in) {
  const Graph g = traced(f, in);
  return {g, std::move(in)};
}

// A random array of the element type a sample is made for.
Array random(Shape s, DType d, std::uint64_t seed) {
  return uniform(std::move(s), -2, 2, seed).astype(d);
}

// Products, moves and sums in all forms.
std::vector<Program> loop_samples(DType d) {
  const auto u = [&](Shape s, std::uint64_t seed) {
    return random(std::move(s), d, seed);
  };
  std::vector<Program> p;
  p.push_back(program(
      [](const Values& v) {
        return Values{matmul(v[0], v[1], v[2]), dot(v[0], v[1]), sum(v[0]),
                      transpose(v[1])};
      },
      {u({3, 4}, 1), u({4, 5}, 2), u({5}, 3)}));
  p.push_back(program(
      [](const Values& v) {
        return Values{matmul(v[0], v[1]), v[0] * 2 + 1, reshape(v[1], {2, 6}) * 3,
                      expand_dims(v[0], 1) * v[1]};
      },
      {u({4}, 1), u({4, 3}, 2)}));
  p.push_back(program(
      [](const Values& v) {
        return Values{conv_general(v[0], v[1],
                                   {.strides = {2, 1},
                                    .pad_low = {1, 0},
                                    .pad_high = {1, 2},
                                    .input_dilation = {1, 2},
                                    .kernel_dilation = {2, 1},
                                    .groups = 2})};
      },
      {u({2, 5, 4, 4}, 1), u({2, 3, 2, 6}, 2)}));
  p.push_back(program(
      [](const Values& v) {
        return Values{concat({v[0], v[1]}, 1),
                      slice(v[0], {1, 0}, {2, 2}, {1, 2}),
                      pad(v[0], {1, 0}, {0, 2}, 7, {1, 0}),
                      max(v[0], ReduceOptions{.axes = {0}}),
                      min(v[0], ReduceOptions{.axes = {1}}),
                      prod(v[0], {.axes = {0, 1}}),
                      sum(v[0], {.axes = {0}, .keepdims = true}) * v[0]};
      },
      {u({3, 3}, 1), u({3, 2}, 2)}));
  p.push_back(program(
      [](const Values& v) {
        return Values{take(v[0], v[1], 0), take(v[0], v[1], 1),
                      scatter_add(v[0], v[1], v[2], 0)};
      },
      {u({3, 4}, 1), array({2, 0, 2}, DType::i32), u({3, 4}, 3)}));
  p.push_back(program(
      [](const Values& v) {
        const SparseStructure links = {3, 4, {0, 2, 2, 1}, {1, 0, 3, 1}};
        return Values{sparse_matmul(v[0], v[1], links, v[2]),
                      sparse_matmul(v[0], v[1], links)};
      },
      {u({2, 3}, 1), u({4}, 2), u({4}, 3)}));
  return p;
}

Program float_sample(const Array& input) {
  return program(
      [](const Values& v) {
        const Value x = v[0];
        return Values{tanh(x),
                      sigmoid(x),
                      softplus(x),
                      exp(x),
                      expm1(x),
                      sqrt(abs(x)),
                      rsqrt(abs(x)),
                      log(abs(x)),
                      log1p(abs(x)),
                      erf(x),
                      sin(x),
                      cos(x),
                      floor(x),
                      sign(x),
                      -x,
                      abs(x),
                      pow(abs(x), x),
                      clamp(x, -1, 1),
                      maximum(x, 0.5),
                      minimum(x, 0.5),
                      select(greater(x, 0), x, 2 * x),
                      x / 3,
                      astype(x, DType::i32),
                      astype(x, DType::boolean),
                      equal(x, 0)};
      },
      {input});
}

Program integer_sample() {
  return program(
      [](const Values& v) {
        const Value i = v[0], b = v[1];
        return Values{i + i,
                      i * i,
                      i - 5,
                      -i,
                      abs(i),
                      maximum(i, 3),
                      minimum(i, 3),
                      sign(i),
                      clamp(i, -1, 4),
                      sum(i),
                      prod(i),
                      max(i),
                      dot(i, i),
                      astype(i, DType::f32),
                      logical_and(b, greater(i, 0)),
                      logical_or(b, b),
                      logical_xor(b, logical_not(b)),
                      logical_not(b),
                      not_equal(i, 3)};
      },
      {array({-2147483648.0, 2147483647, 3, 0}, DType::i32),
       array({0, 1, 1, 0}, DType::boolean)});
}

std::vector<Program> samples(DType d) {
  std::vector<Program> p = loop_samples(d);
  p.push_back(float_sample(random({7}, d, 1)));
  const double inf = std::numeric_limits<double>::infinity();
  p.push_back(float_sample(array({std::nan(""), inf, -inf, -0.0, 0, 1e30, -1e30}, d)));
  p.push_back(integer_sample());
  return p;
}

}  // namespace

TEST_CASE("exported C++ of every lowering agrees with the interpreter") {
  check_exports(samples(DType::f64), ExportLanguage::cpp17);
  check_exports(samples(DType::f32), ExportLanguage::cpp17);
}

TEST_CASE("exported C of every lowering agrees with the interpreter") {
  check_exports(samples(DType::f64), ExportLanguage::c99);
  check_exports(samples(DType::f32), ExportLanguage::c99);
}

TEST_CASE("exported random programs agree with the interpreter") {
  std::vector<Program> programs;
  int refused = 0;
  for (std::uint64_t seed = 0; programs.size() < 40 && seed < 600; ++seed) {
    Program p = random_graph(seed);
    p.graph = lowered(p.graph);
    if (can_be_exported(p))
      programs.push_back(std::move(p));
    else
      ++refused;
  }
  REQUIRE(programs.size() == 40);
  CHECK(refused > 0);
  check_exports(programs, ExportLanguage::cpp17);
}

TEST_CASE("element by element nodes of one shape share a loop and memory") {
  const Program p = program(
      [](const Values& v) {
        const Value a = dot(v[0], v[1]);
        const Value t = tanh(a);
        const Value s = sigmoid(a);
        return Values{t * s + v[2]};
      },
      {uniform({4}, -1, 1), uniform({4, 3}, -1, 1, 2), uniform({3}, -1, 1, 3)});
  const std::string text = export_header(p.graph, plain_spec("p", p));
  CHECK(text.find("{  // tanh, sigmoid, mul, add") != std::string::npos);
  // The product is the only value that waits in memory: three doubles.
  CHECK(text.find("double scratch_f64[3]") != std::string::npos);
}

TEST_CASE("states that change places are not mixed up") {
  const Program p = program(
      [](const Values& v) {
        return Values{v[1], v[0], v[2], v[0] + v[1]};
      },
      {array({1, 2}), array({3, 4}), array({5, 6})});
  ExportSpec spec{.name = "swap"};
  spec.inputs = {{"a", Role::state, p.inputs[0]},
                 {"b", Role::state, p.inputs[1]},
                 {"c", Role::state, p.inputs[2]}};
  spec.outputs = {
      {"a", Role::state}, {"b", Role::state}, {"c", Role::state}, {"y", Role::output}};
  const std::string source =
      "#include <cstdio>\n" + export_header(p.graph, spec) +
      "int main() {\n  swap::Learner l; l.step(); l.step(); l.step();\n" +
      "  const float all[] = {l.a[0], l.a[1], l.b[0], l.b[1], l.c[1], l.y[0]};\n"
      "  for (float v : all) std::printf(\"%g \", double(v));\n}\n";
  CHECK(run_source(source, ExportLanguage::cpp17) ==
        std::vector<double>{3, 4, 1, 2, 6, 4});
}

TEST_CASE("a state that is read for the last time is replaced in place") {
  const Program p = program(
      [](const Values& v) {
        const Value sum = v[0] + v[1];
        return Values{sum, v[0] - v[1], transpose(v[2]) + v[2]};
      },
      {array({1, 2}), array({3, 4}), array({2, 2}, {1, 2, 3, 4})});
  ExportSpec spec{.name = "p"};
  spec.inputs = {{"a", Role::state, p.inputs[0]},
                 {"b", Role::state, p.inputs[1]},
                 {"c", Role::trace, p.inputs[2]}};
  spec.outputs = {{"a", Role::state}, {"b", Role::state}, {"c", Role::trace}};
  const std::string text = export_header(p.graph, spec);
  CHECK(text.find("// next") == std::string::npos);
  const std::string source =
      "#include <cstdio>\n" + text +
      "int main() {\n  p::Learner l; l.step(); l.step();\n" +
      "  const float all[] = {l.a[0], l.a[1], l.b[0], l.b[1], l.c[0], l.c[1], l.c[2]};\n"
      "  for (float v : all) std::printf(\"%g \", double(v));\n}\n";
  CHECK(run_source(source, ExportLanguage::cpp17) ==
        std::vector<double>{2, 4, 6, 8, 4, 10, 10});
}

TEST_CASE("an index outside its axis is counted by the exported step") {
  const Program p = program([](const Values& v) { return Values{take(v[0], v[1], 0)}; },
                            {array({1, 2, 3}), array({0, 1}, DType::i32)});
  ExportSpec spec = plain_spec("p", p);
  const std::string source =
      "#include <cstdio>\n" + export_header(p.graph, spec) +
      "int main() {\n  p::Learner l; l.x1[0] = -1; l.x1[1] = 7; l.step();\n" +
      "  std::printf(\"%g %g %d\", double(l.y0[0]), double(l.y0[1]), "
      "l.index_errors);\n}\n";
  CHECK(run_source(source, ExportLanguage::cpp17) == std::vector<double>{1, 3, 2});
}

TEST_CASE("ports that do not fit the program are refused by name") {
  const Program p = program([](const Values& v) { return Values{v[0] * v[1]}; },
                            {array({1, 2}), array({3, 4})});
  const auto complaint = [&](std::vector<ExportPort> in, std::vector<ExportPort> out,
                             std::string name = "p") {
    try {
      export_header(p.graph, {name, std::move(in), std::move(out)});
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const ExportPort x{"x", Role::argument}, w{"w", Role::parameter}, y{"y", Role::output};
  CHECK(complaint({x, w}, {y}) == "");
  CHECK(complaint({x}, {y}).find("2 inputs and 1 outputs") != std::string::npos);
  CHECK(complaint({x, y}, {y}).find("output 'y' cannot be an input") !=
        std::string::npos);
  CHECK(complaint({x, w}, {x}).find("argument 'x' cannot be an output") !=
        std::string::npos);
  CHECK(complaint({x, x}, {y}).find("stands twice") != std::string::npos);
  CHECK(complaint({x, w}, {{"h", Role::state}}).find("no input of its name") !=
        std::string::npos);
  CHECK(complaint({x, {"w", Role::parameter, zeros({3})}}, {y}).find("starts as") !=
        std::string::npos);
  CHECK(complaint({x, w}, {y}, "a b").find("must be an identifier") != std::string::npos);
  CHECK(complaint({x, w}, {y}, "class").find("'class' is a keyword") !=
        std::string::npos);
}

TEST_CASE("zeros are not written one by one") {
  const Program p =
      program([](const Values& v) { return Values{v[0] * Value(zeros({5000})) + v[1]}; },
              {zeros({5000}), zeros({5000})});
  ExportSpec spec = plain_spec("p", p);
  for (const auto language : {ExportLanguage::cpp17, ExportLanguage::c99})
    CHECK(export_header(p.graph, spec, language).size() < 5000);
}

TEST_CASE("what cannot be exported is refused with the name of the op") {
  const Program p =
      program([](const Values& v) { return Values{random_uniform(v[0], {2})}; },
              {key_array(rng_key(1))});
  try {
    export_header(p.graph, plain_spec("p", p));
    FAIL("random numbers were exported");
  } catch (const UserError& e) {
    CHECK(e.kind() == ErrorKind::not_supported);
    CHECK(std::string(e.what()).find("op random_uniform") != std::string::npos);
  }
}

}  // namespace export_header_test
