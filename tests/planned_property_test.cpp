// SPDX-License-Identifier: Apache-2.0
// Learners of random models of odd sizes, by plan as by interpreter. A failure prints the
// model.
#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "braintrace/testing/random_model.h"
#include "braintrace/train/learner.h"

namespace planned_property_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

// Unoptimised builds check a sample.
#ifdef NDEBUG
constexpr std::uint64_t kModels = 200;
#else
constexpr std::uint64_t kModels = 20;
#endif
constexpr double kRelative = 1e-9;   // of the largest entry of the leaf
constexpr double kAbsolute = 1e-12;  // of the largest entry of all leaves

const std::vector<Algorithm>& rules() {
  static const std::vector<Algorithm> all = {
      D_RTRL{},
      OSTLRecurrent{},
      pp_prop{.decay_or_rank = 0.9},
      SnAp{.n = 2},
      EProp{.kappa_filter_decay = 0.6},
      D_RTRL{.vjp_method = VjpMethod::multi_step},
      Hybrid{.decay_or_rank = 0.8},
      EProp{.feedback = "random", .random_feedback_key = 5},
      ThreeFactor{},
      OSTLFeedforward{.decay_or_rank = 0.5},
      BPTT{.segments = 2},
      UORO{.vjp_method = VjpMethod::single_step},
      OSTLRecurrent{.vjp_method = VjpMethod::multi_step}};
  return all;
}

struct Run {
  std::uint64_t seed = 0;
  ExecutorKind executor = ExecutorKind::plan;
  int threads = 1;
};

constexpr std::int64_t kSteps = 5;

const Algorithm& rule_of(std::uint64_t seed) { return rules()[seed % rules().size()]; }

// Rules whose credit travels back through D.
bool deep(const Algorithm& a) {
  return (a.name == "D_RTRL" || a.name == "OSTLRecurrent") &&
         a.vjp_method == VjpMethod::single_step;
}

LearnerOptions options_of(const RandomModel& m, const Run& r) {
  LearnerOptions o;
  o.graph = m.tuned({});
  o.graph.include_recurrent_mixing = false;
  o.graph.sparse_n.reset();
  o.graph.on_refused = OnRefused::freeze;
  o.dtype = DType::f64;
  o.executor = r.executor;
  o.threads = r.threads;
  if (r.seed % 2 == 0) o.compact_bytes = 0;
  const std::uint64_t turn = r.seed / rules().size();  // of all rules
  if (turn % 4 == 1) o.graph.weight_paths = WeightPaths::dense;
  if (turn % 4 == 2 && deep(rule_of(r.seed))) o.learning.history = History::deep;
  if (turn % 4 == 3) o.learning.newest = Newest::trace;
  if (o.graph.batched) o.batch_size = m.args()[0].shape()[0];
  return o;
}

// Some steps count less, one not at all.
std::optional<Array> mask_of(std::uint64_t seed) {
  if (seed % 3 != 0) return std::nullopt;
  return array({1, 0, 0.5, 2, 1}, DType::f64);
}

// Two sequences in windows that do not divide them.
StateDict learned(RandomModel& m, const Run& r) {
  const Algorithm& rule = rule_of(r.seed);
  m.init();
  const Shape shape = m.args()[0].shape();
  Learner l(m, rule, {zeros(shape, DType::f64)}, options_of(m, r));
  if (rule.config.learning_signal() == LearningSignal::modulatory)
    l.set_modulator(scalar(0.7, DType::f64));
  const auto inputs = [&](std::int64_t t) {
    const RngKey key = fold_in(rng_key(17), static_cast<std::uint64_t>(t));
    return std::vector{random_uniform(key, shape, -1, 1, DType::f64),
                       scalar(1 + 0.3 * static_cast<double>(t), DType::f64)};
  };
  const auto loss = [&](const Values& in) {
    const Value v = astype(l(in[0]), DType::f64);
    return LossResult{.loss = in[1] * sum(sin(1.3 * v) + 0.5 * v), .results = {}};
  };
  StateDict out;
  const std::int64_t windows[] = {2, 1, 0, 3};
  for (std::int64_t call = 0; call < 2; ++call) {
    const SequenceSource source{kSteps,
                                [&](std::int64_t t) { return inputs(10 * call + t); }};
    const GradOptions o{
        .mask = mask_of(r.seed),
        .window = windows[(r.seed / 3 + static_cast<std::uint64_t>(call)) % 4],
        .carry_traces = call == 1 || r.seed % 5 != 0,
        .reduction = Reduction::sum};
    for (const auto& [leaf, a] : l.etrace_grad(source, loss, o).grads)
      out[fmt::format("call {}: {}", call, leaf)] = a;
  }
  for (const TraceView& t : l.etraces()) out["trace " + t.slot.name()] = t.value;
  for (const auto& [leaf, a] : state_dict(m)) out["state " + leaf] = a;
  return out;
}

double largest(const Array& a) {
  double most = 0;
  for (double v : a.to_doubles()) most = std::max(most, std::abs(v));
  return most;
}

std::string difference(const StateDict& got, const StateDict& want, bool bits) {
  double overall = 0;
  for (const auto& [leaf, a] : want)
    if (leaf.starts_with("call")) overall = std::max(overall, largest(a));
  for (const auto& [leaf, w] : want) {
    if (!got.contains(leaf)) return leaf + " is missing";
    const std::vector<double> a = got.at(leaf).to_doubles(), b = w.to_doubles();
    if (a.size() != b.size()) return leaf + " has another size";
    const double allowed = bits ? 0 : kRelative * largest(w) + kAbsolute * overall;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!(a[i] == b[i] || std::abs(a[i] - b[i]) <= allowed))
        return fmt::format("{}[{}] is {} instead of {} (largest {:.2g})", leaf, i, a[i],
                           b[i], largest(w));
  }
  return {};
}

std::string failure(RandomModel& m, std::uint64_t seed) {
  const StateDict one = learned(m, {.seed = seed});
  std::string wrong = difference(
      one, learned(m, {.seed = seed, .executor = ExecutorKind::interpreter}), false);
  if (wrong.empty())
    wrong = difference(learned(m, {.seed = seed, .threads = 2}), one, true);
  return wrong;
}

}  // namespace

TEST_CASE("random models of odd sizes learn by plan as by interpreter") {
  std::uint64_t checked = 0;
  for (std::uint64_t seed = 1; seed <= kModels; ++seed) {
    RandomModel m(seed, {.odd_sizes = true});
    std::string wrong;
    try {
      wrong = failure(m, seed);
    } catch (const UserError&) {
      continue;  // refused by the compiler or the rule
    } catch (const std::exception& e) {
      wrong = e.what();
    }
    ++checked;
    if (!wrong.empty())
      FAIL_CHECK("seed " << seed << ", " << rule_of(seed).name << ": " << wrong << "\n"
                         << m.text());
  }
  MESSAGE(checked << " models");
  CHECK(checked >= kModels / 3);
}

}  // namespace planned_property_test
