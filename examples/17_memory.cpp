// SPDX-License-Identifier: Apache-2.0
// Memory against the length of the sequence: online rules stay flat, back-propagation
// grows. Writes memory.csv and memory.svg (both axes logarithmic) into the working
// folder.
#include <cmath>
#include <fstream>

#include <fmt/format.h>

#include "braintrace/algo/memory_plan.h"
#include "braintrace/nn/nn.h"

using namespace braintrace;

const std::vector<std::int64_t> kLengths = {10, 30, 100, 300, 1000, 3000, 10000};

struct Curve {
  Algorithm rule;
  std::string colour;
  std::vector<std::int64_t> bytes = {};
};

struct Net : nn::Module {
  nn::GRUCell rnn;
  nn::Linear out;
  explicit Net(std::int64_t n) : rnn(8, n), out(n, 2) {
    add("rnn", rnn);
    add("out", out);
  }
  Value update(Value x) override { return out(rnn(x)); }
};

// Where a point stands in the picture.
double x_of(std::int64_t length) {
  return 60 + 140 * (std::log10(static_cast<double>(length)) - 1);
}
double y_of(double bytes) { return 280 - 40 * (std::log10(bytes) - 3); }

std::string picture(const std::vector<Curve>& curves) {
  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 600 320\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"600\" height=\"320\" fill=\"white\"/>\n"
      "<text x=\"250\" y=\"312\">steps of the sequence</text>\n";
  const std::pair<double, const char*> sizes[] = {
      {1e3, "1 kB"}, {1e6, "1 MB"}, {1e9, "1 GB"}};
  for (const auto& [size, name] : sizes)
    out += fmt::format("<text x=\"10\" y=\"{:.1f}\">{}</text>\n", y_of(size) + 4, name);
  for (std::size_t i = 0; i < kLengths.size(); i += 2)
    out += fmt::format("<text x=\"{:.1f}\" y=\"296\">{}</text>\n", x_of(kLengths[i]) - 8,
                       kLengths[i]);
  for (const Curve& c : curves) {
    std::vector<std::string> points;
    for (std::size_t i = 0; i < kLengths.size(); ++i)
      points.push_back(fmt::format("{:.1f},{:.1f}", x_of(kLengths[i]),
                                   y_of(static_cast<double>(c.bytes[i]))));
    out += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke-width=\"2\" stroke=\"{}\"/>\n",
        fmt::join(points, " "), c.colour);
    out +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\">{}</text>\n",
                    x_of(kLengths.back()) + 6,
                    y_of(static_cast<double>(c.bytes.back())) + 4, c.colour, c.rule.name);
  }
  return out + "</svg>\n";
}

int main() {
  Net model(64);
  init_all_states(model, {.batch_size = 16});
  const ETraceGraph graph = compile_etrace_graph(
      model, {zeros({16, 8})}, {.batched = true, .weight_paths = WeightPaths::local});
  std::vector<Curve> curves = {{D_RTRL{}, "#2b6cb0"},
                               {pp_prop{.decay_or_rank = 0.9}, "#2f855a"},
                               {BPTT{}, "#c53030"}};
  std::ofstream csv("memory.csv");
  csv << "steps,D_RTRL,pp_prop,BPTT\n";
  fmt::print("bytes kept for 64 units and 16 samples; steps, D_RTRL, pp_prop, BPTT\n");
  for (std::int64_t t : kLengths) {
    std::vector<std::int64_t> row = {t};
    for (Curve& c : curves) {
      const std::int64_t window = c.rule.engine == Engine::bptt ? t : 0;
      c.bytes.push_back(memory_plan(graph, c.rule, {.window = window}).total_bytes());
      row.push_back(c.bytes.back());
    }
    csv << fmt::format("{}\n", fmt::join(row, ","));
    fmt::print("{}\n", fmt::join(row, " "));
  }
  std::ofstream("memory.svg") << picture(curves);
  const bool flat = curves[0].bytes.front() == curves[0].bytes.back() &&
                    curves[1].bytes.front() == curves[1].bytes.back();
  return flat && curves[2].bytes.back() > 100 * curves[2].bytes.front() ? 0 : 1;
}
