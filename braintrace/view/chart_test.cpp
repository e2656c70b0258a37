// SPDX-License-Identifier: Apache-2.0
#include "braintrace/view/chart.h"

#include <cmath>

#include <doctest/doctest.h>

namespace chart_test {

using namespace braintrace;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1))
    ++n;
  return n;
}

}  // namespace

TEST_CASE("a chart has a line per series, a level, marks and escaped names") {
  const std::string svg = line_chart(
      {{"a<b", {{0, 1}, {1, 2}, {2, 4}}}, {"c", {{0, 3}, {2, 1}}}},
      {.title = "t & u", .x_name = "batch", .level = ChartLevel{"constant", 2.5}});
  CHECK(count(svg, "<polyline class=\"s0\"") == 2);  // the line and its legend
  CHECK(count(svg, "a&lt;b") == 2);
  CHECK(svg.find("a<b") == std::string::npos);
  CHECK(svg.find("t &amp; u") != std::string::npos);
  CHECK(count(svg, "class=\"level\"") == 1);
  CHECK(svg.find(">batch</text>") != std::string::npos);
}

TEST_CASE("larger values stand higher, and zero is at the bottom") {
  const std::string svg =
      line_chart({{"a", {{0, 0}, {10, 4}}}}, {.width = 400, .height = 200});
  CHECK(svg.find("points=\"62.0,160.0 386.0,30.0 \"") != std::string::npos);
}

TEST_CASE("a logarithmic chart leaves out what has no logarithm") {
  const std::string svg = line_chart({{"a", {{0, 100}, {1, 0}, {2, 1}, {3, NAN}}}},
                                     {.log_y = true, .width = 400, .height = 200});
  CHECK(svg.find("points=\"62.0,30.0 386.0,160.0 \"") != std::string::npos);
  CHECK(svg.find(">100</text>") != std::string::npos);
  CHECK(line_chart({{"a", {{0, NAN}}}}).find("nothing to draw") != std::string::npos);
}

TEST_CASE("long series are averaged") {
  ChartSeries s{"a", {}};
  for (int i = 0; i < 10000; ++i) s.points.emplace_back(i, i % 2);
  CHECK(line_chart({s}, {.max_points = 50}).size() < 6000);
}

TEST_CASE("a raster has a mark per spike, at its place") {
  const SpikeRaster r{"neu<1>", 10, 4, {{0, 0}, {9, 3}, {5, 1}}};
  const std::string svg = raster_chart(r, 76 + 100);
  CHECK(count(svg, "<rect x=") == 3);
  CHECK(svg.find("neu&lt;1&gt;") != std::string::npos);
  CHECK(svg.find("<rect x=\"62.0\" y=\"30.0\"") != std::string::npos);
  CHECK(svg.find("<rect x=\"152.0\" y=\"66.0\"") != std::string::npos);
}

TEST_CASE("marks of a logarithmic axis are round numbers") {
  const auto marks_of = [](double low, double high) {
    ChartOptions o;
    o.log_y = true;
    return line_chart({{"a", {{0, low}, {1, high}}}}, o);
  };
  const std::string near = marks_of(0.5, 1.9);
  for (const char* round : {">0.5<", ">1<"}) CHECK(near.find(round) != std::string::npos);
  const std::string far = marks_of(1e-9, 2);
  CHECK(far.find(">1e-09<") != std::string::npos);
  for (const std::string& text : {near, far, marks_of(0.03, 2)})
    for (const char* odd : {">1.58<", ">0.631<", ">0.316<", ">0.0316<"})
      CHECK(text.find(odd) == std::string::npos);
}

}  // namespace chart_test
