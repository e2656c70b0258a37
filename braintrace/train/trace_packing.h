// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a learner keeps its traces: each state by itself, so that programs walk through
// memory without gaps, and states that are the same along some axes (the synapse of a
// neuron does not know who reads it) once along them.
#include "braintrace/algo/step_program.h"

namespace braintrace {

class TracePacking {
 public:
  TracePacking() = default;
  // Each trace as the rule has it.
  TracePacking(const CompiledRule& rule, std::optional<std::int64_t> lanes);
  // States of a trace one after the other.
  static TracePacking apart(const CompiledRule& rule, std::optional<std::int64_t> lanes);
  // The same, with repeating states of traces of at least `min_bytes` stored once.
  static TracePacking compact(const CompiledRule& rule, std::optional<std::int64_t> lanes,
                              std::int64_t min_bytes);

  bool is_plain() const { return plain_; }
  // What is stored, in order, with a leading lane axis under vmap.
  struct Stored {
    std::size_t trace;                 // of the rule
    std::vector<std::int64_t> states;  // along the last axis
    Type type;                         // size 1 along axes it repeats along
  };
  const std::vector<Stored>& stored() const { return stored_; }

  // Traces of the rule from what is stored, and back: the first of what repeats.
  std::vector<Value> unpacked(const std::vector<Value>& stored) const;
  std::vector<Value> packed(const std::vector<Value>& traces) const;
  std::vector<Array> unpacked(const std::vector<Array>& stored) const;
  std::vector<Array> packed(const std::vector<Array>& traces) const;

  // The program with stored traces in the place of the rule's.
  StepProgram packed(const StepProgram& p) const;

 private:
  std::vector<Type> traces_;  // of the rule
  std::vector<Stored> stored_;
  bool plain_ = true;
};

}  // namespace braintrace
