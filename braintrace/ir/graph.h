// SPDX-License-Identifier: Apache-2.0
#pragma once
// The program form shared by every room above this one (invariants: docs/ir.md).
//   I1 a Graph is immutable; passes return new Graphs
//   I2 value ids are dense and in definition order: inputs first, then node outputs
//   I3 each value is defined once, before use, with the type `infer` gives
//   I4 nodes have no side effects; random ops take their key as an input, so every node
//      may be merged, moved or dropped
//   I5 floating point is IEEE: no pass may reassociate unless it says so
//   I6 attributes are exactly those the op declares; sub-graphs obey I1-I6 themselves
#include <cstdint>
#include <span>
#include <vector>

#include "braintrace/ir/attrs.h"
#include "braintrace/ir/source_loc.h"
#include "braintrace/ir/type.h"

namespace braintrace {

struct OpDef;

struct ValueId {
  std::uint32_t index = 0;
  friend auto operator<=>(ValueId, ValueId) = default;
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<ValueId> inputs, outputs;
  Attrs attrs;
  SourceLoc loc;
};

// What a Graph is made of, before it is checked.
struct GraphParts {
  std::vector<Type> types;  // by value id
  std::vector<ValueId> inputs;
  std::vector<Node> nodes;
  std::vector<ValueId> outputs;
};

class Graph {
 public:
  Graph();
  explicit Graph(GraphParts parts);
  // Copies are made everywhere: one definition, not one in every file that makes them.
  Graph(const Graph&);
  Graph(Graph&&) noexcept;
  Graph& operator=(const Graph&);
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  std::span<const ValueId> inputs() const { return p_.inputs; }
  std::span<const Node> nodes() const { return p_.nodes; }  // definition before use
  std::span<const ValueId> outputs() const { return p_.outputs; }
  const Type& type(ValueId v) const { return p_.types.at(v.index); }
  std::size_t num_values() const { return p_.types.size(); }

  std::vector<Type> input_types() const { return types_of(p_.inputs); }
  std::vector<Type> output_types() const { return types_of(p_.outputs); }
  std::vector<Type> types_of(std::span<const ValueId> ids) const;

  // Same program; source locations are ignored.
  friend bool operator==(const Graph& a, const Graph& b);

 private:
  GraphParts p_;
};

// Agrees with ==. Constants and sub-graphs included. Sampled: large constants by some of
// their elements, for whoever asks == next.
enum class ArrayHash { whole, sampled };
std::uint64_t structural_hash(const Graph& g, ArrayHash arrays = ArrayHash::whole);
std::uint64_t structural_hash(const Attrs& attrs, ArrayHash arrays = ArrayHash::whole);

// Throws InternalError naming the node and the invariant, with the lines around it.
void verify(const Graph& g);

}  // namespace braintrace
