// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the update of a trace is found by, whatever the number of its states.
#include <optional>
#include <utility>
#include <vector>

#include "braintrace/run/tile_actions_impl.h"

namespace braintrace {

class TraceMatcher : protected TileActions {
 protected:
  using TileActions::TileActions;

  // Actions of one trace, in order, and what replaces them.
  struct Match {
    TileTrace trace;
    std::vector<std::size_t> members;  // the last one is where they join
    std::vector<int> numbers = {};     // which operands are numbers, to be spread
    // Operands and the members that read them. -1: is not there.
    std::vector<std::pair<int, std::size_t>> given = {};
  };
  // e' = t + u, by the place of its action.
  struct Update {
    std::size_t action;
    TraceInput input;
    int df, x, result;
    // df never changes: the action that makes the number df x.
    std::optional<std::size_t> scaling = {};
  };

  // The second operand of an action is one number.
  static constexpr unsigned kSecondIsNumber = 2;

  // t + u?
  std::optional<Update> as_update(std::size_t i, int t) const;
  // The only reader of t beside the action `last`: t's update.
  std::optional<Update> update_of(std::size_t t, std::size_t last) const;
  // The match reads what the update adds; `df`: the place of df among its operands.
  static void take_in(Match& m, const Update& u, int df);
  // Nobody between a member and the last one touches what it reads or makes; what members
  // hand to each other stays in registers, so none of it may be an operand as well.
  bool may_wait(const Match& m) const;

 private:
  Update with_number(std::size_t i, int u) const;
  static bool is_member(const Match& m, std::size_t i);
  static bool is_result(const Match& m, int entry);
  bool is_made_by(const Match& m, int entry, std::size_t reader) const;
  bool is_made_before(const Match& m, int entry, std::size_t reader) const;
};

}  // namespace braintrace
