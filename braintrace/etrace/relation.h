// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which trainable op reaches which hidden groups, and by what kind of path.
#include <map>
#include <string>
#include <vector>

#include "braintrace/etrace/hidden_group.h"
#include "braintrace/etrace/weight_source.h"

namespace braintrace {

// How paths from y to one hidden state run.
enum class PathClass { all_direct, mixed, all_through_other_etp };
std::string_view to_string(PathClass c);

// direct: traced, position by position. dense: traced with the full sensitivity.
enum class RelationKind { direct, dense };

// One trainable input of the op.
struct Trainable {
  std::string key;  // "weight", "bias", ...
  ValueId operand;
  Prologue prologue;
  Path path;             // owning parameter (the first, when several)
  std::size_t leaf = 0;  // its leaf
  ParamState* state = nullptr;
};

struct HiddenParamOpRelation {
  RelationKind kind = RelationKind::direct;
  std::string primitive;  // "etp_mm"
  std::size_t node = 0;   // in the step's program
  std::optional<ValueId> x;
  ValueId y;
  std::vector<Trainable> trainables;
  std::vector<std::int64_t> group_indices;  // directly fed, in order of first reach
  // Per group: (constants..., y) -> every member at step exit.
  std::vector<Graph> tails;
  std::vector<std::vector<ValueId>> tail_constants;
  std::vector<Path> connected_hidden_paths;  // in order of reach
  std::map<Path, PathClass> path_classification;
  std::vector<Use> cuts;    // where the influence of y stops because positions mix
  std::string reason = {};  // why dense, or why kept although paths are lost
  std::shared_ptr<const ScanDescentInfo> control_flow_context = {};

  const Path& path() const { return trainables.front().path; }
  const Path& weight_path() const { return path(); }
  const std::optional<ValueId>& x_var() const { return x; }
  ValueId y_var() const { return y; }
  // One per group: (constants..., y) -> every member at step exit.
  const std::vector<Graph>& y_to_hidden_group_jaxprs() const { return tails; }
  // The static parameters of the op. Needs: the module info the relation was found in.
  const Attrs& eqn_params(const ModuleInfo& info) const;

  // What is known of every trainable input, in the op's order of declaration.
  template <class T>
  using ByKey = std::vector<std::pair<std::string, T>>;
  ByKey<ValueId> trainable_vars() const;
  ByKey<Path> trainable_paths() const;
  ByKey<std::size_t> trainable_leaf_indices() const;
  ByKey<ParamState*> trainable_param_states() const;
  // Ops from the operand back to the parameter; their derivative is applied.
  ByKey<std::vector<std::string>> trainable_processing_chains() const;
  // The groups themselves. Needs: the list the relation was made with.
  std::vector<const HiddenGroup*> hidden_groups(
      const std::vector<HiddenGroup>& all) const;
  // Runs every tail: the members at step exit, per group.
  std::vector<std::vector<Array>> y_to_hidden_states(
      const Array& y, const std::vector<std::vector<Array>>& const_vals) const;
  // The same as one array (*varshape, num_state) per group.
  std::vector<Array> y_to_hidden_groups(
      const std::vector<HiddenGroup>& all, const Array& y,
      const std::vector<std::vector<Array>>& const_vals) const;
  std::vector<std::pair<std::string, std::string>> dict() const;
};

// Program order of the trainable ops. UserError when the tables come from different
// programs, or a trainable op sits in opaque control flow.
std::vector<HiddenParamOpRelation> find_hidden_param_op_relations_from_minfo(
    const ModuleInfo& info, const std::vector<HiddenGroup>& groups,
    const CompileOptions& options, Diagnostics& diagnostics);
std::vector<HiddenParamOpRelation> find_hidden_param_op_relations_from_module(
    Module& model, const std::vector<Array>& args, const CompileOptions& options = {});

}  // namespace braintrace
