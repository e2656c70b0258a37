// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/sequence.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "braintrace/train/grad_driver_impl.h"

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

void check(const SequenceSource& source, std::string_view caller) {
  BT_REQUIRE(source.length >= 1, fmt::format("{}: a source needs a length >= 1, got {}",
                                             caller, source.length));
  BT_REQUIRE(source.at, fmt::format("{}: a source needs a function", caller));
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

GradResult Learner::etrace_grad(const std::vector<Array>& sequences, const TracedFn& loss,
                                const GradOptions& options) {
  const auto mine = claim("etrace_grad");
  const std::int64_t length = common_length(sequences, "etrace_grad");
  GradDriver driver(*this, loss, options, length);
  GradResult result;
  const auto fetch = [&](std::int64_t t, std::int64_t count, bool stacked,
                         std::vector<Array>& args) {
    args.clear();
    for (const Array& s : sequences)
      args.push_back(stacked ? rows(s, t, count).contiguous() : row(s, t).contiguous());
  };
  driver.run(fetch, result);
  return result;
}

GradResult Learner::etrace_grad(const SequenceSource& source, const TracedFn& loss,
                                const GradOptions& options) {
  const auto mine = claim("etrace_grad");
  check(source, "etrace_grad");
  GradDriver driver(*this, loss, options, source.length);
  AskedOnce ask(source);
  GradResult result;
  const auto fetch = [&](std::int64_t t, std::int64_t count, bool stack_steps,
                         std::vector<Array>& args) {
    if (!stack_steps) {
      args = ask(t);
      return;
    }
    std::vector<std::vector<Array>> parts;
    for (std::int64_t k = 0; k < count; ++k) {
      const std::vector<Array>& given = ask(t + k);
      parts.resize(given.size());
      for (std::size_t i = 0; i < given.size(); ++i) parts[i].push_back(given[i]);
    }
    args.clear();
    for (const std::vector<Array>& p : parts) args.push_back(stacked(p));
  };
  driver.run(fetch, result);
  return result;
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
  const auto mine = claim("etrace_evolve");
  const std::int64_t length = common_length(sequences, "etrace_evolve");
  const std::int64_t chunk = checked_chunk(options.chunk_size, length, "etrace_evolve");
  BT_REQUIRE(chunk == 1 || !this->options().vmap,
             "etrace_evolve: windows are not available under vmap");
  std::vector<std::vector<Array>> outputs;
  std::vector<Array> args;
  const bool whole = chunk == length && chunk > 1 &&
                     std::all_of(sequences.begin(), sequences.end(),
                                 [](const Array& a) { return a.is_contiguous(); });
  for (std::int64_t t = 0; t < length; t += chunk) {
    args.clear();
    for (std::size_t i = 0; i < sequences.size() && !whole; ++i) {
      const Array& s = sequences[i];
      args.push_back(chunk > 1 ? rows(s, t, chunk).contiguous() : row(s, t).contiguous());
    }
    const std::span<const Array> given = impl_->cast(whole ? sequences : args);
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
  const auto mine = claim("etrace_evolve");
  check(source, "etrace_evolve");
  for (std::int64_t t = 0; t < source.length; ++t) step(source.at(t));
}

}  // namespace braintrace
