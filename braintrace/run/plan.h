// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fast executor: a program laid out once as a list of kernels on one block of memory,
// then run many times. The interpreter is its judge: elementwise work, copies, selections
// and gathers agree bit for bit, sums to rounding.
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "braintrace/ir/graph.h"

namespace braintrace {

class ThreadPool;

struct PlanOptions {
  int threads = 0;  // 0: environment BRAINTRACE_THREADS, else all cores
  // Threads that several plans of one caller share; null: own ones.
  std::shared_ptr<ThreadPool> pool = {};
  // (input, output) pairs that may share one buffer: states and traces updated in place.
  // The caller gives the input up where nobody else holds it; UserError for a pair of
  // different types or an input or output named twice.
  std::vector<std::pair<std::size_t, std::size_t>> in_place = {};
  bool profile = false;  // describe() then says what each kernel took (CPU time)
};

class Plan {  // movable; one caller at a time; owns its memory
 public:
  // Optimises the program, then lays it out.
  explicit Plan(const Graph& g, const PlanOptions& options = {});
  ~Plan();
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;

  // Inputs must have the graph's types (UserError). Outputs are allocated on first use,
  // then reused when the caller passes the arrays back: no allocation after warm-up when
  // arrays are contiguous and not shared with others. Arrays that serve as input and
  // output at once are recognised.
  void run(std::span<const Array> inputs, std::vector<Array>& outputs);
  // The same with the inputs where they are: no counts of holders go up. Outputs that
  // took over their input's memory are not handed out: moved() tells. Needs: the graph's
  // number of inputs and types; they are not looked at again.
  void run_at(std::span<const Array* const> inputs, std::vector<Array>& outputs);
  bool moved(std::size_t output) const;  // in the last run

  std::string describe() const;  // one line per kernel
  std::int64_t arena_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace braintrace
