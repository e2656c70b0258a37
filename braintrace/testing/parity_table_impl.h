// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pieces shared by the replay of the table of algorithms.
#include <nlohmann/json.hpp>

#include "braintrace/algo/algorithm.h"
#include "braintrace/testing/parity_impl.h"

namespace braintrace::testing::internal {

struct TableModel {
  nlohmann::json spec;  // for build_model
  StateDict weights;    // by path of that model
};
// UserError lists the known models.
TableModel table_model(const std::string& name, const nlohmann::json& m, DType dtype);

struct EntryName {
  std::string rule;  // without the method
  VjpMethod method = VjpMethod::single_step;
  std::int64_t window = 1;
  bool mean = false;  // masked mean over the steps
};
EntryName parse_entry_name(const std::string& name);
// UserError names the rule when it is unknown.
Algorithm algorithm_of(const EntryName& name);

// Nested lists of numbers.
Array nested(const nlohmann::json& j, DType dtype);
// {"Wh/weight": {"bias": ..}, "w": ..} as leaves by path.
StateDict named_leaves(const nlohmann::json& j, DType dtype);

// Runs one entry of the table in compat mode: losses, gradients, final traces, groups,
// relations and the neighbours of widened traces, as far as the entry holds them.
void compare_entry(const TableModel& model, const nlohmann::json& m,
                   const std::string& rule, const nlohmann::json& entry, DType dtype,
                   ParityResult& result);

}  // namespace braintrace::testing::internal
