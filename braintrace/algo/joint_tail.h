// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tails of several dense relations of one group as one program. Relations that stand
// behind each other (a stack of layers in front of a state) share the rest of their way;
// asked one by one, n of them write n^2 / 2 layers of derivatives.
#include <optional>
#include <span>
#include <vector>

#include "braintrace/algo/relation_writer.h"

namespace braintrace {

class JointTail {
 public:
  // Needs: dense relations of one group, all outside of opened loops. nullopt where one
  // sweep cannot serve them all: reverse mode does not cross the way (a loop of unknown
  // length), a relation makes another one's weight, a leaf is no float, or a state of
  // another group stops some of them only.
  static std::optional<JointTail> of(const ETraceGraph& graph,
                                     std::span<const RelationWriter* const> relations);

  // Of the group's members, as one value.
  const Type& type() const { return program_.graph.type(program_.graph.outputs()[0]); }
  // RelationWriter::back_to_y() of each relation, in the given order.
  std::vector<Value> back_to_ys(const StepValues& v, const Value& ct) const;

 private:
  JointTail() = default;
  // (constants..., a change of every y) -> (*varshape, num_state)
  SubProgram program_;
};

}  // namespace braintrace
