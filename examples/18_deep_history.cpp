// SPDX-License-Identifier: Apache-2.0
// What `history = deep` buys: inside a window, past credit also crosses layers.
// Prints the cosine between online gradients and back-propagation, weight by weight, for
// two GRU layers, as the mean over five seeds; draws them into history.svg in the working
// folder. Passes when deep history is closer for every weight of the first layer and for
// both reset gates.
#include <fstream>
#include <map>

#include <fmt/format.h>

#include "braintrace/nn/nn.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"
#include "braintrace/train/metrics.h"

using namespace braintrace;

constexpr std::int64_t kSteps = 24, kWindow = 8, kBatch = 16;
constexpr std::uint64_t kSeeds = 5;

struct Net : nn::Module {
  nn::GRUCell rnn1, rnn2;
  nn::Linear out;
  explicit Net(std::int64_t n) : rnn1(4, n), rnn2(n, n), out(n, 2) {
    add("rnn1", rnn1);
    add("rnn2", rnn2);
    add("out", out);
  }
  Value update(Value x) override { return out(rnn2(rnn1(x))); }
};

// Of one sequence whose target is its input, four steps late.
StateDict gradients(std::uint64_t seed, const Algorithm& rule, History history) {
  Net model(12);
  LearnerOptions o{.batch_size = kBatch, .seed = seed};
  o.graph.weight_paths = WeightPaths::local;
  o.learning.history = history;
  Learner learner = compile(model, rule, zeros({kBatch, 4}), o);
  const Value xs = random_normal(key_array(rng_key(100 + seed)), {kSteps, kBatch, 4});
  const Value seen = slice(xs, {0, 0, 0}, {kSteps - 4, kBatch, 2});
  const Value ys = concat({zeros({4, kBatch, 2}), seen}, 0);
  const auto loss = [&](const Value& x, const Value& y) { return mse(learner(x), y); };
  const std::int64_t window = rule.engine == Engine::bptt ? kSteps : kWindow;
  return learner.etrace_grad(xs.array(), ys.array(), loss, {.window = window}).grads;
}

// Cosines of one weight, one per seed.
struct Row {
  std::vector<double> direct, deep;
};

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

// ---- the picture: two bars per weight, a dot per seed

constexpr int kLeft = 90, kTop = 78, kBar = 13, kPitch = 40, kLength = 480;
constexpr const char *kGrey = "#b0bac8", *kBlue = "#2b6cb0", *kInk = "#1f2933";

std::string text(double x, int y, const char* anchor, const std::string& words,
                 int size = 12) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\" font-size=\"{}\" "
      "fill=\"{}\">{}</text>\n",
      x, y, anchor, size, kInk, words);
}

std::string box(double x, int y, double width, const char* colour) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>\n", x, y,
      width, kBar, colour);
}

std::string bar(const std::vector<double>& values, int y, const char* colour) {
  const double mean = std::max(mean_of(values), 0.0);
  std::string out = box(kLeft, y, kLength * mean, colour);
  for (double v : values)
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"white\" stroke=\"{}\"/>\n",
        kLeft + kLength * std::max(v, 0.0), y + kBar / 2.0, kInk);
  return out + text(kLeft + kLength + 10, y + kBar - 2, "start",
                    fmt::format("{:.2f}", mean_of(values)), 11);
}

std::string axis(int bottom) {
  std::string out;
  for (int i = 0; i <= 4; ++i) {
    const double x = kLeft + kLength * i / 4.0;
    out += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" "
        "stroke=\"#d9dee5\"/>\n",
        x, kTop - 6, bottom);
    out += text(x, bottom + 16, "middle", fmt::format("{:.2f}", i / 4.0));
  }
  return out + text(kLeft + kLength / 2.0, bottom + 36, "middle",
                    "cosine between the online gradient and that of back-propagation");
}

std::string picture(const std::map<std::string, Row>& rows) {
  const int bottom = kTop + kPitch * static_cast<int>(rows.size());
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"{0}\" "
      "viewBox=\"0 0 640 {0}\" font-family=\"sans-serif\">\n"
      "<rect width=\"640\" height=\"{0}\" fill=\"white\"/>\n",
      bottom + 50);
  out += text(kLeft, 24, "start", "Two GRU layers, input back after 4 steps", 15);
  out += box(kLeft, 40, 22, kGrey) + text(kLeft + 28, 51, "start", "history = direct");
  out += box(kLeft + 140, 40, 22, kBlue) +
         text(kLeft + 168, 51, "start", "history = deep, windows of 8 steps");
  out += text(kLeft + kLength + 30, 24, "end", "bars: mean, dots: 5 seeds", 11);
  out += axis(bottom);
  int y = kTop;
  for (const auto& [name, row] : rows) {
    out += text(kLeft - 10, y + kBar + 5, "end", name);
    out += bar(row.direct, y, kGrey) + bar(row.deep, y + kBar + 1, kBlue);
    y += kPitch;
  }
  return out + "</svg>\n";
}

int main() {
  const std::string leaf = "/weight/weight";
  std::map<std::string, Row> rows;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const StateDict exact = gradients(seed, BPTT{}, History::direct);
    const auto direct =
        gradient_cosines(exact, gradients(seed, D_RTRL{}, History::direct));
    const auto deep = gradient_cosines(exact, gradients(seed, D_RTRL{}, History::deep));
    for (const auto& [path, g] : exact) {
      if (!path.starts_with("rnn") || !path.ends_with(leaf)) continue;
      Row& row = rows[path.substr(0, path.size() - leaf.size())];
      row.direct.push_back(direct.at(path));
      row.deep.push_back(deep.at(path));
    }
  }
  bool passes = true;
  for (const auto& [name, row] : rows) {
    fmt::print("{}: direct {:.2f}, deep {:.2f}\n", name, mean_of(row.direct),
               mean_of(row.deep));
    if (name.starts_with("rnn1") || name.ends_with("Wr"))
      passes = passes && mean_of(row.deep) > mean_of(row.direct);
  }
  std::ofstream("history.svg") << picture(rows);
  return passes ? 0 : 1;
}
