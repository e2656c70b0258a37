// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/op_def.h"

#include <algorithm>

#include <fmt/format.h>

namespace braintrace {
namespace {

void check_attrs(const OpDef& op, const Attrs& attrs) {
  for (const AttrSpec& spec : op.attrs) {
    const Attr* a = attrs.find(spec.name);
    if (!a && spec.optional) continue;
    BT_REQUIRE(a, fmt::format("{}: missing attribute '{}'", op.name, spec.name));
    BT_REQUIRE_KIND(kind_of(*a) == spec.kind, ErrorKind::type,
                    fmt::format("{}: attribute '{}' must be {}, got {}", op.name,
                                spec.name, to_string(spec.kind), to_string(kind_of(*a))));
    const auto* graph = std::get_if<GraphPtr>(a);
    BT_REQUIRE(!graph || *graph,
               fmt::format("{}: attribute '{}' holds no graph", op.name, spec.name));
  }
  for (const auto& [name, value] : attrs.entries()) {
    const bool known = std::any_of(op.attrs.begin(), op.attrs.end(),
                                   [&](const AttrSpec& s) { return s.name == name; });
    BT_REQUIRE(known, fmt::format("{}: unknown attribute '{}'", op.name, name));
  }
}

// Shared infer slots do not know whom they serve: their messages get the name here.
std::vector<Type> named_infer(const OpDef& op, std::span<const Type> in,
                              const Attrs& attrs) {
  BT_INVARIANT(op.infer);
  try {
    return op.infer(in, attrs);
  } catch (const UserError& e) {
    if (std::string_view(e.what()).starts_with(fmt::format("{}:", op.name))) throw;
    throw UserError(e.kind(), fmt::format("{}: {}", op.name, e.what()));
  }
}

}  // namespace

const OpDef* find_op(OpTable table, std::string_view name) {
  const auto it =
      std::lower_bound(table.begin(), table.end(), name,
                       [](const OpDef* op, std::string_view n) { return op->name < n; });
  return it != table.end() && (*it)->name == name ? *it : nullptr;
}

std::vector<Type> infer_types(const OpDef& op, std::span<const Type> in,
                              const Attrs& attrs) {
  BT_REQUIRE(op.arity == kVariadic || in.size() == static_cast<std::size_t>(op.arity),
             fmt::format("{}: needs {} inputs, got {}", op.name, op.arity, in.size()));
  check_attrs(op, attrs);
  std::vector<Type> out = named_infer(op, in, attrs);
  for (const Type& t : out) check_shape(op.name, t.shape);
  return out;
}

PositionMap positions_of(const OpDef& op, const Signature& s) {
  if (op.positions) return op.positions(s);
  PositionMap map;
  for (std::size_t i = 0; i < s.in.size(); ++i) {
    auto& row = map.flow.emplace_back();
    for (const Type& t : s.out)
      row.push_back(has(op.traits, Trait::elementwise) ? identity_flow(t.rank())
                                                       : unknown_flow());
  }
  return map;
}

}  // namespace braintrace
