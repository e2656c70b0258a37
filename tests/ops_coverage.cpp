// SPDX-License-Identifier: Apache-2.0
// Runs the op tests with a log and fails when an op of the registry was never checked.
//   ops_coverage <test program> <log file>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>

#include "braintrace/ops/registry.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: ops_coverage <test program> <log file>\n";
    return 2;
  }
  const std::filesystem::path log = argv[2];
  std::filesystem::remove(log);
  setenv("BT_LOG_OPS", log.c_str(), 1);
  // Failing cases are reported by their own tests; here only the log counts.
  const int status =
      std::system((std::string(argv[1]) + " --minimal > /dev/null").c_str());
  if (status != 0) std::cout << "(some op tests failed)\n";
  std::set<std::string> checked;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    std::cout << line << "\n";
    checked.insert(line.substr(0, line.find(':')));
  }
  int missing = 0;
  for (const braintrace::OpDef* op : braintrace::op_table()) {
    if (checked.count(std::string(op->name))) continue;
    std::cout << "not checked: " << op->name << "\n";
    ++missing;
  }
  std::cout << checked.size() << " ops checked, " << missing << " missing\n";
  return missing == 0 ? 0 : 1;
}
