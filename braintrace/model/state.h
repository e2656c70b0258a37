// SPDX-License-Identifier: Apache-2.0
#pragma once
// The cells a model reads and writes in one step. Outside a trace they hold arrays; under
// a TraceScope reading gives the step's symbolic value and writing replaces it.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braintrace/array/rng.h"
#include "braintrace/ir/value.h"

namespace braintrace {

enum class StateKind { param, hidden, hidden_group, hidden_tree, short_term };

std::string_view to_string(StateKind k);
inline bool is_hidden(StateKind k) {
  return k == StateKind::hidden || k == StateKind::hidden_group ||
         k == StateKind::hidden_tree;
}

// Makes a value of the given shape and element type; the key is the state's own.
using Initializer = std::function<Array(RngKey, const Shape&, DType)>;
Initializer constant_init(double value);

// One array of a state. A state with one array has one leaf with an empty key; leaves of
// a dict are sorted by key, so 'bias' comes before 'weight'.
struct LeafSpec {
  std::string key;
  Shape shape;  // without batch
  Initializer init;
};

struct StateInit {
  std::optional<std::int64_t> batch_size = {};  // leading axis of batched states
  DType dtype = DType::f32;                     // element type of float states
};

class State {
 public:
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  virtual ~State() = default;

  StateKind kind() const { return kind_; }
  // init_all_states leaves its value: parameters, and what is learned beside them.
  virtual bool outlives_sequences() const { return kind_ == StateKind::param; }
  const std::string& name() const { return name_; }  // last key of its path, for messages
  void set_name(std::string name) { name_ = std::move(name); }

  std::size_t num_leaves() const { return specs_.size(); }
  const LeafSpec& spec(std::size_t leaf) const { return specs_[leaf]; }
  std::size_t leaf_index(std::string_view key) const;  // UserError when unknown

  bool has_value() const { return !arrays_.empty(); }
  // Fills every leaf from its initialiser.
  void initialize(RngKey key, const StateInit& init);

  // The stored arrays (never symbolic). UserError before initialisation.
  const Array& stored(std::size_t leaf = 0) const;
  // Shape must stay; floats take the state's element type. UserError otherwise.
  void store(std::size_t leaf, const Array& a);
  // The stored array for another one. Needs: the same type, contiguous.
  void exchange(std::size_t leaf, Array& a) noexcept { swap(arrays_[leaf], a); }

  // What model code sees.
  Value read(std::size_t leaf = 0);
  void write(std::size_t leaf, const Value& v);

 protected:
  State(StateKind kind, std::vector<LeafSpec> specs, bool batched,
        std::optional<DType> dtype);

 private:
  StateKind kind_;
  std::string name_ = "?";
  std::vector<LeafSpec> specs_;
  bool batched_;                      // gains a leading batch axis
  std::optional<DType> fixed_dtype_;  // else the model's float type
  std::vector<Array> arrays_;
};

// Trainable. One array, or a dict of leaves.
class ParamState : public State {
 public:
  ParamState(Shape shape, Initializer init);
  explicit ParamState(std::vector<LeafSpec> leaves);
  Value value() { return read(0); }
  Value value(std::string_view key) { return read(leaf_index(key)); }
};

// One array that carries memory from step to step.
class HiddenState : public State {
 public:
  explicit HiddenState(Shape size, Initializer init = constant_init(0));
  Value value() { return read(0); }
  void set(const Value& v) { write(0, v); }
  virtual std::int64_t num_state() const { return 1; }
  Shape varshape() const;  // of the stored value, state axis removed

 protected:
  HiddenState(StateKind kind, Shape size, Initializer init);
};

// Several states of one shape, stacked on the last axis.
class HiddenGroupState : public HiddenState {
 public:
  HiddenGroupState(Shape size, std::int64_t num_state,
                   Initializer init = constant_init(0));
  std::int64_t num_state() const override { return num_state_; }
  Value get(std::int64_t i);
  void set_all(const std::vector<Value>& members);

 protected:
  HiddenGroupState(StateKind kind, Shape size, std::int64_t num_state, Initializer init);

 private:
  std::int64_t num_state_;
};

// The same with named members.
class HiddenTreeState : public HiddenGroupState {
 public:
  HiddenTreeState(Shape size, std::vector<std::string> names,
                  Initializer init = constant_init(0));
  const std::vector<std::string>& names() const { return names_; }
  Value get(std::string_view name);
  // Every member, in any order. UserError on a missing, repeated or unknown name.
  void set_members(const std::vector<std::pair<std::string, Value>>& members);

 private:
  std::size_t index_of(std::string_view name) const;
  std::vector<std::string> names_;
};

struct ShortTermOptions {
  bool batched = true;
  std::optional<DType> dtype = {};  // default: the model's float type
};

// Lives from step to step but gets no eligibility trace.
class ShortTermState : public State {
 public:
  explicit ShortTermState(Shape size, Initializer init = constant_init(0),
                          ShortTermOptions options = {});
  Value value() { return read(0); }
  void set(const Value& v) { write(0, v); }
};

// The key of a module's random ops: one for all lanes, so replay sees the same noise.
class RngState : public ShortTermState {
 public:
  RngState();
  Value next();  // a fresh key; advances the state
};

}  // namespace braintrace
