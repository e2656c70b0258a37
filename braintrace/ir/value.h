// SPDX-License-Identifier: Apache-2.0
#pragma once
// What model code computes with: a concrete Array, or a symbolic value of a trace.
// Ops on concrete values run at once; with any symbolic input they are recorded.
#include <concepts>
#include <memory>
#include <optional>

#include "braintrace/ir/graph.h"

namespace braintrace {

class Builder;

class Value {
 public:
  Value();             // concrete f32 scalar 0
  Value(Array array);  // NOLINT: implicit on purpose
  Value(std::shared_ptr<Builder> builder, ValueId id);
  // Copies are made everywhere: one definition, not one in every file that makes them.
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();

  bool is_concrete() const { return !builder_; }
  // UserError on a symbolic value: its number exists only when the program runs.
  const Array& array() const;

  Type type() const;
  DType dtype() const { return type().dtype; }
  Shape shape() const { return type().shape; }
  std::int64_t rank() const { return type().rank(); }
  std::int64_t dim(std::int64_t axis) const;  // negative axes allowed

  const std::shared_ptr<Builder>& builder() const { return builder_; }
  ValueId id() const { return id_; }

 private:
  Array array_;
  std::shared_ptr<Builder> builder_;
  ValueId id_;
};

// One argument of an op call: a Value, or a plain number that takes the type of the
// values it meets. Remembers the line of the call.
struct Arg {
  Value value;
  bool weak = false;  // a bare number: its type yields
  SourceLoc loc;

  Arg(Value v, SourceLoc l = std::source_location::current())  // NOLINT
      : value(std::move(v)), loc(l) {}
  Arg(Array a, SourceLoc l = std::source_location::current())  // NOLINT
      : value(std::move(a)), loc(l) {}
  Arg(double v, SourceLoc l = std::source_location::current())  // NOLINT
      : value(scalar(v, DType::f64)), weak(true), loc(l) {}
  Arg(int v, SourceLoc l = std::source_location::current())  // NOLINT
      : value(scalar(v, DType::i32)), weak(true), loc(l) {}
  // Sizes and counts; refused where i32 cannot hold them.
  template <std::integral T>
  requires(sizeof(T) >= sizeof(int) && !std::same_as<T, int>)
      Arg(T v, SourceLoc l = std::source_location::current())  // NOLINT
      : value(whole_number(static_cast<double>(v))), weak(true), loc(l) {}

 private:
  static Array whole_number(double v);
};

// An absent tangent is absent, not zeros.
using Tangent = std::optional<Value>;

}  // namespace braintrace
