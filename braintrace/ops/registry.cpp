// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/registry.h"

#include <algorithm>
#include <vector>

#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

// One per line, sorted.
// clang-format off
const OpDef* const kOps[] = {
    &add_op,
    &broadcast_op,
    &constant_op,
    &convert_op,
    &dot_general_op,
    &tanh_op,
};
// clang-format on

}  // namespace

OpTable op_table() {
  static const std::vector<const OpDef*> table = [] {
    std::vector<const OpDef*> t(std::begin(kOps), std::end(kOps));
    std::sort(t.begin(), t.end(),
              [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
    return t;
  }();
  return table;
}

Graph parse(std::string_view text) { return parse(text, op_table()); }

}  // namespace braintrace
