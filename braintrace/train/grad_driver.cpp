// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "braintrace/train/grad_driver_impl.h"
#include "braintrace/train/room_impl.h"

namespace braintrace {
std::int64_t common_length(const std::vector<Array>& sequences, std::string_view caller) {
  BT_REQUIRE(!sequences.empty(),
             fmt::format("{}: at least one sequence is needed", caller));
  std::optional<std::int64_t> length;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    BT_REQUIRE(!sequences[i].shape().empty(),
               fmt::format("{}: sequence {} is a scalar; it needs a leading time axis",
                           caller, i));
    const std::int64_t n = sequences[i].shape()[0];
    BT_REQUIRE(!length || *length == n,
               fmt::format("{}: sequences must have one length, got {} and {}", caller,
                           *length, n));
    length = n;
  }
  BT_REQUIRE(*length >= 1, fmt::format("{}: the sequence is empty", caller));
  return *length;
}

std::int64_t checked_chunk(std::optional<std::int64_t> chunk, std::int64_t length,
                           std::string_view caller) {
  if (!chunk) return 1;
  BT_REQUIRE(*chunk >= 1,
             fmt::format("{}: chunk_size must be >= 1, got {}", caller, *chunk));
  BT_REQUIRE(length % *chunk == 0,
             fmt::format("{}: chunk_size {} does not divide the length {}", caller,
                         *chunk, length));
  return *chunk;
}

GradDriver::GradDriver(Learner& learner, TracedFn loss, GradOptions options,
                       std::int64_t length, std::string caller)
    : learner_(*learner.impl_),
      loss_(std::move(loss)),
      options_(std::move(options)),
      length_(length),
      caller_(std::move(caller)) {
  chunk_ = checked_chunk(options_.chunk_size, length, caller_);
  BT_REQUIRE(chunk_ == 1 || !learner_.options.vmap,
             fmt::format("{}: windows are not available under vmap", caller_));
  BT_REQUIRE(
      chunk_ == 1 || learner_.algorithm.vjp_method == VjpMethod::multi_step,
      fmt::format("{}: chunk_size {} needs vjp_method multi-step", caller_, chunk_));
  BT_REQUIRE(options_.window >= 0,
             fmt::format("{}: window must be >= 0, got {}", caller_, options_.window));
  // Of other rules a window has the numbers of single steps, which lanes take.
  BT_REQUIRE(options_.window <= 1 || !learner_.options.vmap || learner_.is_bptt() ||
                 learner_.algorithm.vjp_method != VjpMethod::multi_step,
             fmt::format("{}: windows of multi-step rules are not available under vmap: "
                         "window must be 0 or 1, got {}",
                         caller_, options_.window));
  set_mask(options_.mask);
  set_modulators(options_.modulators);
  if (loss_) return;
  BT_REQUIRE_KIND(options_.modulators.has_value(), ErrorKind::type,
                  fmt::format("{}: without a loss modulators must be given", caller_));
  loss_ = [this](const Values& in) {
    return LossResult{.loss = learner_.without_loss(in, {}).loss, .results = {}};
  };
}

void GradDriver::set_modulators(const std::optional<Array>& modulators) {
  if (!modulators) {
    options_.modulators.reset();
    return;
  }
  Shape shape = modulators->shape();
  const bool fits = !shape.empty() && shape[0] == length_;
  if (!shape.empty()) shape.erase(shape.begin());
  if (!fits) shape.clear();
  learner_.check_modulator(shape, caller_);
  BT_REQUIRE(fits,
             fmt::format("{}: modulators need a leading axis of {} steps, got shape {}",
                         caller_, length_, to_string(modulators->shape())));
  options_.modulators = modulators->astype(learner_.rule->scalar_dtype()).contiguous();
}

class GradDriver::GivenModulators {
 public:
  explicit GivenModulators(GradDriver& driver)
      : given_(driver.options_.modulators), learner_(driver.learner_) {
    if (!given_) return;
    type_ = learner_.rule->modulator;
    if (type_) standing_ = learner_.rule_inputs.at("modulator");
    put(0);
    learner_.rule->modulator = type_of(learner_.rule_inputs.at("modulator"));
  }
  ~GivenModulators() {
    if (!given_) return;
    learner_.rule->modulator = type_;
    learner_.rule_inputs.erase("modulator");
    if (standing_) learner_.rule_inputs["modulator"] = std::move(*standing_);
  }
  GivenModulators(const GivenModulators&) = delete;
  GivenModulators& operator=(const GivenModulators&) = delete;

