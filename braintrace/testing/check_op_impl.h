// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the files of the op harness share.
#include "braintrace/ir/evaluate.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/close.h"

namespace braintrace::testing::internal {

// One case being checked: its traced program and the worst errors met so far.
struct Checked {
  const OpCase& c;
  const OpDef* op;  // the one the case is about
  Graph graph;
  std::vector<Array> outputs;  // of the program on c.inputs
  std::string notes = {};      // for the log line: " jvp 1e-10" ...
};

// One use of the case's op in the program, with the numbers it sees.
struct Use {
  const Node* node = nullptr;
  std::vector<Array> in, out;
};

inline constexpr std::size_t kAllInputs = static_cast<std::size_t>(-1);

[[noreturn]] void fail(const Checked& k, const std::string& what);
// "tanh: jvp of input 0, output 1"
std::string label(const Checked& k, const std::string& what);
void note(Checked& k, const std::string& what, double worst_error);

Graph trace(const std::function<Values(const Values&)>& build,
            const std::vector<Type>& types);
std::vector<Use> uses(const Checked& k);
// Inputs to differentiate.
std::vector<bool> active_inputs(const OpCase& c);

void check_calculus(Checked& k);   // 4
void check_batch(Checked& k);      // 5
void check_positions(Checked& k);  // 6
void check_etp(Checked& k);        // 7
void check_plan(Checked& k);       // 8

}  // namespace braintrace::testing::internal
