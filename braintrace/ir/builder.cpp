// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/builder.h"

#include <atomic>

#include <fmt/format.h>

#include "braintrace/ir/constant.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/ir/op_def.h"

namespace braintrace {
namespace {

thread_local RecordingScope* innermost_scope = nullptr;

std::uint64_t next_age() {
  static std::atomic<std::uint64_t> counter{0};
  return ++counter;
}

// Renumbers so that inputs come first and ids follow definition order (I2). Types stay
// with p: values of a closed builder still tell theirs.
GraphParts renumbered(GraphParts&& p) {
  GraphParts q;
  std::vector<ValueId> to(p.types.size());
  q.types.reserve(p.types.size());
  q.nodes.reserve(p.nodes.size());
  auto define = [&](ValueId old) {
    to[old.index] = {static_cast<std::uint32_t>(q.types.size())};
    q.types.push_back(p.types[old.index]);
    return to[old.index];
  };
  for (ValueId v : p.inputs) q.inputs.push_back(define(v));
  for (Node& n : p.nodes) {
    for (ValueId& v : n.inputs) v = to[v.index];
    for (ValueId& v : n.outputs) v = define(v);
    q.nodes.push_back(std::move(n));
  }
  for (ValueId v : p.outputs) q.outputs.push_back(to[v.index]);
  return q;
}

std::string with_location(const char* message, SourceLoc loc) {
  return loc ? fmt::format("{} (at {})", message, to_string(loc)) : message;
}

}  // namespace

Builder::Builder() : age_(next_age()) {}

std::shared_ptr<Builder> Builder::create() {
  return std::shared_ptr<Builder>(new Builder());
}

ValueId Builder::define(const Type& type) {
  parts_.types.push_back(type);
  producers_.push_back(-1);
  return {static_cast<std::uint32_t>(parts_.types.size() - 1)};
}

Value Builder::input(const Type& type) {
  BT_INVARIANT(open_);
  const ValueId id = define(type);
  parts_.inputs.push_back(id);
  return {shared_from_this(), id};
}

Value Builder::constant(const Array& array) {
  return record(constant_op, {}, {{"value", array.contiguous()}})[0];
}

ValueId Builder::resolve(const Value& v) {
  if (v.is_concrete()) return constant(v.array()).id();
  if (v.builder().get() == this) return v.id();
  BT_REQUIRE_KIND(v.builder()->is_open(), ErrorKind::runtime,
                  fmt::format("a value of type {} is used after its trace has ended",
                              to_string(v.type())));
  const std::pair<const Builder*, ValueId> key{v.builder().get(), v.id()};
  if (const auto it = capture_ids_.find(key); it != capture_ids_.end()) return it->second;
  const ValueId id = define(v.type());
  capture_ids_.emplace(key, id);
  captured_inputs_.push_back(id);
  captured_.push_back(v);
  return id;
}

std::vector<Value> Builder::record(const OpDef& op, std::span<const Value> inputs,
                                   Attrs attrs, SourceLoc loc) {
  BT_INVARIANT(open_);
  Node n{.op = &op, .attrs = std::move(attrs), .loc = loc};
  std::vector<Type> types;
  for (const Value& v : inputs) {
    n.inputs.push_back(resolve(v));
    types.push_back(type(n.inputs.back()));
  }
  const std::vector<Type> outputs = infer_types(op, types, n.attrs);
  return add(std::move(n), outputs);
}

std::vector<Value> Builder::copy(const Graph& from, const Node& node,
                                 std::span<const Value> inputs, Attrs attrs) {
  BT_INVARIANT(open_ && inputs.size() == node.inputs.size());
  Node n{.op = node.op, .attrs = std::move(attrs), .loc = node.loc};
  n.inputs.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    n.inputs.push_back(resolve(inputs[i]));
    BT_INVARIANT(type(n.inputs.back()) == from.type(node.inputs[i]));
  }
  return add(std::move(n), from.types_of(node.outputs));
}

std::vector<Value> Builder::add(Node n, const std::vector<Type>& outputs) {
  std::vector<Value> out;
  for (const Type& t : outputs) {
    n.outputs.push_back(define(t));
    producers_.back() = static_cast<std::int64_t>(parts_.nodes.size());
    out.push_back({shared_from_this(), n.outputs.back()});
  }
  parts_.nodes.push_back(std::move(n));
  return out;
}

const Node* Builder::producer(ValueId v) const {
  const std::int64_t at = producers_.at(v.index);
  return at < 0 ? nullptr : &parts_.nodes[static_cast<std::size_t>(at)];
}