  void put(std::int64_t t) {
    if (given_) learner_.rule_inputs["modulator"] = row(*given_, t).contiguous();
  }

 private:
  const std::optional<Array>& given_;
  Learner::Impl& learner_;
  std::optional<Type> type_;       // of the standing one
  std::optional<Array> standing_;  // an Array of its own would allocate
};

void GradDriver::set_mask(const std::optional<Array>& mask) {
  mask_.clear();
  if (!mask) return;
  BT_REQUIRE(mask->shape() == Shape{length_},
             fmt::format("{}: mask must have shape ({},), got {}", caller_, length_,
                         to_string(mask->shape())));
  for (std::int64_t t = 0; t < length_; ++t) mask_.push_back(mask->at(t));
}

void GradDriver::prepare(const Fetch& fetch) {
  const GivenModulators modulators(*this);
  const bool windowed = use_windows();
  if (epoch_ == learner_.epoch && windowed == windowed_ &&
      modulator_ == learner_.rule->modulator)
    return;
  windowed_ = windowed;
  trace(fetch);
}

void GradDriver::run(const Fetch& fetch, GradResult& result) {
  prepare(fetch);
  GivenModulators modulators(*this);
  keeps_losses_ = !options_.loss_sink || segment_length() < length_;
  if (keeps_losses_) losses_.assign(static_cast<std::size_t>(length_), 0);
  masked_sum_ = 0;
  aux_.clear();
  added_ = false;
  if (windowed_) program_ = nullptr;  // traces may be zero now, or no longer
  if (segment_length() < length_) {
    run_segments(fetch, result);
    return finish(result);
  }
  for (std::int64_t t = 0; t < length_;) {
    const std::int64_t count = windowed_ ? window_at(t) : chunk_;
    fetch(t, count, windowed_ || chunk_ > 1, args_);
    modulators.put(t);
    call(t, count, learner_.cast(args_));
    add_gradients(result);
    t += count;
    result.steps = t;
    if (options_.progress && !options_.progress(t, length_)) break;
  }
  if (!options_.carry_traces) learner_.end_history();
  finish(result);
}

// Windows give the numbers of single steps; a multi-step rule would become another one,
// so there they must be asked for.
bool GradDriver::use_windows() const {
  if (chunk_ > 1) return false;
  // Step by step BPTT would be another rule.
  if (learner_.is_bptt() && !learner_.goes_by_steps) return true;
  if (learner_.options.vmap || options_.window == 1) return false;
  if (learner_.algorithm.config.learning_signal() == LearningSignal::modulatory)
    return false;
  if (learner_.algorithm.vjp_method == VjpMethod::multi_step) return options_.window > 1;
  const bool given = !learner_.rule_inputs.empty();  // one value for every step
  return !given && length_ > 1;
}

void GradDriver::trace(const Fetch& fetch) {
  wanted_ = leaves_wanted();
  fetch(0, windowed_ ? 1 : chunk_, !windowed_ && chunk_ > 1, args_);
  std::vector<Type> types;
  for (const Array& a : learner_.cast(args_)) types.push_back(type_of(a));
  if (windowed_)
    traced_ = learner_.traced_loss(types, loss_, wanted_, caller_);
  else
    program_ = learner_.gradient_program(types, loss_, wanted_, chunk_ > 1 ? chunk_ : 0,
                                         caller_);
  const auto& inputs = program_ ? program_->program().inputs : std::vector<RuleInput>{};
  BT_REQUIRE(!options_.modulators ||
                 std::any_of(inputs.begin(), inputs.end(),
                             [](const RuleInput& in) { return in.name == kModulator; }),
             fmt::format("{}: modulators are given twice, by the options and by the "
                         "function's own call of the learner",
                         caller_));
  epoch_ = learner_.epoch;
  modulator_ = learner_.rule->modulator;
}

// Compiles for the window that starts at t; its length.
std::int64_t GradDriver::window_at(std::int64_t t) {
  const std::int64_t rest = length_ - t;
  const std::int64_t before = program_ ? program_->program().steps : 0;
  const bool again = before > 0 && before <= rest && !learner_.is_bptt();
  const std::int64_t whole = learner_.is_bptt() ? rest : again ? before : options_.window;
  program_ = learner_.window_program(*traced_, wanted_,
                                     {.steps = std::min(whole, rest),
                                      .bytes = options_.window_bytes,
                                      .length = rest,
                                      .carry = options_.carry_traces});
  return program_->program().steps;
}

