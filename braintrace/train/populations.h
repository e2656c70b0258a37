// SPDX-License-Identifier: Apache-2.0
#pragma once
// The spiking neurons inside a model.
#include <string>
#include <vector>

#include "braintrace/nn/neuron.h"

namespace braintrace {

struct Population {
  std::string path;  // slashes
  nn::Neuron* neuron = nullptr;
};

// Children of the model at any depth, each once, in order of declaration.
std::vector<Population> spiking_populations(const Module& model);

}  // namespace braintrace
