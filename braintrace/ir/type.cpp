// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/type.h"

namespace braintrace {

std::string to_string(const Type& t) {
  return std::string(to_string(t.dtype)) + to_string(t.shape);
}

}  // namespace braintrace
