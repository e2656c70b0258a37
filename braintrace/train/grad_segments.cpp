// SPDX-License-Identifier: Apache-2.0
// Back-propagation through a long sequence with the states of segment starts in store:
// forward once, keeping those; then segment by segment from the last one, forward again
// and back. Memory is that of one segment plus one set of states per segment.
#include <algorithm>
#include <utility>

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

// Every segment as it begins; the model ends at the start of the last one.
std::vector<GradDriver::Segment> GradDriver::run_forward(const Fetch& fetch) {
  const std::int64_t each = segment_length();
  const std::shared_ptr<Executable> e = learner_.window_program(
      *traced_, wanted_, {.steps = each, .length = length_, .gradient = false});
  std::vector<Segment> segments;
  for (std::int64_t t = 0; t < length_; t += each) {
    fetch(t, std::min(each, length_ - t), true, args_);
    segments.push_back({states_of(e->program()), args_});
    if (t + each < length_) learner_.call(*e, learner_.cast(args_), {}, caller_);
  }
  return segments;
}

// From the last segment to the first. Returns the states at the end of the sequence.
GradDriver::States GradDriver::run_back(std::vector<Segment> segments,
                                        GradResult& result) {
  const std::int64_t each = segment_length();
  States end;
  std::vector<Array> signals;                        // of the states at exit
  std::vector<std::vector<std::vector<Array>>> aux;  // by segment, the last one first
  for (; !segments.empty(); segments.pop_back()) {
    const Segment& now = segments.back();
    const std::int64_t t = (std::ssize(segments) - 1) * each;
    const std::int64_t steps = std::min(each, length_ - t);
    program_ = segment_program(steps);
    const StepProgram& p = program_->program();
    restore(p, now.states);
    for (std::size_t i = signals.size(); i < p.num_signals; ++i) {
      const Type& type = p.graph.type(p.graph.inputs()[p.first_signal() + i]);
      signals.push_back(zeros(type.shape, type.dtype));
    }
    set_weights(t, steps);
    learner_.call(*program_, learner_.cast(now.args), weights_, caller_,
                  {.signals = signals});
    note_results(t, steps);
    aux.push_back(std::exchange(aux_, {}));
    if (end.empty()) end = states_of(p);
    const std::span<Array> entry = program_->entry_signals();
    for (std::size_t i = 0; i < signals.size(); ++i) std::swap(signals[i], entry[i]);
    add_gradients(result);
  }
  for (auto segment = aux.rbegin(); segment != aux.rend(); ++segment) {
    aux_.resize(segment->size());
    for (std::size_t i = 0; i < segment->size(); ++i)
      aux_[i].insert(aux_[i].end(), (*segment)[i].begin(), (*segment)[i].end());
  }
  return end;
}

void GradDriver::run_segments(const Fetch& fetch, GradResult& result) {
  const std::int64_t calls = learner_.calls, trace_steps = learner_.trace_steps;
  const std::shared_ptr<Executable> e = segment_program(segment_length());
  const StepProgram& layout = e->program();
  const States begin = states_of(layout);
  try {
    restore(layout, run_back(run_forward(fetch), result));
  } catch (...) {  // as if it had not been called
    restore(layout, begin);
    learner_.calls = calls;
    learner_.trace_steps = trace_steps;
    throw;
  }
  learner_.calls = calls + layout.calls;
  learner_.trace_steps = trace_steps + length_;
  result.steps = length_;
  for (std::int64_t t = 0; options_.loss_sink && t < length_; ++t)
    options_.loss_sink(t, losses_[static_cast<std::size_t>(t)]);
  if (options_.progress) options_.progress(length_, length_);
}

}  // namespace braintrace
