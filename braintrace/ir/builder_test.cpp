// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/builder.h"

#include <string>

#include <doctest/doctest.h>

#include "braintrace/ir/evaluate.h"
#include "braintrace/ir/print.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/ops.h"

namespace builder_test {

using namespace braintrace;

namespace {

const Type kVec{DType::f32, {2}};

template <class F>
std::string message_of(F f, ErrorKind kind) {
  try {
    f();
  } catch (const UserError& e) {
    CHECK(e.kind() == kind);
    return e.what();
  }
  return "(no error)";
}

std::string one_op_program(const Type& input, Value (*f)(const Value&)) {
  const auto b = Builder::create();
  const Value out = f(b->input(input));
  return print(b->finish({{out}}));
}

}  // namespace

TEST_CASE("an op on concrete values runs at once") {
  const Value y = tanh(array({0, 1000}));
  REQUIRE(y.is_concrete());
  CHECK(y.array() == array({0, 1}));
  CHECK(y.type() == kVec);
}

TEST_CASE("an op on a symbolic value is recorded, with the same meaning") {
  const auto b = Builder::create();
  const Value x = b->input(kVec);
  const Value y = add(tanh(x), x);
  CHECK(!y.is_concrete());
  CHECK(y.type() == kVec);
  const Graph g = b->finish({{y}});
  CHECK(print(g) == "in %0:f32[2]\n%1:f32[2] = tanh %0\n%2:f32[2] = add %1 %0\nout %2\n");
  const Array in = array({0.25, -3});
  CHECK(eval_graph(g, {{in}})[0] == add(tanh(in), in).array());
}

TEST_CASE("concrete operands of a recorded op become constants") {
  CHECK(one_op_program(kVec,
                       [](const Value& x) {
                         return add(x, array({1, 2}));
                       }) ==
        "in %0:f32[2]\n"
        "%1:f32[2] = constant {value=f32[2](1, 2)}\n"
        "%2:f32[2] = add %0 %1\n"
        "out %2\n");
}

TEST_CASE("a program may return its input or a concrete value") {
  const auto b = Builder::create();
  const Value x = b->input(kVec);
  const Graph g = b->finish({{x, Value(scalar(3))}});
  CHECK(print(g) == "in %0:f32[2]\n%1:f32[] = constant {value=f32[](3)}\nout %0 %1\n");
}

TEST_CASE("inputs declared late still come first") {
  const auto b = Builder::create();
  const Value x = b->input(kVec);
  const Value y = tanh(x);
  const Value z = b->input(kVec);
  const Graph g = b->finish({{add(y, z)}});
  CHECK(print(g) ==
        "in %0:f32[2] %1:f32[2]\n%2:f32[2] = tanh %0\n%3:f32[2] = add %2 %1\nout %3\n");
  CHECK_NOTHROW(verify(g));
}

TEST_CASE("a bare number takes the type of the value it meets") {
  const auto type_with = [](const Type& t, const Arg& number) {
    const auto b = Builder::create();
    return to_string(add(b->input(t), number).type());
  };
  CHECK(type_with({DType::f32, {2}}, 0.5) == "f32[2]");
  CHECK(type_with({DType::f64, {2}}, 0.5) == "f64[2]");
  CHECK(type_with({DType::f32, {}}, 2) == "f32[]");
  CHECK(type_with({DType::i32, {}}, 2) == "i32[]");
  CHECK(type_with({DType::i32, {}}, 0.5) == "f32[]");
  CHECK(type_with({DType::boolean, {}}, 1) == "i32[]");
  // An Array is no bare number: its type counts.
  CHECK(type_with({DType::f32, {}}, scalar(1, DType::f64)) == "f64[]");
  CHECK(to_string(add(1, 2).type()) == "i32[]");
  CHECK(to_string(add(1, 0.5).type()) == "f32[]");
}

TEST_CASE("a bare number keeps its precision in f64") {
  CHECK(add(scalar(0, DType::f64), 0.1).array().item() == 0.1);
}

TEST_CASE("reading the number of a symbolic value is a UserError") {
  const auto b = Builder::create();
  const Value x = b->input(kVec);
  CHECK(message_of([&] { x.array(); }, ErrorKind::type)
            .starts_with("Value::array: a symbolic value of type f32[2] has no number"));
}

TEST_CASE("dim counts negative axes from the end") {
  const Value v = zeros({2, 3});
  CHECK(v.dim(-1) == 3);
  CHECK(v.dim(0) == 2);
  CHECK(message_of([&] { v.dim(2); }, ErrorKind::value) ==
        "Value::dim: axis 2 is out of range for rank 2");
}

TEST_CASE("an outer value used inside is captured once, as an extra input") {
  const auto outer = Builder::create();
  const Value a = outer->input(kVec);
  const Value b = tanh(a);
  const auto inner = Builder::create();
  const Value x = inner->input({DType::f32, {}});
  const Value shared = add(a, a);  // of outer values only: recorded outside
  const Value y = add(add(add(x, b), add(x, a)), add(x, b));
  const Graph body = inner->finish({{y}});
  REQUIRE(inner->captured().size() == 2);
  CHECK(inner->captured()[0].builder() == outer);
  CHECK(inner->captured()[0].id() == b.id());
  CHECK(inner->captured()[1].id() == a.id());
  CHECK(body.input_types() == std::vector<Type>{{DType::f32, {}}, kVec, kVec});
  CHECK_NOTHROW(verify(body));
  CHECK(outer->is_open());
  CHECK(shared.builder() == outer);
}

TEST_CASE("an outer value returned from inside is captured too") {
  const auto outer = Builder::create();
  const Value a = outer->input(kVec);
  const auto inner = Builder::create();
  const Graph body = inner->finish({{a}});
  CHECK(print(body) == "in %0:f32[2]\nout %0\n");
  REQUIRE(inner->captured().size() == 1);
}

TEST_CASE("capture reaches through several levels") {
  const auto top = Builder::create();
  const Value a = top->input(kVec);
  const auto middle = Builder::create();
  const Value b = middle->input(kVec);
  const auto deep = Builder::create();
  const Value c = deep->input(kVec);
  const Value y = add(add(a, b), c);
  CHECK(y.builder() == deep);
  deep->finish({{y}});
  // a + b belongs to the middle builder: only it is captured by the deepest.
  REQUIRE(deep->captured().size() == 1);
  CHECK(deep->captured()[0].builder() == middle);
  middle->finish({{b}});
  REQUIRE(middle->captured().size() == 1);
  CHECK(middle->captured()[0].builder() == top);
}

TEST_CASE("a value is dead once its trace has ended") {
  const auto b = Builder::create();
  const Value x = b->input(kVec);
  b->finish({{x}});
  CHECK(message_of([&] { tanh(x); }, ErrorKind::runtime)
            .starts_with("a value of type f32[2] is used after its trace has ended"));
  const auto other = Builder::create();
  const Value y = other->input(kVec);
  CHECK(message_of([&] { add(y, x); }, ErrorKind::runtime)
            .starts_with("a value of type f32[2] is used after its trace has ended"));
  CHECK(message_of([&] { other->finish({{x}}); }, ErrorKind::runtime)
            .starts_with("a value of type f32[2] is used after its trace has ended"));
  CHECK(x.type() == kVec);
}

TEST_CASE("a closed builder records nothing more") {
  const auto b = Builder::create();
  const Value x = b->input(kVec);
  b->finish({{x}});
  CHECK_THROWS_AS(b->input(kVec), InternalError);
  CHECK_THROWS_AS(b->constant(scalar(1)), InternalError);
  CHECK_THROWS_AS(b->finish({}), InternalError);
}

TEST_CASE("an error names the op, the rule, the values and the line of the call") {
  const auto b = Builder::create();
  const Value x = b->input(kVec);
  const Value k = b->input({DType::boolean, {2}});
  const int line = __LINE__ + 1;
  const auto shapes = message_of([&] { add(x, array({1, 2, 3})); }, ErrorKind::value);
  CHECK(shapes == "add: shapes [2] and [3] do not broadcast (at builder_test.cpp:" +
                      std::to_string(line) + ")");
  const int second = __LINE__ + 1;
  const auto types = message_of([&] { add(k, k); }, ErrorKind::type);
  CHECK(types == "add: needs numbers, got bool[2] (at builder_test.cpp:" +
                     std::to_string(second) + ")");
  // Eager and traced errors read the same.
  const int third = __LINE__ + 2;
  const Array e = ones({2}, DType::boolean);
  const auto eager = message_of([&] { add(e, e); }, ErrorKind::type);
  CHECK(eager == "add: needs numbers, got bool[2] (at builder_test.cpp:" +
                     std::to_string(third) + ")");
}

TEST_CASE("recorded nodes remember the line they come from") {
  const auto b = Builder::create();
  const Value x = b->input(kVec);
  const int line = __LINE__ + 1;
  const Value y = tanh(x);
  const Graph g = b->finish({{y}});
  CHECK(to_string(g.nodes()[0].loc) == "builder_test.cpp:" + std::to_string(line));
}

TEST_CASE("a refused op leaves the trace usable") {
  const auto b = Builder::create();
  const Value x = b->input(kVec);
  CHECK_THROWS_AS(add(x, array({1, 2, 3})), UserError);
  const Value y = tanh(x);
  CHECK_NOTHROW(verify(b->finish({{y}})));
}

TEST_CASE("producer and literal look through recorded values") {
  const auto b = Builder::create();
  const Value x = b->input(kVec);
  const Value c = b->constant(array({4, 5}));
  const Value y = tanh(x);
  CHECK(producer(x) == nullptr);
  CHECK(producer(Value(scalar(1))) == nullptr);
  REQUIRE(producer(y) != nullptr);
  CHECK(producer(y)->op == &tanh_op);
  CHECK(literal(c) == array({4, 5}));
  CHECK(literal(Value(scalar(1))) == scalar(1));
  CHECK(!literal(x));
  CHECK(!literal(y));
}

TEST_CASE("inline_graph repeats a program on other values") {
  const auto b = Builder::create();
  const Value x = b->input(kVec);
  const Graph g = b->finish({{tanh(x), x}});
  const std::vector<Value> eager = inline_graph(g, {{Value(array({0, 1000}))}});
  CHECK(eager.at(0).array() == array({0, 1}));
  CHECK(eager.at(1).array() == array({0, 1000}));

  const auto c = Builder::create();
  const Value z = tanh(c->input(kVec));
  const std::vector<Value> traced = inline_graph(g, {{z}});
  CHECK(print(c->finish(traced)) ==
        "in %0:f32[2]\n%1:f32[2] = tanh %0\n%2:f32[2] = tanh %1\nout %2 %1\n");
  CHECK(message_of([&] { inline_graph(g, {}); }, ErrorKind::value) ==
        "inline_graph: the program has 1 inputs, got 0");
}

}  // namespace builder_test
