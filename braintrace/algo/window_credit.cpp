// SPDX-License-Identifier: Apache-2.0
// Windows without traces inside: signals travel back through D (docs/etrace.md, Windows).
#include <cmath>

#include "braintrace/algo/window_impl.h"
#include "braintrace/ops/calculus.h"

namespace braintrace {
namespace {

// From the last step to the first: q_t = sb_t + lambda_t, lambda_{t-1} = D_t^T q_t,
// sb_t = s_t + kappa sb_{t+1}. What step t reads of old states is one more signal at the
// exit of step t - 1. Gives the credit each step's instantaneous term earns, and what
// arrives at the entry.
struct Credit {
  std::vector<Timed> earned;      // per group
  GroupSignals lambda, filtered;  // at entry
};

Credit credit(const WindowValues& w, double kappa) {
  const std::size_t n = w.signals.size();
  const bool own = !w.rule.adds_history_only();  // the published rule: s meets eps_t
  const bool old = !w.old_signals.empty();
  Values init, xs;
  for (const Timed& s : w.signals) {
    Type t = s.value.type();
    if (s.stacked) t.shape.erase(t.shape.begin());
    init.push_back(zeros_of(t));
  }
  const Values zero = init;
  if (kappa > 0) init.insert(init.end(), zero.begin(), zero.end());
  for (const Timed& s : w.signals) xs.push_back(w.stacked(s));
  for (const Timed& s : w.old_signals) xs.push_back(w.stacked(s));
  for (const auto& d : w.d)
    if (d && d->stacked) xs.push_back(d->value);
  const ScanResult r = scan(
      [&](const Values& in) {
        const std::span<const Value> s = std::span(in).subspan(init.size());
        auto d = s.begin() + static_cast<std::ptrdiff_t>(old ? 2 * n : n);
        Values lambda, filtered, earned;
        for (std::size_t g = 0; g < n; ++g) {
          const Value sb = kappa > 0 ? s[g] + in[n + g] : s[g];
          const Value q = sb + in[g];
          earned.push_back(own ? q : kappa > 0 ? q - s[g] : in[g]);
          const Value block = !w.d[g] ? Value() : w.d[g]->stacked ? *d++ : w.d[g]->value;
          lambda.push_back(w.d[g] ? times_blocks_transposed(block, q) : zero[g]);
          if (kappa > 0) filtered.push_back(sb * kappa);
          Value& before = kappa > 0 ? filtered.back() : lambda.back();
          if (old) before = before + s[n + g];
        }
        Values out = lambda;
        out.insert(out.end(), filtered.begin(), filtered.end());
        out.insert(out.end(), earned.begin(), earned.end());
        return out;
      },
      init, xs, {.length = w.steps, .reverse = true});
  Credit c;
  for (const Value& v : r.ys) c.earned.push_back({v, true});
  const auto end_of_lambda = r.carry.begin() + static_cast<std::ptrdiff_t>(n);
  c.lambda.assign(r.carry.begin(), end_of_lambda);
  c.filtered.assign(end_of_lambda, r.carry.end());
  return c;
}

void products(const WindowValues& w, std::size_t g, double kappa,
              std::vector<Timed>& blocks, ToExit& entry) {
  const HiddenGroup& group = w.rule.context().groups()[g];
  const std::int64_t m = w.rule.context().width(group.index);
  Shape shape = group.varshape();
  shape.insert(shape.end(), {m, m});
  Array eye = zeros({m, m}, DType::f64);
  for (std::int64_t i = 0; i < m; ++i) eye.mutable_data<double>()[i * (m + 1)] = 1;
  const DType dtype = w.signals[g].value.dtype();
  const Value one = Value(eye.astype(dtype).broadcast_to(shape).contiguous());
  const Value none = zeros_of(one.type());
  Values xs;
  if (w.d[g] && w.d[g]->stacked) xs.push_back(w.d[g]->value);
  // carry: what the step after this one leads to (plain, filtered), kappa^(W-1-t)
  const ScanResult r = scan(
      [&](const Values& in) {
        const Value p = in[0], q = in[1] + one * in[2];
        Values out = {none, none, in[2] * kappa, p, q};
        if (w.d[g]) {
          const Value d = w.d[g]->stacked ? in[3] : w.d[g]->value;
          out[0] = blocks_times_blocks(p, d);
          out[1] = blocks_times_blocks(q, d);
        }
        return out;
      },
      {one, none, Value(scalar(1, dtype))}, xs, {.length = w.steps, .reverse = true});
  blocks.push_back({r.ys[0], true});
  blocks.push_back({r.ys[1], true});
  entry.plain[g] = r.carry[0];
  entry.filtered[g] = r.carry[1];
}

// P_t = D_{W-1} ... D_{t+1} for every step, and their filtered twins
// Q_t = kappa^{W-1-t} + Q_{t+1} D_{t+1}; the carries end at entry.
std::vector<Value> moved_to_exit(const WindowValues& w, const LearningRule& part,
                                 std::vector<Value> eps) {
  const double kappa = part.filter();
  ToExit at_entry;
  at_entry.plain.resize(w.d.size());
  at_entry.filtered.resize(w.d.size());
  at_entry.kept = std::pow(kappa, static_cast<double>(w.steps));
  std::vector<Timed> blocks;  // per group: plain, then filtered
  for (std::size_t g = 0; g < w.d.size(); ++g) products(w, g, kappa, blocks, at_entry);
  const std::vector<Timed> arrived =
      w.for_all_steps(blocks, [&](StepTerms& t, const Values& in) {
        ToExit m;
        for (std::size_t g = 0; g < w.d.size(); ++g) {
          m.plain.emplace_back(in[2 * g]);
          m.filtered.emplace_back(in[2 * g + 1]);
        }
        return part.arrived(t, m);
      });
  StepTerms t = w.first_terms();
  const std::vector<Value> moved =
      w.fresh ? std::vector<Value>() : part.moved(t, at_entry, eps);
  for (std::size_t i = 0; i < eps.size(); ++i) {
    const Value sum = w.summed(arrived[i]), next = w.fresh ? sum : moved[i] + sum;
    eps[i] = next.dtype() == eps[i].dtype() ? next : astype(next, eps[i].dtype());
  }
  return eps;
}

}  // namespace

std::vector<Value> at_exit(const WindowValues& w, const LearningRule& part, bool carry,
                           std::vector<Value> eps) {
  if (!carry) {
    for (Value& e : eps) e = zeros_of(e.type());
    return eps;
  }
  return part.rolls_to_exit() ? rolled(w, part, eps, Keep::exit).carry
                              : moved_to_exit(w, part, std::move(eps));
}

void send_credit(const WindowValues& w, const LearningRule& part, bool carry,
                 std::vector<Value>& eps, LeafGradients& grads) {
  const Credit c = credit(w, part.filter());
  const std::vector<Timed> operands = w.for_all_steps(
      c.earned, [&](StepTerms& t, const Values& r) { return part.credit(t, r); });
  std::vector<Value> sums;
  for (const Timed& t : operands) sums.push_back(w.summed(t));
  StepTerms t = w.first_terms();
  add_to(grads, part.pull_back(t, sums));
  if (!w.fresh) add_to(grads, part.entry(t, c.lambda, c.filtered, eps));
  eps = at_exit(w, part, carry, eps);
}

}  // namespace braintrace
