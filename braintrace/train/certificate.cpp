// SPDX-License-Identifier: Apache-2.0
#include "braintrace/base/certificate.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "braintrace/train/certificate_verdicts.h"
#include "braintrace/train/learner_impl.h"
#include "braintrace/train/populations.h"

namespace braintrace {
namespace {

Array copied(const Array& a) {
  const Array packed = a.contiguous();
  Array out = zeros(packed.shape(), packed.dtype());
  std::memcpy(out.mutable_raw(), packed.raw(), packed.num_bytes());
  return out;
}

// The states of a step as they are now; back() puts them there again.
class SavedStates {
 public:
  explicit SavedStates(const StepModel& step) {
    for (const StepState& s : step.states)
      for (std::size_t k = 0; k < s.in.size(); ++k)
        saved_.push_back({s.state, k, copied(s.state->stored(k))});
  }
  void back() const {
    for (const Saved& s : saved_) s.state->store(s.leaf, copied(s.value));
  }

 private:
  struct Saved {
    State* state;
    std::size_t leaf;
    Array value;
  };
  std::vector<Saved> saved_;
};

double largest_entry(const Array& a) {
  double most = 0;
  for (double v : a.to_doubles()) most = std::max(most, std::abs(v));
  return most;
}

// Signs of life of one array that changes from step to step.
class Pulse {
 public:
  void add(const Array& now) {
    std::vector<double> v = now.to_doubles();
    for (std::size_t i = 0; i < v.size(); ++i) {
      largest_ = std::max(largest_, std::abs(v[i]));
      sum_ += v[i];
      if (last_.size() == v.size()) moved_ += (v[i] - last_[i]) * (v[i] - last_[i]);
    }
    if (last_.size() == v.size()) moves_ += static_cast<double>(v.size());
    count_ += static_cast<double>(v.size());
    last_ = std::move(v);
  }
  CertificateState state(std::string name, bool spikes) const {
    CertificateState s{.state = std::move(name), .largest = largest_};
    s.change = moves_ > 0 ? std::sqrt(moved_ / moves_) : 0;
    if (spikes) s.rate = count_ > 0 ? sum_ / count_ : 0;
    return s;
  }

 private:
  std::vector<double> last_;
  double largest_ = 0, sum_ = 0, moved_ = 0, count_ = 0, moves_ = 0;
};

struct Difference {
  double ab = 0, aa = 0, bb = 0, dd = 0;
  void add(const Array& online, const Array& bptt) {
    const std::vector<double> a = online.to_doubles(), b = bptt.to_doubles();
    for (std::size_t i = 0; i < a.size(); ++i) {
      ab += a[i] * b[i];
      aa += a[i] * a[i];
      bb += b[i] * b[i];
      dd += (a[i] - b[i]) * (a[i] - b[i]);
    }
  }
  double cosine() const {
    return aa == 0 || bb == 0 ? 0 : ab / (std::sqrt(aa) * std::sqrt(bb));
  }
  double error() const { return dd == 0 ? 0 : bb == 0 ? INFINITY : std::sqrt(dd / bb); }
};

// What is below, beside the largest gradient, rounding may have made. Terms that cancel
// leave less than one epsilon where inputs are of size 1, tens where they are small.
double rounding_of(DType dtype) { return dtype == DType::f64 ? 1e-13 : 1e-6; }

void mark_zeros(CertificateData& c, const StateDict& bptt) {
  double most = 0;
  for (const CertificateRow& r : c.rows)
    if (std::isfinite(r.bptt_norm)) most = std::max(most, r.bptt_norm);
  for (CertificateRow& r : c.rows) {
    const double bound = rounding_of(bptt.at(r.parameter).dtype()) * most;
    r.zero = r.norm <= bound && r.bptt_norm <= bound;
    if (r.zero) r.cosine = r.error = 0;
    if (r.bptt_norm == 0)
      c.warnings.push_back("no credit reaches " + r.parameter);
    else if (r.zero)
      c.warnings.push_back("the gradient of " + r.parameter + " is zero up to rounding");
  }
}

void add_rows(CertificateData& c, const StateDict& online, const StateDict& bptt,
              const std::map<std::string, Promise>& promised) {
  Difference total;
  for (const auto& [leaf, reference] : bptt) {
    const auto it = online.find(leaf);
    BT_INVARIANT(it != online.end());
    Difference d;
    d.add(it->second, reference);
    total.add(it->second, reference);
    CertificateRow r{.parameter = leaf};
    // A parameter with several leaves has one verdict for all of them.
    auto p = promised.find(leaf);
    if (p == promised.end()) p = promised.find(leaf.substr(0, leaf.rfind('/')));
    r.verdict = p == promised.end() ? "exact" : p->second.verdict;
    r.because = p == promised.end() ? "only the loss reads it" : p->second.because;
    r.cosine = d.cosine();
    r.error = d.error();
    r.norm = std::sqrt(d.aa);
    r.bptt_norm = std::sqrt(d.bb);
    c.rows.push_back(std::move(r));
  }
  mark_zeros(c, bptt);
  c.cosine = total.cosine();
  c.error = total.error();
}

bool is_leaf_of(const std::string& leaf, const std::string& parameter) {
  return leaf == parameter || leaf.starts_with(parameter + "/");
}

// What the promise of a row is about has happened.
void add_trace_maxima(CertificateData& c, const std::vector<TraceView>& traces,
                      const ETraceGraph& graph) {
  for (const TraceView& t : traces) {
    if (t.slot.relation < 0 && !t.slot.parameter) continue;
    const Path owner =
        t.slot.parameter
            ? *t.slot.parameter
            : graph.hidden_param_op_relations[static_cast<std::size_t>(t.slot.relation)]
                  .path();
    for (CertificateRow& r : c.rows)
      if (is_leaf_of(r.parameter, to_slashes(owner)))
        r.trace_max = std::max(r.trace_max, largest_entry(t.value));
  }
}

}  // namespace

class Certifier {
 public:
  Certifier(Learner& learner, const std::vector<Array>& sequences, const TracedFn& loss)
      : learner_(learner),
        sequences_(sequences),
        loss_(loss),
        states_(learner.graph().module_info.step),
        own_(learner.impl_.get()),
        traces_are_zero_(learner.impl_->traces_are_zero),
        calls_(learner.running_index()),
        trace_steps_(learner.trace_steps()) {
    for (const Array& t : own_->traces) traces_.push_back(copied(t));
    // The same learner with back-propagation for its rule: losses call it by name.
    twin_ = std::make_unique<Learner::Impl>(own_->model, BPTT{}, own_->options);
    twin_->options.learning = {};
    twin_->examples = own_->examples;
    twin_->drops_modulators = true;
    const std::shared_ptr<const ETraceGraph> same(&learner.graph(),
                                                  [](const ETraceGraph*) {});
    twin_->rule = std::make_unique<CompiledRule>(same, BPTT{}, LearningOptions{});
  }
  ~Certifier() {
    if (learner_.impl_.get() != own_) learner_.impl_.swap(twin_);
    own_->traces = std::move(traces_);
    own_->traces_are_zero = traces_are_zero_;
    own_->broken = false;
    own_->calls = calls_;
    own_->trace_steps = trace_steps_;
    states_.back();
  }
  Certifier(const Certifier&) = delete;