void GradDriver::set_weights(std::int64_t t, std::int64_t count) {
  weights_.clear();
  for (std::int64_t k = 0; k < count; ++k) weights_.push_back(mask(t + k));
}

void GradDriver::call(std::int64_t t, std::int64_t count, std::span<const Array> args) {
  set_weights(t, count);
  learner_.call(*program_, args, weights_, caller_);
  note_results(t, count);
}

// Losses at their steps; what else the function returned, in the order of the calls.
void GradDriver::note_results(std::int64_t t, std::int64_t count) {
  const std::span<const Array> results = program_->results();
  aux_.resize(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (std::int64_t k = 0; windowed_ && k < count; ++k)
      aux_[i].push_back(row(results[i], k).contiguous());
    if (!windowed_) aux_[i].push_back(results[i]);
  }
  const Array& losses = program_->outputs[0];
  for (std::int64_t k = 0; k < losses.size(); ++k) {
    masked_sum_ += losses.at(k) * mask(t + k);
    if (keeps_losses_)
      losses_[static_cast<std::size_t>(t + k)] = losses.at(k);
    else
      options_.loss_sink(t + k, losses.at(k));
  }
}

// The first gradients of a run change places with what the result has: nothing is copied,
// and the program finds room for the next ones.
void GradDriver::add_gradients(GradResult& result) {
  if (added_) return learner_.passes().add(result.grads, program_->gradients());
  for (auto& [leaf, g] : program_->gradients()) {
    Array& sum = result.grads[leaf];
    const bool keeps = has_room(sum, g);
    std::swap(sum, g);
    if (!keeps) g = Array();
  }
  added_ = true;
}

// A parameter stands for all its leaves.
std::vector<std::string> GradDriver::leaves_wanted() const {
  std::vector<std::string> out;
  for (const std::string& w : options_.weights) {
    bool found = false;
    for (const NamedState& s : collect_states(learner_.model)) {
      if (s.state->kind() != StateKind::param) continue;
      for (std::size_t k = 0; k < s.state->num_leaves(); ++k) {
        const std::string& key = s.state->spec(k).key;
        const std::string leaf = to_slashes(key.empty() ? s.path : s.path.child(key));
        if (leaf != w && to_slashes(s.path) != w) continue;
        found = true;
        out.push_back(leaf);
      }
    }
    BT_REQUIRE(found, fmt::format("{}: no parameter '{}'", caller_, w));
  }
  return out;
}

double GradDriver::denominator() const {
  double sum = 0;
  for (std::int64_t t = 0; t < length_; ++t) sum += mask(t);
  return options_.reduction == Reduction::mean ? std::max(sum, 1.0) : 1.0;
}

void GradDriver::finish(GradResult& result) {
  const double denom = denominator();
  if (denom != 1) learner_.passes().divide(result.grads, denom);
  const DType dtype = learner_.rule->scalar_dtype();
  const auto put = [&](Array& a, std::int64_t i, double v) {
    if (dtype == DType::f64)
      a.mutable_data<double>()[i] = v;
    else
      a.mutable_data<float>()[i] = static_cast<float>(v);
  };
  const bool scalar_loss = options_.loss_output == LossOutput::scalar;
  const std::int64_t kept = options_.loss_sink ? 0 : result.steps;
  const Array& old = result.losses;
  const bool fits = old.dtype() == dtype && old.rank() == (scalar_loss ? 0 : 1) &&
                    old.size() == (scalar_loss ? 1 : kept) && is_free(old);
  if (!fits) result.losses = zeros(scalar_loss ? Shape{} : Shape{kept}, dtype);
  if (scalar_loss) put(result.losses, 0, masked_sum_ / denom);
  for (std::int64_t t = 0; !scalar_loss && t < kept; ++t)
    put(result.losses, t,
        losses_[static_cast<std::size_t>(t)] *
            (options_.loss_output == LossOutput::masked ? mask(t) : 1.0));
  result.aux.clear();
  for (const std::vector<Array>& parts : aux_) result.aux.push_back(stacked(parts));
}

}  // namespace braintrace
