// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model: named states, named children and one step. The same code runs eagerly on
// arrays and under tracing.
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "braintrace/model/path.h"
#include "braintrace/model/state.h"

namespace braintrace {

class Module {
 public:
  Module() = default;
  Module(const Module&) = delete;  // children and states are registered by address
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  // One step. Override `update` for one input and one output, `update_all` otherwise.
  virtual Value update(Value x);
  virtual std::vector<Value> update_all(const std::vector<Value>& inputs);

  Value operator()(Value x) { return update(std::move(x)); }

  // Training is the default. Layers that behave differently when they are only used
  // (BatchNorm, Dropout) ask; setting it also sets every module below. A traced step
  // keeps the mode it was traced in.
  bool training() const { return training_; }
  void set_training(bool training);

  using Member = std::variant<State*, Module*>;
  // Attributes in path order: integers, then names alphabetically.
  const std::map<PathKey, Member>& members() const { return members_; }

 protected:
  // Registered objects must live as long as the module. UserError on a name used twice.
  void add(const std::string& name, State& state);
  void add(const std::string& name, Module& child);
  // Children under integer keys: ('layers', 0, ...).
  void add(const std::string& name, std::span<Module* const> children);
  void add_indexed(std::int64_t index, Module& child);

 private:
  void insert(PathKey key, Member member);

  bool training_ = true;
  std::map<PathKey, Member> members_;
  std::vector<std::unique_ptr<Module>> lists_;  // containers of integer-keyed children
};

struct NamedState {
  Path path;
  State* state;
};
// Every state once, by a depth-first walk in attribute order; a shared object stands
// under the first path that reaches it.
std::vector<NamedState> collect_states(const Module& m);
State& state_at(const Module& m, const Path& path);  // UserError when unknown

struct InitOptions {
  std::optional<std::int64_t> batch_size = {};
  std::optional<std::uint64_t> seed = {};  // default 0; a given seed re-draws parameters
  std::optional<DType> dtype = {};         // default: what the parameters have, else f32
};
// Hidden and short-term states anew; parameters and long-term states (long_term_state.h)
// where they have no value yet. Each draws from a key made of the seed and its path, so
// the order of declaration does not matter.
void init_all_states(Module& m, const InitOptions& options = {});

// Values by slash path, leaf key appended: "rnn/W/weight/bias".
using StateDict = std::map<std::string, Array>;
StateDict state_dict(const Module& m);
// All or nothing: every path and shape is checked before the first value is stored.
void load_state_dict(Module& m, const StateDict& values);

}  // namespace braintrace
