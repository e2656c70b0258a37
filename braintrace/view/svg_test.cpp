// SPDX-License-Identifier: Apache-2.0
#include "braintrace/view/svg.h"

#include <doctest/doctest.h>

#include "braintrace/base/error.h"

namespace svg_test {

using namespace braintrace;

TEST_CASE("a small graph becomes an SVG picture with its labels") {
  const std::string svg = dot_to_svg("digraph { a [label=\"x < y\"]; a -> b }");
  CHECK(svg.starts_with("<?xml"));
  CHECK(svg.find("</svg>") != std::string::npos);
  CHECK(svg.find("x &lt; y") != std::string::npos);
}

TEST_CASE("malformed Graphviz text is a user error that says where") {
  CHECK_THROWS_WITH_AS(dot_to_svg("digraph { a -> "),
                       doctest::Contains("dot_to_svg: malformed text: "), UserError);
  CHECK_THROWS_AS(dot_to_svg(""), UserError);
  // The next picture is not harmed.
  CHECK(dot_to_svg("digraph { a }").find("<svg") != std::string::npos);
}

TEST_CASE("inline pictures start at the element and prefix every id") {
  const std::string svg = dot_to_inline_svg("digraph { a -> b }", "p_");
  CHECK(svg.starts_with("<svg"));
  CHECK(svg.find(" id=\"p_node1\"") != std::string::npos);
  CHECK(svg.find(" id=\"node") == std::string::npos);
}

TEST_CASE("the same text gives the same picture every time") {
  const std::string dot = "digraph g { a -> b [label=<x<br/>y>]; a -> c }";
  const std::string first = dot_to_svg(dot);
  dot_to_svg("digraph other { x -> y }");
  CHECK(dot_to_svg(dot) == first);
}

}  // namespace svg_test
