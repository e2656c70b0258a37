// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of one model file, read with checks. Every read says the option's name, so
// that what nobody asked for can be refused at the end. An option that is null is absent.
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "braintrace/model/module.h"
#include "braintrace/nn/initializers.h"

namespace braintrace::nn::internal {

class ModelSpec {
 public:
  // `where` names the object in messages: "model 'lif_net'".
  ModelSpec(std::string where, nlohmann::json options);

  const std::string& where() const { return where_; }

  // A positive whole number below 2^31; a list of one stands for it.
  std::int64_t size(const std::string& name);
  std::int64_t size(const std::string& name, std::int64_t otherwise);
  double number(const std::string& name, double otherwise);
  bool flag(const std::string& name, bool otherwise);
  std::string text(const std::string& name, const std::string& otherwise);
  Ints sizes(const std::string& name);  // one number or a list
  Ints integers(const std::string& name, Ints otherwise);
  const nlohmann::json* find(const std::string& name);
  bool is_null(const std::string& name);
  Array constant(const std::string& name);  // of `constants`, f64
  std::optional<Array> find_constant(const std::string& name);
  [[noreturn]] void refuse(const std::string& name, const std::string& rule) const;
  // Options that describe how a file was made and change nothing here.
  void ignore(std::initializer_list<const char*> names);

  // UserError naming the options that were never read.
  void finish() const;

  double dt = 1;
  // Names of the weights, when known.
  std::optional<std::set<std::string>> weights;
  bool has_weight(const std::string& path, bool otherwise) const;

 private:
  std::string where_;
  nlohmann::json options_;
  std::set<std::string> known_ = {"kind", "constants", "dt_ms"};
};

using ModelMaker = std::unique_ptr<Module> (*)(ModelSpec&);
struct ModelKind {
  const char* name;
  ModelMaker make;
};
// A maker of models whose constructor takes the file's options, then fixed arguments.
template <class M, auto... Fixed>
std::unique_ptr<Module> make(ModelSpec& s) {
  return std::make_unique<M>(s, Fixed...);
}
// What the weights of models without layers start from.
inline Initializer weights() { return init::lecun_normal(); }

std::vector<ModelKind> op_level_kinds();
std::vector<ModelKind> special_op_kinds();
std::vector<ModelKind> layered_kinds();
std::vector<ModelKind> control_flow_kinds();
std::vector<ModelKind> spiking_kinds();

}  // namespace braintrace::nn::internal
