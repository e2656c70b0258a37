// SPDX-License-Identifier: Apache-2.0
// Windows whose traces roll step by step.
#include "braintrace/algo/window_impl.h"
#include "braintrace/ops/calculus.h"

namespace braintrace {

void roll_step_by_step(const WindowValues& w, std::vector<Value>& eps,
                       LeafGradients& grads) {
  const RuleProgram p = w.rule.write(RuleMode::single_step);
  std::optional<RuleProgram> old;
  if (!w.old_adjoints.empty()) old = w.rule.write(RuleMode::old_states);
  std::vector<std::string> leaves = p.leaves;
  if (old) leaves.insert(leaves.end(), old->leaves.begin(), old->leaves.end());
  Values init = eps, xs;
  const auto add_sums = [&](const RuleProgram& r) {
    for (std::size_t i = 0; i < r.leaves.size(); ++i)
      init.push_back(zeros_of(r.graph.type(r.graph.outputs()[r.num_traces + i])));
  };
  add_sums(p);
  if (old) add_sums(*old);
  for (ValueId v : p.reads)
    if (w.reads.at(v).stacked) xs.push_back(w.reads.at(v).value);
  for (const Timed& a : w.adjoints) xs.push_back(w.stacked(a));
  for (const Timed& a : w.old_adjoints) xs.push_back(w.stacked(a));
  xs.push_back(w.call_numbers().value);
  xs.push_back(w.step_numbers().value);
  xs.insert(xs.end(), w.extra.begin(), w.extra.end());
  const ScanResult r = scan(
      [&](const Values& in) {
        auto x = in.begin() + static_cast<std::ptrdiff_t>(init.size());
        Values reads;
        for (ValueId v : p.reads)
          reads.push_back(w.reads.at(v).stacked ? *x++ : w.reads.at(v).value);
        const auto adjoints = x;
        x += static_cast<std::ptrdiff_t>(w.adjoints.size() + w.old_adjoints.size());
        const auto run = [&](const RuleProgram& r, Values::const_iterator a) {
          Values args = reads;
          args.insert(args.end(), a, a + static_cast<std::ptrdiff_t>(r.num_adjoints));
          args.insert(args.end(), in.begin(),
                      in.begin() + static_cast<std::ptrdiff_t>(r.num_traces));
          args.insert(args.end(), x, in.end());
          return inline_graph(r.graph, args);
        };
        Values out = run(p, adjoints);
        if (old) {
          const Values more =
              run(*old, adjoints + static_cast<std::ptrdiff_t>(p.num_adjoints));
          out.insert(out.end(), more.begin() + static_cast<std::ptrdiff_t>(p.num_traces),
                     more.end());
        }
        for (std::size_t i = p.num_traces; i < out.size(); ++i) out[i] = out[i] + in[i];
        return out;
      },
      init, xs, {.length = w.steps});
  std::copy_n(r.carry.begin(), p.num_traces, eps.begin());
  for (std::size_t i = 0; i < leaves.size(); ++i)
    add_to(grads, leaves[i], r.carry[p.num_traces + i]);
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
        out.insert(out.end(), after.begin(), after.end());
        return out;
      },
      eps, xs, {.length = w.steps});
}

namespace {

// From the last step to the first: L_{t-1} = a (older_t + L_t). Gives L_t of every step
// and what reaches the data filter at entry.
struct Later {
  std::vector<Timed> at_steps;
  Values at_entry;
};
Later later_credit(const WindowValues& w, const std::vector<Timed>& older, double a) {
  Values init, xs;
  for (const Timed& o : older) {
    xs.push_back(w.stacked(o));
    Type t = xs.back().type();
    t.shape.erase(t.shape.begin());
    init.push_back(zeros_of(t));
  }
  const std::size_t n = older.size();
  const ScanResult r = scan(
      [&](const Values& in) {
        Values out;
        for (std::size_t i = 0; i < n; ++i) out.push_back((in[n + i] + in[i]) * a);
        out.insert(out.end(), in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n));
        return out;
      },
      init, xs, {.length = w.steps, .reverse = true});
  Later l{.at_steps = {}, .at_entry = r.carry};
  for (const Value& v : r.ys) l.at_steps.push_back({v, true});
  return l;
}

}  // namespace

// sum_t C_t (x) a X_{t-1} = sum_t L_t (x) x_t + L_0 (x) X_0 for cotangents C of all
// steps: products read the data itself, which may be spikes, and never its filter.
void meet_data(const WindowValues& w, const LearningRule& part, std::vector<Value>& eps,
               LeafGradients& grads) {
  const ScanResult r = rolled(w, part, eps, Keep::all);
  std::vector<Timed> more = w.signals;
  for (const Value& v : r.ys) more.push_back({v, true});
  const OwnTerms own_terms =
      w.rule.adds_history_only() ? OwnTerms::left_out : OwnTerms::counted;
  std::vector<Timed> now = w.for_all_steps(more, [&](StepTerms& t, const Values& in) {
    const auto s = in.begin() + static_cast<std::ptrdiff_t>(w.signals.size());
    MetData m = part.met(t, {in.begin(), s}, {s, in.end()}, own_terms);
    m.now.insert(m.now.end(), m.older.begin(), m.older.end());
    return m.now;
  });
  const auto n = static_cast<std::ptrdiff_t>(now.size() / 2);
  const std::vector<Timed> older(now.begin() + n, now.end());
  now.resize(older.size());
  const double a = part.data_filter();
  const Later later = a > 0 ? later_credit(w, older, a) : Later{};

  std::vector<Timed> given = now;
  given.insert(given.end(), later.at_steps.begin(), later.at_steps.end());
  const std::vector<Timed> operands =
      w.for_all_steps(given, [&](StepTerms& t, const Values& in) {
        const Values own(in.begin(), in.begin() + n);
        Values with_data = own;
        for (std::size_t i = own.size(); i < in.size(); ++i)
          with_data[i - own.size()] = with_data[i - own.size()] + in[i];
        return part.earned(t, own, with_data);
      });
  std::vector<Value> sums;
  for (const Timed& t : operands) sums.push_back(w.summed(t));
  StepTerms t = w.first_terms();
  if (a > 0) {
    const std::vector<Value> before = part.earned_before(t, later.at_entry, eps);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = sums[i] + before[i];
  }
  add_to(grads, part.pull_back(t, sums));
  eps = r.carry;
}

}  // namespace braintrace
