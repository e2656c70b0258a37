// SPDX-License-Identifier: Apache-2.0
#pragma once
// Modules one after the other.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braintrace/model/module.h"

namespace braintrace::nn {

// y = last(... (first(x))). The modules stand under ('layers', 0), ('layers', 1), ...;
// with names, under those instead.
//   Sequential net(std::make_unique<Linear>(4, 8), std::make_unique<ReLU>());
class Sequential : public Module {
 public:
  using Child = std::shared_ptr<Module>;

  explicit Sequential(std::vector<Child> layers);
  explicit Sequential(std::vector<std::pair<std::string, Child>> layers);
  template <class... M>
  requires(sizeof...(M) > 0) explicit Sequential(std::unique_ptr<M>... layers)
      : Sequential(std::vector<Child>{Child(std::move(layers))...}) {}

  Value update(Value x) override;

  std::size_t size() const { return layers_.size(); }
  Module& operator[](std::size_t i) const;  // UserError outside

 private:
  std::vector<Child> layers_;
};

}  // namespace braintrace::nn
