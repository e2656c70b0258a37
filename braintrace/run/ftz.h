// SPDX-License-Identifier: Apache-2.0
#pragma once
// Floating-point mode of the calling thread.
namespace braintrace {

// Denormal results and operands count as zero while the object lives; the mode found is
// restored. Decaying traces would otherwise slow every step down many times. No effect on
// machines without such a mode.
class FtzScope {
 public:
  FtzScope();
  ~FtzScope();
  FtzScope(const FtzScope&) = delete;
  FtzScope& operator=(const FtzScope&) = delete;

 private:
  unsigned long long before_;
};

// The calling thread's mode, and a thread in that mode while the scope lives: for work
// that another thread does in the caller's place.
unsigned long long float_mode();
class FloatModeScope {
 public:
  explicit FloatModeScope(unsigned long long mode);
  ~FloatModeScope();
  FloatModeScope(const FloatModeScope&) = delete;
  FloatModeScope& operator=(const FloatModeScope&) = delete;

 private:
  unsigned long long before_;
};

}  // namespace braintrace
