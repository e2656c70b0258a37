// SPDX-License-Identifier: Apache-2.0
#include "braintrace/model/state.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/model/trace_scope.h"
#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

Shape with_state_axis(Shape size, std::int64_t num_state) {
  BT_REQUIRE(num_state >= 1,
             fmt::format("HiddenGroupState: num_state must be >= 1, got {}", num_state));
  size.push_back(num_state);
  return size;
}

Array draw_key(RngKey key, const Shape&, DType) { return key_array(key); }

}  // namespace

std::string_view to_string(StateKind k) {
  switch (k) {
    case StateKind::param:
      return "ParamState";
    case StateKind::hidden:
      return "HiddenState";
    case StateKind::hidden_group:
      return "HiddenGroupState";
    case StateKind::hidden_tree:
      return "HiddenTreeState";
    case StateKind::short_term:
      return "ShortTermState";
  }
  return "State";
}

Initializer constant_init(double value) {
  return [value](RngKey, const Shape& shape, DType dtype) {
    return full(shape, value, dtype);
  };
}

State::State(StateKind kind, std::vector<LeafSpec> specs, bool batched,
             std::optional<DType> dtype)
    : kind_(kind), specs_(std::move(specs)), batched_(batched), fixed_dtype_(dtype) {
  BT_REQUIRE(!specs_.empty(), "State: needs at least one leaf");
  std::sort(specs_.begin(), specs_.end(),
            [](const LeafSpec& a, const LeafSpec& b) { return a.key < b.key; });
  for (const LeafSpec& s : specs_) {
    check_shape("State", s.shape);
    BT_REQUIRE(s.init, fmt::format("State: leaf '{}' has no initialiser", s.key));
  }
}

std::size_t State::leaf_index(std::string_view key) const {
  for (std::size_t i = 0; i < specs_.size(); ++i)
    if (specs_[i].key == key) return i;
  std::string known;
  for (const LeafSpec& s : specs_) known += (known.empty() ? "'" : ", '") + s.key + "'";
  throw UserError(fmt::format("state '{}' has no leaf '{}', only {}", name_, key, known));
}

void State::initialize(RngKey key, const StateInit& init) {
  std::vector<Array> arrays;
  for (const LeafSpec& s : specs_) {
    Shape shape = s.shape;
    if (batched_ && init.batch_size) shape.insert(shape.begin(), *init.batch_size);
    const DType dtype = fixed_dtype_.value_or(init.dtype);
    const Array a = s.init(fold_in(key, s.key), shape, dtype);
    BT_REQUIRE(a.shape() == shape && a.dtype() == dtype,
               fmt::format("state '{}': its initialiser gave {}, needs {}", name_,
                           to_string(type_of(a)), to_string(Type{dtype, shape})));
    arrays.push_back(a.contiguous());
  }
  arrays_ = std::move(arrays);
}

const Array& State::stored(std::size_t leaf) const {
  BT_REQUIRE_KIND(
      has_value(), ErrorKind::runtime,
      fmt::format("state '{}' has no value yet: call init_all_states(model) first",
                  name_));
  return arrays_.at(leaf);
}

void State::store(std::size_t leaf, const Array& a) {
  const Array& now = stored(leaf);
  BT_REQUIRE(a.shape() == now.shape(),
             fmt::format("state '{}': shape must stay {}, got {}", name_,
                         to_string(now.shape()), to_string(a.shape())));
  const bool same = a.dtype() == now.dtype();
  const bool converts = is_float(a.dtype()) && is_float(now.dtype());
  BT_REQUIRE_KIND(same || converts, ErrorKind::type,
                  fmt::format("state '{}': needs {}, got {}", name_,
                              to_string(now.dtype()), to_string(a.dtype())));
  if (same && a.is_contiguous())
    arrays_[leaf] = a;  // allocates nothing: streams call this at every step
  else
    arrays_[leaf] = a.astype(now.dtype()).contiguous();
}

Value State::read(std::size_t leaf) {
  if (TraceScope* scope = TraceScope::current()) return scope->read(*this, leaf);
  return stored(leaf);
}

