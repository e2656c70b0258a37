// SPDX-License-Identifier: Apache-2.0
// What `history = deep` buys: inside a window, past credit also crosses layers.
// Prints the cosine between online gradients and back-propagation, parameter by
// parameter, for two GRU layers; draws them into history.svg in the working folder.
#include <fstream>

#include <fmt/format.h>

#include "braintrace/nn/nn.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"
#include "braintrace/train/metrics.h"

using namespace braintrace;

constexpr std::int64_t kSteps = 24, kWindow = 8, kBatch = 16;

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
StateDict gradients(const Algorithm& rule, History history) {
  Net model(12);
  LearnerOptions o{.batch_size = kBatch, .seed = 1};
  o.graph.weight_paths = WeightPaths::local;
  o.learning.history = history;
  Learner learner = compile(model, rule, zeros({kBatch, 4}), o);
  const Value xs = random_normal(key_array(rng_key(5)), {kSteps, kBatch, 4});
  const Value seen = slice(xs, {0, 0, 0}, {kSteps - 4, kBatch, 2});
  const Value ys = concat({zeros({4, kBatch, 2}), seen}, 0);
  const auto loss = [&](const Value& x, const Value& y) { return mse(learner(x), y); };
  const std::int64_t window = rule.engine == Engine::bptt ? kSteps : kWindow;
  return learner.etrace_grad(xs.array(), ys.array(), loss, {.window = window}).grads;
}

struct Row {
  std::string path;
  double direct, deep;
};

std::string picture(const std::vector<Row>& rows) {
  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 560 190\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"560\" height=\"190\" fill=\"white\"/>\n";
  int y = 10;
  const auto bar = [&](double value, const char* colour, int down) {
    out += fmt::format(
        "<rect x=\"120\" y=\"{}\" width=\"{:.1f}\" height=\"10\" fill=\"{}\"/>\n",
        y + down, 400 * std::max(value, 0.0), colour);
  };
  for (const Row& r : rows) {
    out += fmt::format("<text x=\"10\" y=\"{}\">{}</text>\n", y + 14, r.path);
    bar(r.direct, "#a0aec0", 0);
    bar(r.deep, "#2b6cb0", 11);
    y += 30;
  }
  return out + "</svg>\n";
}

int main() {
  const StateDict exact = gradients(BPTT{}, History::direct);
  const auto direct = gradient_cosines(exact, gradients(D_RTRL{}, History::direct));
  const auto deep = gradient_cosines(exact, gradients(D_RTRL{}, History::deep));
  const std::string leaf = "/weight/weight";
  std::vector<Row> rows;
  double gained = 0;
  for (const auto& [path, g] : exact) {
    if (!path.starts_with("rnn") || !path.ends_with(leaf)) continue;
    const std::string name = path.substr(0, path.size() - leaf.size());
    rows.push_back({name, direct.at(path), deep.at(path)});
    gained += deep.at(path) - direct.at(path);
    fmt::print("{}: direct {:.2f}, deep {:.2f}\n", name, direct.at(path), deep.at(path));
  }
  std::ofstream("history.svg") << picture(rows);
  return gained > 0.3 ? 0 : 1;
}
