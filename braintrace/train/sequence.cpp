// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/sequence.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "braintrace/train/learner_impl.h"

namespace braintrace {

Array rows(const Array& a, std::int64_t t, std::int64_t count) {
  Shape size = a.shape();
  Ints start(size.size(), 0), step(size.size(), 1);
  start[0] = t;
  size[0] = count;
  return a.sliced(start, size, step);
}

Array row(const Array& a, std::int64_t t) {
  return rows(a, t, 1).reshaped(Shape(a.shape().begin() + 1, a.shape().end()));
}

Array stacked(const std::vector<Array>& parts) {
  BT_INVARIANT(!parts.empty());
  Values values;
  for (const Array& a : parts) values.emplace_back(a);
  return stack(values, 0).array();
}

namespace {

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

// A source may read a sensor or a file: it is asked once for every step, although the
// types of a window's first step are needed before its values.
class AskedOnce {
 public:
  explicit AskedOnce(const SequenceSource& source) : source_(source) {}
  const std::vector<Array>& operator()(std::int64_t t) {
    if (t != step_) args_ = source_.at(t);
    step_ = t;
    return args_;
  }

 private:
  const SequenceSource& source_;
  std::int64_t step_ = -1;
  std::vector<Array> args_;
};

}  // namespace

// Runs one gradient call per step, chunk or window and adds up.
class GradDriver {
 public:
  // Arguments of `count` steps from t on; stacked unless `stacked` is false.
  using Fetch =
      std::function<std::vector<Array>(std::int64_t t, std::int64_t count, bool stacked)>;

  GradDriver(Learner& learner, const TracedFn& loss, const GradOptions& options,
             std::int64_t length)
      : learner_(*learner.impl_), loss_(loss), options_(options), length_(length) {
    chunk_ = checked_chunk(options.chunk_size, length, "etrace_grad");
    BT_REQUIRE(chunk_ == 1 || !learner_.options.vmap,
               "etrace_grad: windows are not available under vmap");
    BT_REQUIRE(
        chunk_ == 1 || learner_.algorithm.vjp_method == VjpMethod::multi_step,
        fmt::format("etrace_grad: chunk_size {} needs vjp_method multi-step", chunk_));
    BT_REQUIRE(options.window >= 0,
               fmt::format("etrace_grad: window must be >= 0, got {}", options.window));
    if (!options.mask) return;
    mask_ = options.mask->to_doubles();
    BT_REQUIRE(options.mask->shape() == Shape{length},
               fmt::format("etrace_grad: mask must have shape ({},), got {}", length,
                           to_string(options.mask->shape())));
  }

  GradResult run(const Fetch& fetch) {
    windowed_ = use_windows();
    for (std::int64_t t = 0; t < length_;) {
      const std::int64_t count = windowed_ ? window_at(t, fetch) : chunk_;
      const std::vector<Array> args = fetch(t, count, windowed_ || chunk_ > 1);
      call(t, count, learner_.cast(args));
      t += count;
      result_.steps = t;
      if (options_.progress && !options_.progress(t, length_)) break;
    }
    return finish();
  }

 private:
  double mask(std::int64_t t) const {
    return mask_.empty() ? 1 : mask_[static_cast<std::size_t>(t)];
  }

  // Windows give the numbers of single steps; a multi-step rule would become another one,
  // so there they must be asked for.
  bool use_windows() const {
    if (chunk_ > 1 || learner_.options.vmap || options_.window == 1) return false;
    if (learner_.is_bptt()) return true;
    if (learner_.algorithm.vjp_method == VjpMethod::multi_step)
      return options_.window > 1;
    const bool given = !learner_.rule_inputs.empty();  // one value for every step
    return !given && length_ > 1;
  }

