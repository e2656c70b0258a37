// SPDX-License-Identifier: Apache-2.0
#pragma once
// Vector code is compiled once per instruction set; tests try them all.
#include <functional>
#include <string>

namespace braintrace::testing {

// Calls f with the name of each instruction set this machine has, while vector code runs
// on that one alone. What chose its kernels before keeps them.
void on_every_target(const std::function<void(const std::string& name)>& f);

}  // namespace braintrace::testing
