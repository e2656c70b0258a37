// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "braintrace/run/trace_match_impl.h"

namespace braintrace {

std::optional<TraceMatcher::Update> TraceMatcher::as_update(std::size_t i, int t) const {
  const TileAction& a = action(i);
  const int* in = a.operands;
  if (is_kernel(i, MicroOp::add, 1, kSecondIsNumber) && in[2] == t && in[0] != t)
    return Update{i, TraceInput::product, in[0], in[1], a.result};
  for (const int side : {0, 1})
    if (is_kernel(i, MicroOp::add, 0, side == 0 ? kSecondIsNumber : 1U) && in[side] == t)
      return with_number(i, in[1 - side]);
  return std::nullopt;
}

TraceMatcher::Update TraceMatcher::with_number(std::size_t i, int u) const {
  const Update plain{i, TraceInput::number, u, u, action(i).result};
  const auto made = maker(u, i);
  if (!made || !is_read_only_by(i, u, *made)) return plain;
  const TileAction& a = action(*made);
  if (a.kind != TileAction::kernel || !a.single || a.op != MicroOp::mul ||
      a.products > 0 || a.dtype != action(i).dtype)
    return plain;
  for (const int side : {0, 1})
    if (is_fixed(a.operands[side]) && !is_slot(a.operands[1 - side]))
      return {
          i,   TraceInput::product, a.operands[side], a.operands[1 - side], plain.result,
          made};
  return plain;
}

std::optional<TraceMatcher::Update> TraceMatcher::update_of(std::size_t t,
                                                            std::size_t last) const {
  const int slot = action(t).result;
  std::optional<Update> found;
  for (std::size_t i = t + 1; i < num_actions(); ++i) {
    if (reads(i, slot) && i != last) {
      if (found || i > last) return std::nullopt;
      found = as_update(i, slot);
      if (!found) return std::nullopt;
    }
    if (!writes(i, slot)) continue;
    if (i < last) return std::nullopt;
    break;
  }
  return found;
}

void TraceMatcher::take_in(Match& m, const Update& u, int df) {
  const std::size_t reader = u.scaling.value_or(u.action);
  m.given.insert(m.given.end(), {{u.df, reader}, {u.x, reader}});
  if (!u.scaling) return;
  m.members.push_back(*u.scaling);
  m.numbers.push_back(df);
}

bool TraceMatcher::is_member(const Match& m, std::size_t i) {
  return std::find(m.members.begin(), m.members.end(), i) != m.members.end();
}

bool TraceMatcher::may_wait(const Match& m) const {
  const std::size_t last = m.members.back();
  for (const auto& [entry, reader] : m.given)
    if (is_made_before(m, entry, reader)) return false;
  for (const std::size_t member : m.members) {
    const TileAction& a = action(member);
    const bool stored = is_result(m, a.result);
    for (std::size_t i = member + 1; i < last; ++i) {
      if (is_member(m, i)) continue;
      if (stored && (reads(i, a.result) || writes(i, a.result))) return false;
      for (int k = 0; k < num_operands(a); ++k)
        if (writes(i, a.operands[k]) && !is_made_by(m, a.operands[k], member))
          return false;
    }
  }
  return true;
}

bool TraceMatcher::is_result(const Match& m, int entry) {
  const int* end = m.trace.results + kTraceResults;
  return std::find(m.trace.results, end, entry) != end;
}

bool TraceMatcher::is_made_by(const Match& m, int entry, std::size_t reader) const {
  const auto made = maker(entry, reader);
  return made && is_member(m, *made);
}

// The same of any entry, or memory it may lie in.
bool TraceMatcher::is_made_before(const Match& m, int entry, std::size_t reader) const {
  for (std::size_t i = reader; entry >= 0 && i-- > 0;)
    if (writes(i, entry)) return is_member(m, i);
  return false;
}

}  // namespace braintrace
