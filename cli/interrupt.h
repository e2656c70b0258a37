// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ctrl-C as a wish to stop after the present piece of work.

namespace braintrace::cli {

// While it lives, the first SIGINT or SIGTERM is only noted; the second one ends the
// program as usual.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  bool wanted() const;
};

}  // namespace braintrace::cli
