// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/populations.h"

#include <set>

namespace braintrace {
namespace {

void find_neurons(const Module& m, const Path& at, std::set<const Module*>& seen,
                  std::vector<Population>& out) {
  for (const auto& [key, member] : m.members()) {
    Module* const* child = std::get_if<Module*>(&member);
    if (!child || !seen.insert(*child).second) continue;
    if (auto* n = dynamic_cast<nn::Neuron*>(*child))
      out.push_back({to_slashes(at.child(key)), n});
    find_neurons(**child, at.child(key), seen, out);
  }
}

}  // namespace

std::vector<Population> spiking_populations(const Module& model) {
  std::vector<Population> out;
  std::set<const Module*> seen;
  find_neurons(model, {}, seen, out);
  return out;
}

}  // namespace braintrace
