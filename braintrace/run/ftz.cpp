// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/ftz.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace braintrace {
namespace {

#if defined(__x86_64__)
constexpr unsigned kFlush = 0x8040;  // flush to zero, denormals are zero
unsigned long long mode() { return _mm_getcsr(); }
void set_mode(unsigned long long m) { _mm_setcsr(static_cast<unsigned>(m)); }
#elif defined(__aarch64__)
constexpr unsigned long long kFlush = 1ULL << 24;
unsigned long long mode() {
  unsigned long long m;
  asm volatile("mrs %0, fpcr" : "=r"(m));
  return m;
}
void set_mode(unsigned long long m) { asm volatile("msr fpcr, %0" : : "r"(m)); }
#else
constexpr unsigned long long kFlush = 0;
unsigned long long mode() { return 0; }
void set_mode(unsigned long long) {}
#endif

}  // namespace

FtzScope::FtzScope() : before_(mode()) { set_mode(before_ | kFlush); }
FtzScope::~FtzScope() { set_mode(before_); }

unsigned long long float_mode() { return mode(); }
FloatModeScope::FloatModeScope(unsigned long long m) : before_(mode()) { set_mode(m); }
FloatModeScope::~FloatModeScope() { set_mode(before_); }

}  // namespace braintrace
