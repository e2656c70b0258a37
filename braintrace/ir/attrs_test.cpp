// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/attrs.h"

#include <limits>

#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"

namespace attrs_test {

using namespace braintrace;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

GraphPtr sub_graph(std::string_view text) {
  return std::make_shared<const Graph>(parse(text));
}

}  // namespace

TEST_CASE("attributes are sorted by name, whatever the order they are set in") {
  Attrs a = {{"b", std::int64_t{2}}, {"a", true}};
  a.set("c", 1.5);
  REQUIRE(a.entries().size() == 3);
  CHECK(a.entries()[0].first == "a");
  CHECK(a.entries()[1].first == "b");
  CHECK(a.entries()[2].first == "c");
  CHECK(a == Attrs{{"c", 1.5}, {"b", std::int64_t{2}}, {"a", true}});
}

TEST_CASE("setting a name again replaces its value") {
  Attrs a = {{"n", std::int64_t{1}}};
  a.set("n", std::int64_t{2});
  CHECK(a.entries().size() == 1);
  CHECK(a.integer("n") == 2);
}

TEST_CASE("each getter returns its kind") {
  const GraphPtr g = sub_graph("in out");
  const Attrs a = {{"flag", true},          {"int", std::int64_t{-3}},
                   {"real", 0.5},           {"text", std::string("hi")},
                   {"ints", Ints{1, 2}},    {"dtype", DType::f64},
                   {"array", array({1.5})}, {"graph", g}};
  CHECK(a.flag("flag"));
  CHECK(a.integer("int") == -3);
  CHECK(a.real("real") == 0.5);
  CHECK(a.text("text") == "hi");
  CHECK(a.ints("ints") == Ints{1, 2});
  CHECK(a.dtype("dtype") == DType::f64);
  CHECK(a.array("array") == array({1.5}));
  CHECK(a.graph("graph") == g);
}

TEST_CASE("an absent attribute is named") {
  const Attrs a;
  CHECK(!a.has("axis"));
  CHECK(a.find("axis") == nullptr);
  CHECK_THROWS_WITH_AS(a.integer("axis"), "missing attribute 'axis'", UserError);
}

TEST_CASE("an attribute of another kind is refused with both kinds") {
  const Attrs a = {{"axis", 1.0}};
  try {
    a.integer("axis");
    FAIL("did not throw");
  } catch (const UserError& e) {
    CHECK(std::string(e.what()) == "attribute 'axis' must be integer, got real");
    CHECK(e.kind() == ErrorKind::type);
  }
}

TEST_CASE("kind_of follows the order of the variant") {
  CHECK(kind_of(Attr(true)) == AttrKind::boolean);
  CHECK(kind_of(Attr(std::int64_t{1})) == AttrKind::integer);
  CHECK(kind_of(Attr(1.0)) == AttrKind::real);
  CHECK(kind_of(Attr(std::string())) == AttrKind::text);
  CHECK(kind_of(Attr(Ints{})) == AttrKind::ints);
  CHECK(kind_of(Attr(DType::f32)) == AttrKind::dtype);
  CHECK(kind_of(Attr(GraphPtr())) == AttrKind::graph);
  CHECK(kind_of(Attr(Array())) == AttrKind::array);
  CHECK(to_string(AttrKind::array) == "array");
}

TEST_CASE("values of different kinds never compare equal") {
  CHECK(!same_attr(Attr(true), Attr(std::int64_t{1})));
  CHECK(!same_attr(Attr(1.0), Attr(std::int64_t{1})));
}

TEST_CASE("reals compare by bits, all NaNs equal") {
  CHECK(same_attr(Attr(kNaN), Attr(-kNaN)));
  CHECK(!same_attr(Attr(kNaN), Attr(1.0)));
  CHECK(!same_attr(Attr(1.0), Attr(kNaN)));
  CHECK(!same_attr(Attr(0.0), Attr(-0.0)));
  CHECK(same_attr(Attr(0.1), Attr(0.1)));
}

TEST_CASE("sub-graphs compare by structure, not by address") {
  const GraphPtr a = sub_graph("in %0:f32[] %1:f32[] = tanh %0 out %1");
  const GraphPtr b = sub_graph("in %7:f32[] %9:f32[] = tanh %7 out %9");
  const GraphPtr c = sub_graph("in %0:f32[] out %0");
  CHECK(a.get() != b.get());
  CHECK(same_attr(Attr(a), Attr(b)));
  CHECK(!same_attr(Attr(a), Attr(c)));
  CHECK(!same_attr(Attr(a), Attr(GraphPtr())));
  CHECK(!same_attr(Attr(GraphPtr()), Attr(a)));
  CHECK(same_attr(Attr(GraphPtr()), Attr(GraphPtr())));
}

TEST_CASE("attribute lists differ by name, by value and by length") {
  const Attrs a = {{"n", std::int64_t{1}}};
  CHECK(!(a == Attrs{{"m", std::int64_t{1}}}));
  CHECK(!(a == Attrs{{"n", std::int64_t{2}}}));
  CHECK(!(a == Attrs{{"n", std::int64_t{1}}, {"o", true}}));
  CHECK(!(a == Attrs{}));
}

}  // namespace attrs_test