void State::write(std::size_t leaf, const Value& v) {
  if (TraceScope* scope = TraceScope::current()) return scope->write(*this, leaf, v);
  BT_REQUIRE_KIND(
      v.is_concrete(), ErrorKind::runtime,
      fmt::format("state '{}' is set to a symbolic value outside a trace", name_));
  store(leaf, v.array());
}

ParamState::ParamState(Shape shape, Initializer init)
    : State(StateKind::param, {{"", std::move(shape), std::move(init)}}, false, {}) {}

ParamState::ParamState(std::vector<LeafSpec> leaves)
    : State(StateKind::param, std::move(leaves), false, {}) {}

HiddenState::HiddenState(Shape size, Initializer init)
    : HiddenState(StateKind::hidden, std::move(size), std::move(init)) {}

HiddenState::HiddenState(StateKind kind, Shape size, Initializer init)
    : State(kind, {{"", std::move(size), std::move(init)}}, true, {}) {}

Shape HiddenState::varshape() const {
  Shape s = stored().shape();
  if (kind() != StateKind::hidden) s.pop_back();
  return s;
}

HiddenGroupState::HiddenGroupState(Shape size, std::int64_t num_state, Initializer init)
    : HiddenGroupState(StateKind::hidden_group, std::move(size), num_state,
                       std::move(init)) {}

HiddenGroupState::HiddenGroupState(StateKind kind, Shape size, std::int64_t num_state,
                                   Initializer init)
    : HiddenState(kind, with_state_axis(std::move(size), num_state), std::move(init)),
      num_state_(num_state) {}

Value HiddenGroupState::get(std::int64_t i) {
  i = normalize_axis("HiddenGroupState::get", i, num_state_);
  return squeeze(slice_axis(value(), -1, i, 1), -1);
}

void HiddenGroupState::set_all(const std::vector<Value>& members) {
  BT_REQUIRE(static_cast<std::int64_t>(members.size()) == num_state_,
             fmt::format("HiddenGroupState '{}': needs {} members, got {}", name(),
                         num_state_, members.size()));
  set(stack(members, -1));
}

HiddenTreeState::HiddenTreeState(Shape size, std::vector<std::string> names,
                                 Initializer init)
    : HiddenGroupState(StateKind::hidden_tree, std::move(size),
                       static_cast<std::int64_t>(names.size()), std::move(init)),
      names_(std::move(names)) {
  std::vector<std::string> sorted = names_;
  std::sort(sorted.begin(), sorted.end());
  BT_REQUIRE(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(),
             fmt::format("HiddenTreeState: names must be distinct, got {}",
                         fmt::join(names_, ", ")));
}

std::size_t HiddenTreeState::index_of(std::string_view n) const {
  const auto it = std::find(names_.begin(), names_.end(), n);
  BT_REQUIRE(it != names_.end(),
             fmt::format("HiddenTreeState '{}' has no member '{}', only {}", name(), n,
                         fmt::join(names_, ", ")));
  return static_cast<std::size_t>(it - names_.begin());
}

Value HiddenTreeState::get(std::string_view n) {
  return HiddenGroupState::get(static_cast<std::int64_t>(index_of(n)));
}

void HiddenTreeState::set_members(
    const std::vector<std::pair<std::string, Value>>& members) {
  std::vector<Value> values(names_.size());
  std::vector<bool> given(names_.size(), false);
  for (const auto& [key, v] : members) {
    const std::size_t i = index_of(key);
    BT_REQUIRE(!given[i], fmt::format("HiddenTreeState '{}': member '{}' is given twice",
                                      name(), key));
    given[i] = true;
    values[i] = v;
  }
  for (std::size_t i = 0; i < given.size(); ++i)
    BT_REQUIRE(given[i], fmt::format("HiddenTreeState '{}': member '{}' is missing",
                                     name(), names_[i]));
  set_all(values);
}

ShortTermState::ShortTermState(Shape size, Initializer init, ShortTermOptions options)
    : State(StateKind::short_term, {{"", std::move(size), std::move(init)}},
            options.batched, options.dtype) {}

RngState::RngState()
    : ShortTermState({2}, draw_key, {.batched = false, .dtype = DType::i32}) {}

Value RngState::next() {
  const Value key = value();
  set(random_fold_in(key, 0));
  return random_fold_in(key, 1);
}

}  // namespace braintrace
