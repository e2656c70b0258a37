// SPDX-License-Identifier: Apache-2.0
#pragma once
// What ops with sub-graphs share: tracing bodies, writing new ones, checking signatures.
#include "braintrace/ir/op_def.h"
#include "braintrace/ops/ops.h"

namespace braintrace {

// Inputs of the graph: those declared, then one per captured outer value.
struct Traced {
  Graph graph;
  Values captured;
};
Traced trace(const ValuesFn& f, std::span<const Type> inputs);

// A graph written by a rule; it may not capture anything.
GraphPtr write_graph(std::span<const Type> inputs, const ValuesFn& f);

std::vector<Type> types_of(std::span<const Value> values);
// One entry per position: is the tangent there?
std::vector<bool> present(std::span<const Tangent> tangents);
// The present ones, in order.
Values present_values(std::span<const Tangent> tangents);

// The type one step of a loop sees of a stacked value, and back. Needs: rank >= 1.
Type step_type(Type stacked);
Type stacked_type(Type step, std::int64_t length);

// UserError "<who> <what> i must be .., got .." unless both lists are the same.
void require_types(std::string_view who, std::string_view what,
                   std::span<const Type> want, std::span<const Type> got);

// Takes consecutive entries of a list.
template <class T>
class Reader {
 public:
  explicit Reader(std::span<const T> all) : rest_(all) {}
  std::span<const T> take(std::size_t n) {
    const auto head = rest_.first(n);
    rest_ = rest_.subspan(n);
    return head;
  }
  const T& next() { return take(1)[0]; }

 private:
  std::span<const T> rest_;
};

template <class List, class More>
void append(List& list, const More& more) {
  list.insert(list.end(), more.begin(), more.end());
}

}  // namespace braintrace
