// SPDX-License-Identifier: Apache-2.0
// Windows whose traces roll step by step.
#include "braintrace/algo/window_impl.h"
#include "braintrace/ops/calculus.h"

namespace braintrace {

void roll_step_by_step(const WindowValues& w, std::vector<Value>& eps,
                       LeafGradients& grads) {
  const RuleProgram p = w.rule.write(RuleMode::single_step);
  Values init = eps, xs;
  for (std::size_t i = 0; i < p.leaves.size(); ++i)
    init.push_back(zeros_of(p.graph.type(p.graph.outputs()[p.num_traces + i])));
  for (ValueId v : p.reads)
    if (w.reads.at(v).stacked) xs.push_back(w.reads.at(v).value);
  for (const Timed& a : w.adjoints) xs.push_back(w.stacked(a));
  xs.push_back(w.call_numbers().value);
  xs.push_back(w.step_numbers().value);
  xs.insert(xs.end(), w.extra.begin(), w.extra.end());
  const ScanResult r = scan(
      [&](const Values& in) {
        auto x = in.begin() + static_cast<std::ptrdiff_t>(init.size());
        Values args;
        for (ValueId v : p.reads)
          args.push_back(w.reads.at(v).stacked ? *x++ : w.reads.at(v).value);
        for (std::size_t i = 0; i < w.adjoints.size(); ++i) args.push_back(*x++);
        args.insert(args.end(), in.begin(),
                    in.begin() + static_cast<std::ptrdiff_t>(p.num_traces));
        args.insert(args.end(), x, in.end());
        Values out = inline_graph(p.graph, args);
        for (std::size_t i = 0; i < p.leaves.size(); ++i)
          out[p.num_traces + i] = out[p.num_traces + i] + in[p.num_traces + i];
        return out;
      },
      init, xs, {.length = w.steps});
  std::copy_n(r.carry.begin(), p.num_traces, eps.begin());
  for (std::size_t i = 0; i < p.leaves.size(); ++i)
    add_to(grads, p.leaves[i], r.carry[p.num_traces + i]);
}

ScanResult rolled(const WindowValues& w, const LearningRule& part,
                  const std::vector<Value>& eps, Keep keep) {
  Values xs;
  for (const auto& [id, t] : w.reads)
    if (t.stacked) xs.push_back(t.value);
  xs.push_back(w.call_numbers().value);
  xs.push_back(w.step_numbers().value);
  xs.insert(xs.end(), w.extra.begin(), w.extra.end());
  return scan(
      [&](const Values& in) {
        auto x = in.begin() + static_cast<std::ptrdiff_t>(eps.size());
        StepValues values;
        for (const auto& [id, t] : w.reads)
          values.emplace(id, t.stacked ? *x++ : t.value);
        StepTerms terms(w.rule.context(), std::move(values));
        terms.calls = *x++;
        terms.trace_steps = *x++;
        for (const RuleInput& i : w.inputs) terms.inputs.emplace(i.name, *x++);
        const Values before(in.begin(),
                            in.begin() + static_cast<std::ptrdiff_t>(eps.size()));
        const Values after = part.roll(terms, before);
        Values out = after;
        if (keep == Keep::exit) return out;
        out.insert(out.end(), before.begin(), before.end());
        out.insert(out.end(), after.begin(), after.end());
        return out;
      },
      eps, xs, {.length = w.steps});
}

void meet_all(const WindowValues& w, const LearningRule& part, std::vector<Value>& eps,
              LeafGradients& grads) {
  const ScanResult r = rolled(w, part, eps, Keep::all);
  std::vector<Timed> more = w.signals;
  for (const Value& v : r.ys) more.push_back({v, true});
  std::vector<std::string> leaves;
  const std::vector<Timed> shares =
      w.for_all_steps(more, [&](StepTerms& t, const Values& in) {
        const auto s = in.begin() + static_cast<std::ptrdiff_t>(w.signals.size());
        const auto mid = s + static_cast<std::ptrdiff_t>(eps.size());
        Values after(mid, in.end());
        const GroupSignals signals(in.begin(), s);
        const LeafGradients g = w.rule.adds_history_only()
                                    ? part.history(t, signals, Values(s, mid), after)
                                    : part.solve(t, signals, after);
        Values out;
        for (const auto& [leaf, v] : g) {
          leaves.push_back(leaf);
          out.push_back(v);
        }
        return out;
      });
  for (std::size_t i = 0; i < leaves.size(); ++i)
    add_to(grads, leaves[i], w.summed(shares[i]));
  eps = r.carry;
}

}  // namespace braintrace
