// SPDX-License-Identifier: Apache-2.0
// C++ operators on values; each keeps the line of the expression.
#include "braintrace/ops/ops.h"

namespace braintrace {

Value operator+(Arg a, Arg b) { return add(a, b); }
Value operator-(Arg a, Arg b) { return sub(a, b); }
Value operator*(Arg a, Arg b) { return mul(a, b); }
Value operator/(Arg a, Arg b) { return div(a, b); }
Value operator-(Arg a) { return neg(a); }
Value operator<(Arg a, Arg b) { return less(a, b); }
Value operator<=(Arg a, Arg b) { return less_equal(a, b); }
Value operator>(Arg a, Arg b) { return greater(a, b); }
Value operator>=(Arg a, Arg b) { return greater_equal(a, b); }

}  // namespace braintrace