  Learner::Impl::WindowOptions window_options(std::int64_t t) const {
    const std::int64_t rest = length_ - t;
    const std::int64_t whole = learner_.is_bptt() ? rest : options_.window;
    return {.steps = std::min(whole, rest),
            .bytes = options_.window_bytes,
            .length = rest,
            .carry = options_.carry_traces};
  }

  std::vector<Type> step_types(const Fetch& fetch, std::int64_t t) const {
    std::vector<Type> types;
    const std::vector<Array> args = fetch(t, 1, false);
    for (const Array& a : learner_.cast(args)) types.push_back(type_of(a));
    return types;
  }

  // Compiles for the window that starts at t; its length.
  std::int64_t window_at(std::int64_t t, const Fetch& fetch) {
    const std::int64_t rest = length_ - t;
    if (program_ && program_->program().steps <= rest && !learner_.is_bptt())
      return program_->program().steps;
    program_ = learner_.window_program(step_types(fetch, t), loss_, leaves_wanted(),
                                       window_options(t), "etrace_grad");
    return program_->program().steps;
  }

  void call(std::int64_t t, std::int64_t count, std::span<const Array> args) {
    if (!program_) {
      std::vector<Type> types;
      for (const Array& a : args) types.push_back(type_of(a));
      program_ = learner_.gradient_program(types, loss_, leaves_wanted(),
                                           chunk_ > 1 ? chunk_ : 0, "etrace_grad");
    }
    std::vector<double> weights;
    for (std::int64_t k = 0; k < count; ++k) weights.push_back(mask(t + k));
    learner_.call(*program_, args, weights, "etrace_grad");
    const std::span<const Array> results = program_->results();
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (aux_.size() <= i) aux_.emplace_back();
      for (std::int64_t k = 0; windowed_ && k < count; ++k)
        aux_[i].push_back(row(results[i], k).contiguous());
      if (!windowed_) aux_[i].push_back(results[i]);
    }
    note_losses(t);
    add_gradients();
  }

  void note_losses(std::int64_t t) {
    const std::vector<double> losses = program_->outputs[0].to_doubles();
    for (std::size_t k = 0; k < losses.size(); ++k) {
      const std::int64_t at = t + static_cast<std::int64_t>(k);
      if (options_.loss_sink) {
        options_.loss_sink(at, losses[k]);
        masked_sum_ += losses[k] * mask(at);
        continue;
      }
      losses_.push_back(losses[k]);
    }
  }

  void add_gradients() {
    for (const auto& [leaf, g] : program_->gradients()) {
      const auto it = result_.grads.find(leaf);
      if (it == result_.grads.end())
        result_.grads.emplace(leaf, g);
      else
        it->second = (Value(it->second) + Value(g)).array();
    }
  }

  // A parameter stands for all its leaves.
  std::vector<std::string> leaves_wanted() const {
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
      BT_REQUIRE(found, fmt::format("etrace_grad: no parameter '{}'", w));
    }
    return out;
  }

  double denominator() const {
    double sum = 0;
    for (std::int64_t t = 0; t < length_; ++t) sum += mask(t);
    return options_.reduction == Reduction::mean ? std::max(sum, 1.0) : 1.0;
  }

  GradResult finish() {
    const double denom = denominator();
    if (denom != 1)
      for (auto& [leaf, g] : result_.grads) g = (Value(g) / denom).array();
    const DType dtype = learner_.rule->scalar_dtype();
    double total = masked_sum_;
    for (std::size_t t = 0; t < losses_.size(); ++t)
      total += losses_[t] * mask(static_cast<std::int64_t>(t));
    if (options_.loss_output == LossOutput::scalar) {
      result_.losses = scalar(total / denom, dtype);
    } else {
      Array all = zeros({static_cast<std::int64_t>(losses_.size())}, DType::f64);
      for (std::size_t t = 0; t < losses_.size(); ++t)
        all.mutable_data<double>()[t] =
            losses_[t] * (options_.loss_output == LossOutput::masked
                              ? mask(static_cast<std::int64_t>(t))
                              : 1.0);
      result_.losses = all.astype(dtype);
    }
    for (const std::vector<Array>& parts : aux_) result_.aux.push_back(stacked(parts));
    return std::move(result_);
  }

  Learner::Impl& learner_;
  const TracedFn& loss_;
  const GradOptions& options_;
  std::int64_t length_, chunk_ = 1;
  bool windowed_ = false;
  std::vector<double> mask_, losses_;
  double masked_sum_ = 0;
  std::shared_ptr<Executable> program_;
  std::vector<std::vector<Array>> aux_;
  GradResult result_;
};

