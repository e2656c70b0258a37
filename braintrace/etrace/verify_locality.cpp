// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/verify_locality.h"

#include <fmt/format.h>

#include "braintrace/etrace/cut_set.h"

namespace braintrace {
namespace {

// `sources` stand on the positions; so must everything they reach.
void require_local(const Graph& program, std::span<const ValueId> sources,
                   const Shape& positions, const std::string& what) {
  const GraphIndex index(program);
  const Influence inf = influence_of(index, sources, positions, FlowOptions{});
  if (inf.cuts.empty()) return;
  const Node& n = index.node(inf.cuts.front().node);
  throw InternalError(fmt::format("{} mixes positions at {}{}", what,
                                  node_name(program, n),
                                  n.loc ? " at " + to_string(n.loc) : ""));
}

}  // namespace

void verify_locality(const HiddenGroup& group) {
  require_local(group.transition_program,
                group.transition_program.inputs().last(group.members.size()),
                group.varshape(),
                fmt::format("the transition of group {} {}", group.index,
                            path_list(group.hidden_paths())));
}

void verify_locality(const HiddenParamOpRelation& relation) {
  if (relation.kind != RelationKind::direct) return;
  for (std::size_t k = 0; k < relation.tails.size(); ++k) {
    const Graph& tail = relation.tails[k];
    const auto y = tail.inputs().last(1);
    require_local(tail, y, tail.type(y[0]).shape,
                  fmt::format("the tail of {}({}) to group {}", relation.primitive,
                              to_string(relation.path()), relation.group_indices[k]));
  }
}

}  // namespace braintrace
