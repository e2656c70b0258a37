// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records nodes into a Graph under construction. Builders nest: a value of an outer,
// still open builder that is used in an inner one is captured and becomes an extra input
// there.
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "braintrace/ir/value.h"

namespace braintrace {

class Builder : public std::enable_shared_from_this<Builder> {
 public:
  static std::shared_ptr<Builder> create();

  Value input(const Type& type);
  Value constant(const Array& array);

  // Records one node. Inputs may be concrete (become constants), of this builder, or of
  // an outer open builder (captured). UserError when the op refuses them.
  std::vector<Value> record(const OpDef& op, std::span<const Value> inputs, Attrs attrs,
                            SourceLoc loc = {});
  // A node of another graph, with attributes that change no type. Needs: inputs of the
  // types they have there.
  std::vector<Value> copy(const Graph& from, const Node& node,
                          std::span<const Value> inputs, Attrs attrs);

  // Closes the builder: outputs may be concrete or captured as in record().
  // Inputs of the Graph: declared ones, then one per captured value, in capture order.
  Graph finish(std::span<const Value> outputs);

  // Outer values this builder used; valid after finish.
  std::span<const Value> captured() const { return captured_; }

  const Type& type(ValueId v) const { return parts_.types.at(v.index); }
  // The node that defines v, null for inputs and once the builder is closed. Valid until
  // the next node is recorded.
  const Node* producer(ValueId v) const;
  bool is_open() const { return open_; }
  std::uint64_t age() const { return age_; }  // later = deeper

 private:
  Builder();
  ValueId define(const Type& type);
  std::vector<Value> add(Node n, const std::vector<Type>& outputs);
  ValueId resolve(const Value& v);  // id in this builder

  GraphParts parts_;
  std::vector<std::int64_t> producers_;  // by value id: index of the node, -1 for inputs
  std::vector<ValueId> captured_inputs_;
  std::vector<Value> captured_;
  std::map<std::pair<const Builder*, ValueId>, ValueId> capture_ids_;
  std::uint64_t age_;
  bool open_ = true;
};

// While it lives, ops on symbolic values of older builders are recorded in this one too:
// what a loop body computes stays in the body, also when it reads outer values only.
// Scopes nest; the innermost one of the thread is the only thread-local of the library.
class RecordingScope {
 public:
  explicit RecordingScope(std::shared_ptr<Builder> builder);
  virtual ~RecordingScope();
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

  static RecordingScope* innermost();  // null outside any trace
  RecordingScope* outer() const { return outer_; }
  const std::shared_ptr<Builder>& builder() const { return builder_; }

 private:
  std::shared_ptr<Builder> builder_;
  RecordingScope* outer_;
};

// Functions made of several ops show their caller: while it lives, all ops are recorded
// at `loc`. The outermost one counts.
class LocationScope {
 public:
  explicit LocationScope(const SourceLoc& loc);
  ~LocationScope();
  LocationScope(const LocationScope&) = delete;
  LocationScope& operator=(const LocationScope&) = delete;

 private:
  bool outermost_;
};

// The open builder the values belong to (the deepest), or null when all are concrete.
// UserError when a value's trace has ended.
std::shared_ptr<Builder> common_builder(std::span<const Value> values);

// Runs the op at once on concrete values, else records it in common_builder.
std::vector<Value> emit(const OpDef& op, std::vector<Value> inputs, Attrs attrs = {},
                        SourceLoc loc = {});
Value emit1(const OpDef& op, std::vector<Value> inputs, Attrs attrs = {},
            SourceLoc loc = {});

// The node that defines v in its open builder; null for concrete values and inputs.
// Valid until the next node is recorded.
const Node* producer(const Value& v);
// Its value when v is concrete or a recorded constant, else nullopt.
std::optional<Array> literal(const Value& v);

// Inlines a graph at the current place: fresh nodes, same values.
std::vector<Value> inline_graph(const Graph& g, std::span<const Value> inputs);

}  // namespace braintrace
