// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two ways to fail: UserError (the caller can fix it) and InternalError (we must).
#include <stdexcept>
#include <string>
#include <string_view>

namespace braintrace {

enum class ErrorKind {
  value,
  type,
  not_implemented,
  not_supported,
  runtime,
  compilation
};

std::string_view to_string(ErrorKind kind);

// The caller's mistake. The message names the function, the rule and the value found.
class UserError : public std::runtime_error {
 public:
  UserError(ErrorKind kind, const std::string& message)
      : std::runtime_error(message), kind_(kind) {}
  explicit UserError(const std::string& message) : UserError(ErrorKind::value, message) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// Our mistake: a broken invariant of the library.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_invariant(const char* condition, const char* file, int line);

}  // namespace braintrace

// The message expression is evaluated only on failure.
#define BT_REQUIRE(condition, message)                        \
  do {                                                        \
    if (!(condition)) throw ::braintrace::UserError(message); \
  } while (false)

#define BT_REQUIRE_KIND(condition, kind, message)                       \
  do {                                                                  \
    if (!(condition)) throw ::braintrace::UserError((kind), (message)); \
  } while (false)

#define BT_INVARIANT(condition)                                                     \
  do {                                                                              \
    if (!(condition)) ::braintrace::fail_invariant(#condition, __FILE__, __LINE__); \
  } while (false)