Graph Builder::finish(std::span<const Value> outputs) {
  BT_INVARIANT(open_);
  for (const Value& v : outputs) parts_.outputs.push_back(resolve(v));
  open_ = false;
  parts_.inputs.insert(parts_.inputs.end(), captured_inputs_.begin(),
                       captured_inputs_.end());
  Graph g(renumbered(std::move(parts_)));
  producers_.assign(producers_.size(), -1);
#ifdef BRAINTRACE_VERIFY
  verify(g);
#endif
  return g;
}

RecordingScope::RecordingScope(std::shared_ptr<Builder> builder)
    : builder_(std::move(builder)), outer_(innermost_scope) {
  innermost_scope = this;
}

RecordingScope::~RecordingScope() { innermost_scope = outer_; }

RecordingScope* RecordingScope::innermost() { return innermost_scope; }

namespace {
thread_local SourceLoc scope_location;
}  // namespace

LocationScope::LocationScope(const SourceLoc& loc) : outermost_(!scope_location) {
  if (outermost_) scope_location = loc;
}

LocationScope::~LocationScope() {
  if (outermost_) scope_location = {};
}

std::shared_ptr<Builder> common_builder(std::span<const Value> values) {
  std::shared_ptr<Builder> deepest;
  for (const Value& v : values) {
    if (v.is_concrete()) continue;
    BT_REQUIRE_KIND(v.builder()->is_open(), ErrorKind::runtime,
                    fmt::format("a value of type {} is used after its trace has ended",
                                to_string(v.type())));
    if (!deepest || v.builder()->age() > deepest->age()) deepest = v.builder();
  }
  return deepest;
}

namespace {

// Where an op on these values is recorded; null: all are concrete.
std::shared_ptr<Builder> recording_builder(std::span<const Value> inputs) {
  std::shared_ptr<Builder> builder = common_builder(inputs);
  const RecordingScope* scope = RecordingScope::innermost();
  const bool deeper = builder && scope && scope->builder()->is_open() &&
                      scope->builder()->age() > builder->age();
  return deeper ? scope->builder() : builder;
}

}  // namespace

std::vector<Value> emit(const OpDef& op, std::vector<Value> inputs, Attrs attrs,
                        SourceLoc loc) {
  if (scope_location) loc = scope_location;
  try {
    if (const auto builder = recording_builder(inputs))
      return builder->record(op, inputs, std::move(attrs), loc);
    std::vector<Array> arrays;
    for (const Value& v : inputs) arrays.push_back(v.array());
    std::vector<Value> out;
    for (Array& a : eval_op(op, arrays, attrs)) out.emplace_back(std::move(a));
    return out;
  } catch (const UserError& e) {
    const bool located =
        std::string_view(e.what()).find(" (at ") != std::string_view::npos;
    throw UserError(e.kind(), located ? e.what() : with_location(e.what(), loc));
  }
}

Value emit1(const OpDef& op, std::vector<Value> inputs, Attrs attrs, SourceLoc loc) {
  std::vector<Value> out = emit(op, std::move(inputs), std::move(attrs), loc);
  BT_INVARIANT(out.size() == 1);
  return out[0];
}

const Node* producer(const Value& v) {
  return v.is_concrete() ? nullptr : v.builder()->producer(v.id());
}

std::optional<Array> literal(const Value& v) {
  if (v.is_concrete()) return v.array();
  const Node* n = producer(v);
  const Array* a = n ? literal(*n) : nullptr;
  return a ? std::optional<Array>(*a) : std::nullopt;
}

std::vector<Value> inline_graph(const Graph& g, std::span<const Value> inputs) {
  BT_REQUIRE(inputs.size() == g.inputs().size(),
             fmt::format("inline_graph: the program has {} inputs, got {}",
                         g.inputs().size(), inputs.size()));
  std::vector<Value> env(g.num_values());
  for (std::size_t i = 0; i < inputs.size(); ++i) env[g.inputs()[i].index] = inputs[i];
  // Nodes without inputs are recorded too: running them here would blow a stretched
  // scalar up to a literal array.
  const std::shared_ptr<Builder> trace = common_builder(inputs);
  for (const Node& n : g.nodes()) {
    std::vector<Value> in;
    for (ValueId v : n.inputs) in.push_back(env[v.index]);
    const std::vector<Value> out = trace ? trace->record(*n.op, in, n.attrs, n.loc)
                                         : emit(*n.op, std::move(in), n.attrs, n.loc);
    for (std::size_t k = 0; k < out.size(); ++k) env[n.outputs[k].index] = out[k];
  }
  std::vector<Value> results;
  for (ValueId v : g.outputs()) results.push_back(env[v.index]);
  return results;
}

}  // namespace braintrace
