// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/value.h"

#include <limits>

#include <fmt/format.h>

#include "braintrace/ir/builder.h"

namespace braintrace {

Value::Value() = default;
Value::Value(Array array) : array_(std::move(array)) {}
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

Value::Value(std::shared_ptr<Builder> builder, ValueId id)
    : builder_(std::move(builder)), id_(id) {}

const Array& Value::array() const {
  BT_REQUIRE_KIND(
      is_concrete(), ErrorKind::type,
      fmt::format("Value::array: a symbolic value of type {} has no number while "
                  "the step is traced; use ops instead of reading it",
                  to_string(type())));
  return array_;
}

Type Value::type() const { return builder_ ? builder_->type(id_) : type_of(array_); }

std::int64_t Value::dim(std::int64_t axis) const {
  const Type t = type();
  return t.shape[static_cast<std::size_t>(normalize_axis("Value::dim", axis, t.rank()))];
}

Array Arg::whole_number(double v) {
  BT_REQUIRE(
      v >= std::numeric_limits<std::int32_t>::min() &&
          v <= std::numeric_limits<std::int32_t>::max(),
      fmt::format("an op's argument: a whole number must fit i32, got {:.0f}; write "
                  "it as a double",
                  v));
  return scalar(v, DType::i32);
}

}  // namespace braintrace
