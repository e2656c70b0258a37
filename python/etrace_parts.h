// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parts of a compiled graph as Python objects.
#include "bindings.h"

#include "braintrace/etrace/relation.h"

namespace braintrace::python {

// Fields by name in the reference's order, as the objects themselves.
py::dict fields_of(const py::object& self,
                   const std::vector<std::pair<std::string, std::string>>& names);
// (outputs, hidden states, other states, values for rules)
py::tuple call_result(const ModuleInfo::CallResult& r);
std::vector<Array> leaf_arrays(const py::iterable& items);
// Leaves of the step's states in order, from their values: an array, or a dict of leaves.
std::optional<std::vector<Array>> state_arrays(const ModuleInfo& info,
                                               const py::object& values);

// Relations that `owner` keeps alive, each with the groups it feeds and the static
// parameters of its op as attributes.
py::list wrap_relations(const std::vector<HiddenParamOpRelation>& relations,
                        const py::list& groups, const ModuleInfo& info,
                        const py::object& owner);

void init_etrace_parts(py::module_& m);

}  // namespace braintrace::python
