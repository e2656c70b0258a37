// SPDX-License-Identifier: Apache-2.0
// Windows of history = deep (docs/etrace.md, Deep history).
#include "braintrace/algo/window_impl.h"
#include "braintrace/ops/calculus.h"

namespace braintrace {
namespace {

// Group signals as one value per hidden state, in canonical order.
Values per_state(const ETraceGraph& graph, const Values& groups) {
  std::map<Path, Value> by_path;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const HiddenGroup& group = graph.hidden_groups[g];
    const Values parts = group.split_hidden(groups[g]);
    for (std::size_t i = 0; i < parts.size(); ++i)
      by_path.emplace(group.members[i].path, parts[i]);
  }
  Values out;
  for (const HiddenVar& h : graph.module_info.hidden) out.push_back(by_path.at(h.path));
  return out;
}

// lambda: credit at the exit of each step, stacked per group, and at entry of the window.
struct DeepCredit {
  Values at_exits, at_entry;
};

// lambda_{t-1} = D_t^T (s_t + what lambda_t sends back through the whole step) + what
// step t reads of old states.
DeepCredit travel_back(const WindowValues& w, const DeepProgram& deep,
                       const std::vector<Timed>& in) {
  const std::size_t n = w.signals.size();
  Values init, xs;
  for (const Timed& s : w.signals) {
    xs.push_back(w.stacked(s));
    Type t = xs.back().type();
    t.shape.erase(t.shape.begin());
    init.push_back(zeros_of(t));
  }
  const bool old = !w.old_signals.empty();
  for (const Timed& s : w.old_signals) xs.push_back(w.stacked(s));
  std::vector<Timed> moving = in;
  for (const auto& d : w.d)
    if (d) moving.push_back(*d);
  for (const Timed& t : moving)
    if (t.stacked) xs.push_back(t.value);
  const ScanResult r = scan(
      [&](const Values& now) {
        const Values lambda(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(n));
        auto x = now.begin() + static_cast<std::ptrdiff_t>((old ? 3 : 2) * n);
        const auto next = [&](const Timed& t) { return t.stacked ? *x++ : t.value; };
        Values args;
        for (const Timed& t : in) args.push_back(next(t));
        const Values seeds = per_state(w.rule.graph(), lambda);
        args.insert(args.end(), seeds.begin(), seeds.end());
        const Values past = inline_graph(deep.back, args);
        Values out;
        for (std::size_t g = 0; g < n; ++g) {
          const Value back =
              w.d[g] ? times_blocks_transposed(next(*w.d[g]), now[n + g] + past[g])
                     : init[g];
          out.push_back(old ? back + now[2 * n + g] : back);
        }
        out.insert(out.end(), lambda.begin(), lambda.end());
        return out;
      },
      init, xs, {.length = w.steps, .reverse = true});
  return {r.ys, r.carry};
}

}  // namespace

void send_deep_credit(const WindowValues& w, const DeepProgram& deep,
                      const std::vector<Timed>& in, bool carry, std::vector<Value>& eps,
                      LeafGradients& grads) {
  const DeepCredit c = travel_back(w, deep, in);
  std::vector<Timed> given = in;
  const auto b = Builder::create();
  Values types;
  for (const Value& v : c.at_exits) {
    Type t = v.type();
    t.shape.erase(t.shape.begin());
    types.push_back(b->input(t));
  }
  const Graph split = b->finish(per_state(w.rule.graph(), types));
  std::vector<Timed> lambda;
  for (const Value& v : c.at_exits) lambda.push_back({v, true});
  for (const Timed& t : w.all_steps(split, lambda)) given.push_back(t);
  const std::vector<Timed> past = w.all_steps(deep.past, given);
  for (std::size_t i = 0; i < past.size(); ++i)
    add_to(grads, deep.leaves[i], w.summed(past[i]));

  StepTerms t = w.first_terms();
  std::size_t at = 0;
  for (const LearningRule* part : w.rule.rule().parts()) {
    const auto begin = eps.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t count = part->traces().size();
    const Values before(begin, begin + static_cast<std::ptrdiff_t>(count));
    add_to(grads, part->entry(t, c.at_entry, {}, before));
    const Values after = at_exit(w, *part, carry, before);
    std::copy(after.begin(), after.end(), begin);
    at += count;
  }
}

}  // namespace braintrace
