// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs passes one after another: times, verifies and dumps them.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "braintrace/ir/op_def.h"

namespace braintrace {

struct PassRecord {
  std::string name;
  double seconds = 0;
  std::size_t nodes_before = 0, nodes_after = 0;  // top level
};
struct PassReport {
  std::vector<PassRecord> passes;
};
std::string to_string(const PassRecord& p);       // one line
std::string to_string(const PassReport& report);  // one line per pass

struct PassOptions {
  bool verify = false;         // after every pass
  std::string dump = {};       // comma-separated pass names, or "all"
  std::string dump_dir = {};   // where dumps go, as <number>_<pass>.txt; empty = nowhere
  std::string time_file = {};  // one line per pass is appended here; empty = nowhere
};
// BT_VERIFY=1 (always on in builds with BRAINTRACE_VERIFY), BT_DUMP, BT_DUMP_DIR,
// BT_TIME_PASSES=<file>.
PassOptions pass_options_from_environment();

class PassRunner {
 public:
  using Pass = std::function<Graph(const Graph&)>;

  explicit PassRunner(PassOptions options = pass_options_from_environment())
      : options_(std::move(options)) {}
  // InternalError naming the pass when its result does not verify.
  Graph operator()(std::string_view name, const Pass& pass, const Graph& g);
  const PassReport& report() const { return report_; }

 private:
  void append_timing() const;
  void dump(std::string_view name, const Graph& g) const;

  PassOptions options_;
  PassReport report_;
};

// The cleaning that is always right: fold, simplify, cse, dce.
//   Keeps: inputs, outputs, values, derivatives.
Graph optimize(const Graph& g, PassRunner& run);
Graph optimize(const Graph& g);

struct LowerOptions {
  bool if_convert = false;
  UnrollOptions unroll = {.max_length = 0};  // 0 = keep loops
};
// For a program that is about to run: inline_calls, the options' rewrites, optimize.
//   Keeps: inputs, outputs, values.
Graph lower(const Graph& g, const LowerOptions& options, PassRunner& run);

}  // namespace braintrace
