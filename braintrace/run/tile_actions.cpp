// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "braintrace/run/tile_actions_impl.h"

namespace braintrace {
namespace {

bool is_pair(const TileAction& a) {
  return a.kind == TileAction::gather_pair || a.kind == TileAction::scatter_pair;
}

}  // namespace

bool TileActions::is_fixed(int entry) const {
  if (!code_.is_input(entry)) return false;
  const Ints& strides = code_.strides(entry);
  return std::all_of(strides.begin(), strides.end(), [](auto s) { return s == 0; });
}

bool TileActions::is_kernel(std::size_t i, MicroOp op, int products,
                            unsigned scalars) const {
  const TileAction& a = action(i);
  return a.kind == TileAction::kernel && !a.single && is_float(a.dtype) && a.op == op &&
         a.products == products && a.scalars == scalars;
}

int TileActions::num_operands(const TileAction& a) const {
  if (a.kind == TileAction::trace) return 0;
  if (is_pair(a)) return 2;
  if (a.kind != TileAction::kernel) return 1;
  return a.products > 0 ? 2 * a.products + (a.products == 1 ? 1 : 0) : arity(a.op);
}

bool TileActions::reads(std::size_t i, int entry) const {
  const TileAction& a = action(i);
  if (a.kind == TileAction::trace) {
    const TileTrace& t = code_.traces[static_cast<std::size_t>(a.result)];
    const int* end = t.operands + t.num_operands;
    return std::find(t.operands, end, entry) != end;
  }
  const int* end = a.operands + num_operands(a);
  return std::find(a.operands, end, entry) != end;
}

bool TileActions::writes(std::size_t i, int entry) const {
  const TileAction& a = action(i);
  const auto is_there = [&](int result) { return code_.may_share(result, entry); };
  if (a.kind == TileAction::trace) {
    const TileTrace& t = code_.traces[static_cast<std::size_t>(a.result)];
    return std::any_of(t.results, t.results + kTraceResults, is_there);
  }
  return is_there(a.result) || (is_pair(a) && is_there(a.second));
}

std::optional<std::size_t> TileActions::maker(int slot, std::size_t at) const {
  if (!is_slot(slot)) return std::nullopt;
  for (std::size_t i = at; i-- > 0;)
    if (writes(i, slot)) return i;
  return std::nullopt;
}

bool TileActions::is_read_only_by(std::size_t reader, int slot, std::size_t from) const {
  for (std::size_t i = from + 1; i < code_.actions.size(); ++i) {
    if (i != reader && reads(i, slot)) return false;
    if (i >= reader && writes(i, slot)) return true;
  }
  return true;
}

}  // namespace braintrace
