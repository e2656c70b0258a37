// SPDX-License-Identifier: Apache-2.0
#include "braintrace/model/module.h"

#include <set>

#include <fmt/format.h>

namespace braintrace {
namespace {

class ModuleList : public Module {
 public:
  explicit ModuleList(std::span<Module* const> children) {
    for (std::size_t i = 0; i < children.size(); ++i)
      add_indexed(static_cast<std::int64_t>(i), *children[i]);
  }
};

void walk(const Module& m, const Path& prefix, std::set<const void*>& seen,
          std::vector<NamedState>& out) {
  if (!seen.insert(&m).second) return;
  for (const auto& [key, member] : m.members()) {
    const Path path = prefix.child(key);
    if (auto* const* child = std::get_if<Module*>(&member)) {
      walk(**child, path, seen, out);
    } else if (State* s = std::get<State*>(member); seen.insert(s).second) {
      out.push_back({path, s});
    }
  }
}

std::string leaf_name(const NamedState& n, std::size_t leaf) {
  const std::string& key = n.state->spec(leaf).key;
  return to_slashes(key.empty() ? n.path : n.path.child(key));
}

// Gradients and files know leaves by slash path; ('1',) and (1,), ('a/b',) and ('a', 'b')
// have the same one.
void require_distinct_names(const std::vector<NamedState>& states) {
  std::set<std::string> names;
  for (const NamedState& n : states)
    for (std::size_t i = 0; i < n.state->num_leaves(); ++i) {
      const auto [name, is_new] = names.insert(leaf_name(n, i));
      BT_REQUIRE(is_new,
                 fmt::format("model: two states are called '{}'; rename one, such as {}",
                             *name, to_string(n.path)));
    }
}

struct Leaf {
  State* state;
  std::size_t index;
};
std::map<std::string, Leaf> leaves_by_path(const Module& m) {
  std::map<std::string, Leaf> out;
  for (const NamedState& n : collect_states(m)) {
    for (std::size_t i = 0; i < n.state->num_leaves(); ++i)
      out.emplace(leaf_name(n, i), Leaf{n.state, i});
  }
  return out;
}

DType float_type(const std::vector<NamedState>& states) {
  for (const NamedState& n : states) {
    if (n.state->kind() != StateKind::param || !n.state->has_value()) continue;
    if (is_float(n.state->stored().dtype())) return n.state->stored().dtype();
  }
  return DType::f32;
}

// Keeps the numbers of a parameter in another element type.
void retype(State& s, RngKey key, DType dtype) {
  std::vector<Array> kept;
  for (std::size_t i = 0; i < s.num_leaves(); ++i) kept.push_back(s.stored(i));
  s.initialize(key, {.dtype = dtype});
  for (std::size_t i = 0; i < kept.size(); ++i) s.store(i, kept[i]);
}

void init_param(State& s, RngKey key, DType dtype, bool redraw) {
  if (redraw || !s.has_value()) return s.initialize(key, {.dtype = dtype});
  if (s.stored().dtype() != dtype) retype(s, key, dtype);
}

}  // namespace

Value Module::update(Value) {
  throw UserError(ErrorKind::not_implemented,
                  "Module::update: override update(Value) or update_all(inputs)");
}

std::vector<Value> Module::update_all(const std::vector<Value>& inputs) {
  BT_REQUIRE(inputs.size() == 1,
             fmt::format("Module::update_all: this module takes one input, got {}",
                         inputs.size()));
  return {update(inputs[0])};
}

void Module::set_training(bool training) {
  training_ = training;
  for (const auto& [key, member] : members_)
    if (auto* const* child = std::get_if<Module*>(&member))
      (*child)->set_training(training);
}

void Module::insert(PathKey key, Member member) {
  const std::string text = to_string(Path{key});
  BT_REQUIRE(
      members_.emplace(std::move(key), member).second,
      fmt::format("Module::add: the name {} is already used in this module", text));
}

void Module::add(const std::string& name, State& state) {
  insert(name, &state);
  state.set_name(name);
}

void Module::add(const std::string& name, Module& child) { insert(name, &child); }

void Module::add(const std::string& name, std::span<Module* const> children) {
  auto list = std::make_unique<ModuleList>(children);
  insert(name, list.get());
  lists_.push_back(std::move(list));
}

void Module::add_indexed(std::int64_t index, Module& child) { insert(index, &child); }

std::vector<NamedState> collect_states(const Module& m) {
  std::vector<NamedState> out;
  std::set<const void*> seen;
  walk(m, {}, seen, out);
  require_distinct_names(out);
  return out;
}

State& state_at(const Module& m, const Path& path) {
  std::string known;
  for (const NamedState& n : collect_states(m)) {
    if (n.path == path) return *n.state;
    known += (known.empty() ? "" : ", ") + to_string(n.path);
  }
  throw UserError(fmt::format("state_at: no state at {}; the model has {}",
                              to_string(path), known.empty() ? "no states" : known));
}

void init_all_states(Module& m, const InitOptions& options) {
  BT_REQUIRE(!options.batch_size || *options.batch_size >= 1,
             fmt::format("init_all_states: batch_size must be >= 1, got {}",
                         options.batch_size.value_or(1)));
  const std::vector<NamedState> states = collect_states(m);
  const DType dtype = options.dtype.value_or(float_type(states));
  BT_REQUIRE_KIND(
      is_float(dtype), ErrorKind::type,
      fmt::format("init_all_states: dtype must be f32 or f64, got {}", to_string(dtype)));
  const RngKey root = rng_key(options.seed.value_or(0));
  for (const NamedState& n : states) {
    const RngKey key = fold_in(root, to_slashes(n.path));
    if (n.state->outlives_sequences()) {
      init_param(*n.state, key, dtype, options.seed.has_value());
    } else {
      n.state->initialize(key, {.batch_size = options.batch_size, .dtype = dtype});
    }
  }
}

StateDict state_dict(const Module& m) {
  StateDict out;
  for (const auto& [path, leaf] : leaves_by_path(m))
    out.emplace(path, leaf.state->stored(leaf.index));
  return out;
}

void load_state_dict(Module& m, const StateDict& values) {
  const std::map<std::string, Leaf> known = leaves_by_path(m);
  for (const auto& [path, a] : values) {
    const auto it = known.find(path);
    BT_REQUIRE(it != known.end(),
               fmt::format("load_state_dict: the model has no state '{}'", path));
    const Type want = type_of(it->second.state->stored(it->second.index));
    const bool converts = is_float(a.dtype()) && is_float(want.dtype);
    BT_REQUIRE(a.shape() == want.shape && (a.dtype() == want.dtype || converts),
               fmt::format("load_state_dict: '{}' needs {}, got {}", path,
                           to_string(want), to_string(type_of(a))));
  }
  for (const auto& [path, a] : values) {
    const Leaf& leaf = known.at(path);
    leaf.state->store(leaf.index, a);
  }
}

}  // namespace braintrace
