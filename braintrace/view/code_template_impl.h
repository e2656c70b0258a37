// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fills an op's code template, with the parentheses that C++ precedence asks for.
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "braintrace/ir/op_def.h"

namespace braintrace::internal {

inline constexpr int kPrimary = 100;  // a name, a literal, a call

struct Expression {
  std::string text;
  int precedence = kPrimary;  // higher binds tighter
  // Known entries of a small constant. Where all are equal, that number stands beside an
  // operator instead of the text.
  std::optional<Array> constant = {};
};

// The one number all entries of a known constant are; "" otherwise.
std::string number_of(const Expression& e);

std::string attribute_code(const Attr& a);  // sub-graphs excluded

// The op's template with `in` and its attributes put in.
Expression apply_template(const Node& n, std::span<const Expression> in,
                          const std::function<std::string(const Attr&)>& attribute);

}  // namespace braintrace::internal
