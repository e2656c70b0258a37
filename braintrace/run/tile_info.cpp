// SPDX-License-Identifier: Apache-2.0
// Facts about micro-ops that no instruction set changes.
#include "braintrace/run/tile_kernels.h"

namespace braintrace {
namespace {

// In the order of the enumeration.
constexpr std::string_view kNames[] = {
    "copy",    "neg",           "abs",         "sign",       "sqrt",
    "rsqrt",   "exp",           "expm1",       "log",        "log1p",
    "tanh",    "sigmoid",       "softplus",    "erf",        "sin",
    "cos",     "floor",         "logical_not", "convert",    "add",
    "sub",     "mul",           "div",         "pow",        "max",
    "min",     "equal",         "not_equal",   "less",       "less_equal",
    "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
    "select",  "clamp"};

}  // namespace

int arity(MicroOp op) {
  if (op >= MicroOp::select) return 3;
  return op >= MicroOp::add ? 2 : 1;
}

std::string_view to_string(MicroOp op) { return kNames[static_cast<std::size_t>(op)]; }

double cost_ns(MicroOp op) {
  switch (op) {
    case MicroOp::exp:
    case MicroOp::log:
    case MicroOp::sigmoid:
      return 1.0;
    case MicroOp::tanh:
    case MicroOp::expm1:
    case MicroOp::log1p:
    case MicroOp::softplus:
    case MicroOp::erf:
    case MicroOp::sin:
    case MicroOp::cos:
      return 2.0;
    case MicroOp::pow:
      return 5.0;
    default:
      return 0.1;
  }
}

}  // namespace braintrace