  CertificateData run(std::int64_t window) {
    CertificateData c{.algorithm = learner_.algorithm().name};
    c.history = learner_.options().learning.history == History::deep ? "deep" : "direct";
    learner_.reset_state();
    if (own_->is_bptt()) window = 0;  // one step at a time it would be another rule
    const GradResult online = learner_.etrace_grad(
        sequences_, loss_, {.window = window, .reduction = Reduction::sum});
    c.steps = online.steps;
    const bool by_steps = learner_.options().vmap;  // whatever window was asked for
    c.window = window == 0 || by_steps ? learner_.last_program()->steps : window;
    const auto promised = promises(learner_.graph(), learner_.algorithm(),
                                   learner_.options().learning, c.window >= c.steps);
    const std::vector<TraceView> after = learner_.etraces();

    learner_.impl_.swap(twin_);
    states_.back();
    const GradResult bptt =
        learner_.etrace_grad(sequences_, loss_, {.reduction = Reduction::sum});
    for (double v : bptt.losses.to_doubles())
      c.loss += v / static_cast<double>(bptt.steps);
    add_rows(c, online.grads, bptt.grads, promised);
    add_trace_maxima(c, after, learner_.graph());
    feel_pulses(c);
    return c;
  }

 private:
  // Step by step, without traces.
  void feel_pulses(CertificateData& c) {
    states_.back();
    const std::vector<HiddenVar>& hidden = learner_.graph().module_info.hidden;
    const std::vector<Population> neurons = spiking_populations(learner_.model());
    std::vector<Pulse> pulses(hidden.size() + neurons.size());
    GradOptions by_step{.window = 1, .reduction = Reduction::sum};
    by_step.progress = [&](std::int64_t, std::int64_t) {
      for (std::size_t i = 0; i < hidden.size(); ++i)
        pulses[i].add(hidden[i].state->stored());
      for (std::size_t i = 0; i < neurons.size(); ++i)
        pulses[hidden.size() + i].add(neurons[i].neuron->get_spike().array());
      return true;
    };
    learner_.impl_->goes_by_steps = true;
    learner_.etrace_grad(sequences_, loss_, by_step);
    for (std::size_t i = 0; i < pulses.size(); ++i) {
      const bool spikes = i >= hidden.size();
      const std::string name =
          spikes ? neurons[i - hidden.size()].path : to_slashes(hidden[i].path);
      c.states.push_back(pulses[i].state(name, spikes));
      if (c.states.back().largest == 0)
        c.warnings.push_back(name + (spikes ? " never fires" : " stays zero"));
    }
  }

  Learner& learner_;
  const std::vector<Array>& sequences_;
  const TracedFn& loss_;
  SavedStates states_;
  Learner::Impl* own_;
  std::unique_ptr<Learner::Impl> twin_;
  std::vector<Array> traces_;
  bool traces_are_zero_;
  std::int64_t calls_, trace_steps_;
};

CertificateData Learner::certificate(const std::vector<Array>& sequences,
                                     const TracedFn& loss, std::int64_t window) {
  const auto mine = claim("certificate");
  return Certifier(*this, sequences, loss).run(window);
}

CertificateData Learner::certificate(const Array& xs, const Array& ys,
                                     const PairLoss& loss, std::int64_t window) {
  return certificate(
      std::vector{xs, ys},
      [&](const Values& in) {
        return LossResult{.loss = loss(in[0], in[1]), .results = {}};
      },
      window);
}

}  // namespace braintrace
