// SPDX-License-Identifier: Apache-2.0
// Back-propagation through a long sequence with the states of segment starts in store:
// forward once, keeping those; then segment by segment from the last one, forward again
// and back. Memory is that of one segment plus one set of states per segment.
#include <algorithm>

#include "braintrace/algo/window_program.h"
#include "braintrace/train/grad_driver_impl.h"

namespace braintrace {

// The whole sequence when there are no segments.
std::int64_t GradDriver::segment_length() const {
  if (!learner_.is_bptt() || !windowed_) return length_;
  return steps_per_segment(learner_.algorithm.options.bptt_segments, length_);
}

std::shared_ptr<Executable> GradDriver::segment_program(std::int64_t steps) {
  return learner_.window_program(*traced_, wanted_,
                                 {.steps = steps, .length = steps, .signals = true});
}

GradDriver::States GradDriver::states_of(const StepProgram& p) const {
  States out;
  for (const ProgramLeaf& leaf : p.leaves)
    if (leaf.exit) out.push_back(leaf.state->stored(leaf.leaf));
  return out;
}

void GradDriver::restore(const StepProgram& p, const States& states) const {
  std::size_t at = 0;
  for (const ProgramLeaf& leaf : p.leaves)
    if (leaf.exit) leaf.state->store(leaf.leaf, states[at++]);
}

void GradDriver::run_segments(const Fetch& fetch, GradResult& result) {
  const std::int64_t each = segment_length();
  const std::int64_t calls = learner_.calls, trace_steps = learner_.trace_steps;
  const auto steps_at = [&](std::int64_t t) { return std::min(each, length_ - t); };
  program_ = segment_program(each);
  const StepProgram& layout = program_->program();
  std::vector<States> entries;  // of every segment
  for (std::int64_t t = 0; t < length_; t += each) {
    entries.push_back(states_of(layout));
    if (t + each >= length_) break;  // the last one runs forward on its way back
    fetch(t, each, true, args_);
    const std::span<const Array> args = learner_.cast(args_);
    const std::shared_ptr<Executable> e = learner_.window_program(
        *traced_, wanted_, {.steps = each, .length = length_, .gradient = false});
    learner_.call(*e, args, {}, caller_);
  }
  States last;
  std::vector<Array> signals;  // of the states at exit
  std::vector<std::vector<std::vector<Array>>> aux;
  for (std::size_t s = entries.size(); s-- > 0;) {
    const std::int64_t t = static_cast<std::int64_t>(s) * each, steps = steps_at(t);
    program_ = segment_program(steps);
    const StepProgram& p = program_->program();
    restore(p, entries[s]);
    entries.pop_back();
    if (signals.empty())
      for (std::size_t i = 0; i < p.num_signals; ++i) {
        const Type& type = p.graph.type(p.graph.inputs()[p.first_signal() + i]);
        signals.push_back(zeros(type.shape, type.dtype));
      }
    fetch(t, steps, true, args_);
    set_weights(t, steps);
    aux_.clear();
    learner_.call(*program_, learner_.cast(args_), weights_, caller_, signals);
    note_results(t, steps);
    aux.push_back(std::move(aux_));
    if (last.empty()) last = states_of(p);
    const std::span<Array> entry = program_->entry_signals();
    for (std::size_t i = 0; i < signals.size(); ++i) std::swap(signals[i], entry[i]);
    add_gradients(result);
  }
  restore(program_->program(), last);
  learner_.calls = calls + 1;
  learner_.trace_steps = trace_steps + length_;
  aux_.clear();
  for (auto it = aux.rbegin(); it != aux.rend(); ++it) {
    aux_.resize(it->size());
    for (std::size_t i = 0; i < it->size(); ++i)
      aux_[i].insert(aux_[i].end(), (*it)[i].begin(), (*it)[i].end());
  }
  result.steps = length_;
  for (std::int64_t t = 0; options_.loss_sink && t < length_; ++t)
    options_.loss_sink(t, losses_[static_cast<std::size_t>(t)]);
  if (options_.progress) options_.progress(length_, length_);
}

}  // namespace braintrace
