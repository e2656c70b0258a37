// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/peak_memory.h"

#include <fstream>
#include <string>

namespace braintrace::testing {

std::optional<double> peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) * 1024;
  return std::nullopt;
}

bool reset_peak() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;  // they keep what was freed, and shadows of everything
#else
  std::ofstream refs("/proc/self/clear_refs");
  refs << "5" << std::flush;
  return refs.good();
#endif
}

}  // namespace braintrace::testing
