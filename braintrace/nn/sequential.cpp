// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/sequential.h"

#include <fmt/format.h>

namespace braintrace::nn {

Sequential::Sequential(std::vector<Child> layers) : layers_(std::move(layers)) {
  BT_REQUIRE(!layers_.empty(), "Sequential: needs at least one layer, got none");
  std::vector<Module*> pointers;
  for (const Child& c : layers_) {
    BT_REQUIRE(c, fmt::format("Sequential: layer {} is null", pointers.size()));
    pointers.push_back(c.get());
  }
  add("layers", pointers);
}

Sequential::Sequential(std::vector<std::pair<std::string, Child>> layers) {
  BT_REQUIRE(!layers.empty(), "Sequential: needs at least one layer, got none");
  for (auto& [name, child] : layers) {
    BT_REQUIRE(child, fmt::format("Sequential: layer '{}' is null", name));
    add(name, *child);
    layers_.push_back(std::move(child));
  }
}

Value Sequential::update(Value x) {
  for (const Child& c : layers_) x = (*c)(std::move(x));
  return x;
}

Module& Sequential::operator[](std::size_t i) const {
  BT_REQUIRE(i < layers_.size(),
             fmt::format("Sequential: layer must be < {}, got {}", layers_.size(), i));
  return *layers_[i];
}

}  // namespace braintrace::nn