GradResult Learner::etrace_grad(const std::vector<Array>& sequences, const TracedFn& loss,
                                const GradOptions& options) {
  const std::int64_t length = common_length(sequences, "etrace_grad");
  GradDriver driver(*this, loss, options, length);
  return driver.run([&](std::int64_t t, std::int64_t count, bool stacked) {
    std::vector<Array> args;
    for (const Array& s : sequences)
      args.push_back(stacked ? rows(s, t, count).contiguous() : row(s, t).contiguous());
    return args;
  });
}

GradResult Learner::etrace_grad(const SequenceSource& source, const TracedFn& loss,
                                const GradOptions& options) {
  BT_REQUIRE(source.length >= 1 && source.at,
             fmt::format("etrace_grad: a source needs a length >= 1 and a function, got "
                         "length {}",
                         source.length));
  GradDriver driver(*this, loss, options, source.length);
  AskedOnce ask(source);
  return driver.run([&](std::int64_t t, std::int64_t count, bool stack_steps) {
    if (!stack_steps) return ask(t);
    std::vector<std::vector<Array>> parts;
    for (std::int64_t k = 0; k < count; ++k) {
      const std::vector<Array>& args = ask(t + k);
      parts.resize(args.size());
      for (std::size_t i = 0; i < args.size(); ++i) parts[i].push_back(args[i]);
    }
    std::vector<Array> out;
    for (const std::vector<Array>& p : parts) out.push_back(stacked(p));
    return out;
  });
}

GradResult Learner::etrace_grad(const Array& xs, const Array& ys, const PairLoss& loss,
                                const GradOptions& options) {
  return etrace_grad(
      std::vector{xs, ys},
      [&](const Values& in) {
        return LossResult{.loss = loss(in[0], in[1]), .results = {}};
      },
      options);
}

std::vector<Array> Learner::etrace_evolve(const std::vector<Array>& sequences,
                                          const EvolveOptions& options) {
  const std::int64_t length = common_length(sequences, "etrace_evolve");
  const std::int64_t chunk = checked_chunk(options.chunk_size, length, "etrace_evolve");
  BT_REQUIRE(chunk == 1 || !this->options().vmap,
             "etrace_evolve: windows are not available under vmap");
  std::vector<std::vector<Array>> outputs;
  for (std::int64_t t = 0; t < length; t += chunk) {
    std::vector<Array> args;
    for (const Array& s : sequences)
      args.push_back(chunk > 1 ? rows(s, t, chunk).contiguous() : row(s, t).contiguous());
    const std::span<const Array> given = impl_->cast(args);
    const std::shared_ptr<Executable> e =
        impl_->evolve_program(given, chunk > 1 ? chunk : 0);
    impl_->call(*e, given, {}, "etrace_evolve");
    const std::span<const Array> out = e->results();
    if (!options.return_outputs) continue;
    outputs.resize(out.size());
    for (std::size_t i = 0; i < out.size(); ++i) outputs[i].push_back(out[i]);
  }
  std::vector<Array> result;
  for (const std::vector<Array>& parts : outputs) result.push_back(stacked(parts));
  return result;
}

void Learner::etrace_evolve(const SequenceSource& source) {
  for (std::int64_t t = 0; t < source.length; ++t) step(source.at(t));
}

}  // namespace braintrace
