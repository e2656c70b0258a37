// SPDX-License-Identifier: Apache-2.0
#pragma once
// An op is one constant record: its meaning (infer, eval), its calculus (jvp, transpose,
// batch) and what analyses may know about it. Everybody outside ops/ asks these slots.
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "braintrace/ir/etp_rule.h"
#include "braintrace/ir/lowering.h"
#include "braintrace/ir/position_map.h"
#include "braintrace/ir/value.h"

namespace braintrace {

enum class Trait : unsigned {
  none = 0,
  elementwise = 1,     // output p depends on input position p only; same shapes
  linear = 2,          // jointly linear in all its inputs
  region = 4,          // has sub-graphs that it runs
  stops_gradient = 8,  // derivative is zero by decree
  no_tangent = 16,     // piecewise constant or integer: tangents are absent
  random = 32,         // draws numbers from its key input
  constant = 64,       // no inputs; value in attribute `value`
  commutative = 128,   // two inputs, any order
};
constexpr Trait operator|(Trait a, Trait b) {
  return static_cast<Trait>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool has(Trait set, Trait t) {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(t)) != 0;
}

struct AttrSpec {
  std::string_view name;
  AttrKind kind;
  bool optional = false;
};

inline constexpr int kVariadic = -1;

// One run of an op on numbers. Inputs are contiguous; outputs have the inferred types.
struct Kernel {
  const OpDef& op;
  std::span<const Array> in;
  std::span<Array> out;
  const Attrs& attrs;
};

// One use of an op, by types only.
struct Signature {
  std::span<const Type> in;
  std::span<const Type> out;
  const Attrs& attrs;
};

// One use of an op while a program is being written. Rules emit IR with these values.
struct Site {
  const OpDef& op;
  std::span<const Value> in;
  std::span<const Value> out;  // empty where the rule produces the outputs itself
  const Attrs& attrs;
  SourceLoc loc;
  std::vector<bool> linear = {};  // transpose: which inputs are being transposed
  bool is_linear(std::size_t i) const { return i < linear.size() && linear[i]; }
};

struct RegionJvp {
  std::vector<Value> outs;        // replaces the primal node's outputs
  std::vector<Tangent> tangents;  // one per output
};

using BatchAxis = std::optional<std::int64_t>;  // nullopt = not batched
struct BatchResult {
  std::vector<Value> values;
  std::vector<BatchAxis> axes;
};

// Outputs of an equal program, or nullopt to keep the node.
using Rewrite = std::optional<std::vector<Value>>;
struct UnrollOptions {
  std::int64_t max_length = 64;
};

struct OpDef {
  std::string_view name;
  Trait traits = Trait::none;
  int arity = 1;  // kVariadic = infer checks
  std::vector<AttrSpec> attrs = {};
  std::vector<Type> (*infer)(std::span<const Type>, const Attrs&) = nullptr;  // UserError
  void (*eval)(const Kernel&) = nullptr;          // the meaning; slow and plain
  Lowering (*lower)(const Signature&) = nullptr;  // null = run by eval
  std::string_view code = {};                     // for printing and export: "tanh($0)"
  // Tangents of the outputs; in tangents may be absent. Null + linear = derived.
  std::vector<Tangent> (*jvp)(const Site&, std::span<const Tangent>) = nullptr;
  // For ops whose primal must change to expose residuals (regions). Used instead of jvp.
  RegionJvp (*jvp_region)(const Site&, std::span<const Tangent>) = nullptr;
  // Cotangents of the inputs marked in site.linear, given those of the outputs.
  std::vector<Tangent> (*transpose)(const Site&, std::span<const Tangent>) = nullptr;
  BatchResult (*batch)(const Site&, std::span<const BatchAxis>) = nullptr;
  PositionMap (*positions)(const Signature&) = nullptr;
  const EtpRule* etp = nullptr;
  // What passes ask. All keep values bit for bit.
  Rewrite (*simplify)(const Site&) = nullptr;   // algebra: may look at producer(in)
  Rewrite (*to_select)(const Site&) = nullptr;  // branches computed, results selected
  Rewrite (*unroll)(const Site&,
                    const UnrollOptions&) = nullptr;  // loops of known length
  Rewrite (*inline_body)(const Site&) = nullptr;  // calls: the body in place of the node
};

// Name -> op, for parse. Sorted by name.
using OpTable = std::span<const OpDef* const>;
const OpDef* find_op(OpTable table, std::string_view name);

// Arity, attribute names and kinds, then infer. UserError prefixed with the op's name.
std::vector<Type> infer_types(const OpDef& op, std::span<const Type> in,
                              const Attrs& attrs);

// How positions flow through one use of the op (identity for elementwise ops).
PositionMap positions_of(const OpDef& op, const Signature& s);

}  // namespace braintrace
