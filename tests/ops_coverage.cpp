// SPDX-License-Identifier: Apache-2.0
// Runs the op tests with a log and fails when an op of the registry was never checked, or
// not with each kind of edge that its inputs allow.
//   ops_coverage <test program> <log file>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace {

using Log = std::map<std::string, std::vector<std::string>>;  // op -> lines

// Some case met the edge, or every case says why it has none.
bool covers(const std::vector<std::string>& lines, const std::string& kind) {
  bool excused = true;
  for (const std::string& line : lines) {
    const std::size_t at = line.find("  " + kind + " ");
    if (at == std::string::npos) return false;
    const std::string rest = line.substr(at + kind.size() + 3);
    if (rest[0] != '-') return true;
    excused = excused && rest.rfind("- ()", 0) != 0;
  }
  return excused;
}

// How many ops lack a kind of edge; each is named.
int report_edges(const Log& log) {
  int missing = 0;
  for (const auto& [op, lines] : log)
    for (std::string_view kind : braintrace::testing::edge_kinds()) {
      if (covers(lines, std::string(kind))) continue;
      std::cout << "no edge '" << kind << "': " << op << "\n";
      ++missing;
    }
  return missing;
}

}  // namespace

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
  Log checked;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    std::cout << line << "\n";
    checked[line.substr(0, line.find(':'))].push_back(line);
  }
  int missing = 0;
  for (const braintrace::OpDef* op : braintrace::op_table()) {
    if (checked.count(std::string(op->name))) continue;
    std::cout << "not checked: " << op->name << "\n";
    ++missing;
  }
  const int edges = report_edges(checked);
  std::cout << checked.size() << " ops checked, " << missing << " missing; " << edges
            << " edges missing\n";
  return missing + edges == 0 ? 0 : 1;
}
