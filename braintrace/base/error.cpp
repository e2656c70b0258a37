// SPDX-License-Identifier: Apache-2.0
#include "braintrace/base/error.h"

#include <fmt/core.h>

namespace braintrace {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::value:
      return "value";
    case ErrorKind::type:
      return "type";
    case ErrorKind::not_implemented:
      return "not_implemented";
    case ErrorKind::not_supported:
      return "not_supported";
    case ErrorKind::runtime:
      return "runtime";
    case ErrorKind::compilation:
      return "compilation";
  }
  return "unknown";
}

void fail_invariant(const char* condition, const char* file, int line) {
  throw InternalError(
      fmt::format("broken invariant `{}` at {}:{} (a bug in braintrace, please report)",
                  condition, file, line));
}

}  // namespace braintrace
