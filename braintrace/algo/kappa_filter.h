// SPDX-License-Identifier: Apache-2.0
#pragma once
// A low-pass filter of signals, stand-alone: v <- kappa v + (1 - kappa) x. (The trace
// filter of EProp has no factor 1 - kappa; it belongs to that rule.)
#include <cstdint>
#include <optional>

#include "braintrace/ir/value.h"

namespace braintrace {

// One update, as IR: kappa v + (1 - kappa) x, in the type of v. Needs: kappa in [0, 1).
Value kappa_filtered(const Value& v, const Value& x, double kappa);

class KappaFilter {
 public:
  // UserError unless kappa is in [0, 1).
  KappaFilter(Array init, double kappa);

  // The filtered value after x, which must have the shape of value().
  const Array& update(const Array& x);
  const Array& value() const { return value_; }
  double kappa() const { return kappa_; }

  // Back to the initial value; with a batch size, one copy of it per sample.
  void reset(std::optional<std::int64_t> batch_size = {});

 private:
  Array init_, value_;
  double kappa_;
};

}  // namespace braintrace
