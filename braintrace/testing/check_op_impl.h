// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the files of the op harness share.
#include <map>

#include "braintrace/ir/evaluate.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/close.h"

namespace braintrace::testing::internal {

// How often a kind of edge was met, or why the case has none.
struct EdgeTally {
  int met = 0;
  std::string reason = {};
};

// One case being checked: its traced program and the worst errors met so far.
struct Checked {
  const OpCase& c;
  const OpDef* op;  // the one the case is about
  Graph graph;
  std::vector<Array> outputs;  // of the program on c.inputs
  std::string notes = {};      // for the log line: " jvp 1e-10" ...
  std::map<std::string, EdgeTally, std::less<>> edges = {};  // by edge_kinds()
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
bool holds(const Graph& g, const OpDef* op);  // in sub-graphs, too
std::vector<Type> types_of(const std::vector<Array>& arrays);
std::vector<Array> converted(std::vector<Array> arrays, DType from, DType to);
std::vector<Array> run_eagerly(const OpCase& c, const std::vector<Array>& inputs);
// Inputs to differentiate.
std::vector<bool> active_inputs(const OpCase& c);

void check_values(Checked& k);     // 2
void check_calculus(Checked& k);   // 4
void check_batch(Checked& k);      // 5
void check_positions(Checked& k);  // 6
void check_etp(Checked& k);        // 7
void check_plan(Checked& k);       // 8
void check_edges(Checked& k);      // 9

// The program under plan and interpreter: equal values (bit for bit where nothing is
// summed) or both refuse. Returns the worst error, nullopt when refused.
std::optional<double> check_planned(const Checked& k, const Graph& g,
                                    const std::vector<Array>& inputs,
                                    const std::string& what);

// Parts of 9. Each tells of what it met or why it cannot.
void met(Checked& k, std::string_view kind);
void excuse(Checked& k, std::string_view kind, const std::string& reason);
void check_sizes(Checked& k);     // empty, one, broadcast
void check_views(Checked& k);     // views
void check_special(Checked& k);   // special
void check_integers(Checked& k);  // integers
void check_refusals(Checked& k);  // refusals

}  // namespace braintrace::testing::internal
