// SPDX-License-Identifier: Apache-2.0
#pragma once
// When a weight that reaches hidden states only through other weights keeps its full
// sensitivity (parameter x hidden) instead of the newest step alone.
#include <map>
#include <optional>
#include <set>
#include <string>

#include "braintrace/etrace/relation.h"

namespace braintrace {

class DensePolicy {
 public:
  DensePolicy(const ModuleInfo& info, const std::vector<HiddenGroup>& groups,
              const CompileOptions& options)
      : info_(info), groups_(groups), options_(options) {}

  // Adds the trace of a direct relation to what its groups already hold.
  void count_direct(const HiddenParamOpRelation& r, const std::set<std::int64_t>& groups);

  // The reason to keep the sensitivity, or nullopt: local.
  std::optional<std::string> why_dense(const HiddenParamOpRelation& r,
                                       const std::set<std::int64_t>& groups) const;

  // Elements of the full sensitivity of the relation's parameters to these groups.
  double sensitivity_elements(const HiddenParamOpRelation& r,
                              const std::set<std::int64_t>& groups) const;

 private:
  const ModuleInfo& info_;
  const std::vector<HiddenGroup>& groups_;
  const CompileOptions& options_;
  std::map<std::int64_t, double> direct_bytes_;
};

}  // namespace braintrace
