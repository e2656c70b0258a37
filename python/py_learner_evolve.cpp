// SPDX-License-Identifier: Apache-2.0
// Sequences without a gradient.
#include "convert.h"
#include "py_learner.h"
#include "py_source.h"

namespace braintrace::python {
namespace {

// Windows between two looks for Ctrl-C.
constexpr std::int64_t kWindowsAtOnce = 64;

// Their length, 0 where they have none in common.
std::int64_t common_length(const std::vector<Array>& sequences) {
  std::int64_t length = 0;
  for (const Array& s : sequences) {
    if (s.rank() == 0 || (length != 0 && s.shape()[0] != length)) return 0;
    length = s.shape()[0];
  }
  return length;
}

std::vector<Array> part_of(const std::vector<Array>& sequences, std::int64_t from,
                           std::int64_t count) {
  std::vector<Array> out;
  for (const Array& s : sequences)
    out.push_back(slice_axis(Value(s), 0, from, count).array());
  return out;
}

std::vector<Value> joined(const std::vector<Values>& parts) {
  std::vector<Value> out;
  for (const Values& p : parts) out.push_back(p.size() == 1 ? p[0] : concat(p, 0));
  return out;
}

}  // namespace

void PyLearner::etrace_evolve_from(const py::function& at, std::int64_t steps) {
  check_model("etrace_evolve");
  PySource source("etrace_evolve", at, dtype());
  py::gil_scoped_release release;
  const auto mine = learner_->claim("etrace_evolve");
  learner_->etrace_evolve({steps, std::ref(source)});
}

py::object PyLearner::etrace_evolve(const py::args& sequences,
                                    const std::optional<std::int64_t>& chunk_size,
                                    bool return_outputs) {
  check_model("etrace_evolve");
  std::vector<Value> leaves;
  read(sequences, leaves);
  const std::vector<Array> arrays = arrays_of(leaves);
  const std::int64_t length = common_length(arrays), window = chunk_size.value_or(1);
  // What does not divide goes to the library as it is, which says so.
  const bool divides = window > 0 && length % window == 0;
  const std::int64_t piece = divides ? window * kWindowsAtOnce : length;
  const auto mine = learner_->claim("etrace_evolve");
  std::vector<Values> outputs;
  std::int64_t t = 0;
  do {
    const std::int64_t count = std::min(piece, length - t);
    const bool whole = count == length;
    std::vector<Array> out;
    {
      py::gil_scoped_release release;
      out = learner_->etrace_evolve(whole ? arrays : part_of(arrays, t, count),
                                    {chunk_size, return_outputs});
    }
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    outputs.resize(out.size());
    for (std::size_t i = 0; i < out.size(); ++i) outputs[i].push_back(out[i]);
    t += count;
  } while (t < length);
  if (!return_outputs) return py::none();
  return restore_outputs(*model_, joined(outputs));
}

}  // namespace braintrace::python
