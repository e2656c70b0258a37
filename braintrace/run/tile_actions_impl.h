// SPDX-License-Identifier: Apache-2.0
#pragma once
// Questions about the actions of a tile program: who computes what, from what.
#include <optional>

#include "braintrace/run/tile_compile_impl.h"

namespace braintrace {

class TileActions {
 public:
  explicit TileActions(const TileCode& code) : code_(code) {}

  std::size_t num_actions() const { return code_.actions.size(); }
  const TileAction& action(std::size_t i) const { return code_.actions[i]; }
  bool is_slot(int entry) const { return entry >= code_.slot_entry(0); }
  // One number, the same in all blocks?
  bool is_fixed(int entry) const;
  // A kernel on blocks of floats: `op`, or a sum that takes in `products`; bits of
  // `scalars`: operands that are one number.
  bool is_kernel(std::size_t i, MicroOp op, int products, unsigned scalars) const;
  int num_operands(const TileAction& a) const;  // entries of the action itself
  bool reads(std::size_t i, int entry) const;
  bool writes(std::size_t i, int entry) const;  // or memory it may lie in
  // The action before `at` that made what lies in a slot.
  std::optional<std::size_t> maker(int slot, std::size_t at) const;
  // Does nobody else read what action `from` made in a slot?
  bool is_read_only_by(std::size_t reader, int slot, std::size_t from) const;

 private:
  const TileCode& code_;
};

}  // namespace braintrace
