// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/trace_view.h"

#include <algorithm>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

bool per_weight_entry(const TraceSlot& t) {
  return t.kind == "bwg" || t.kind == "kappa_filtered";
}

const RelationWriter& writer_of(const RuleContext& context, const TraceSlot& t) {
  const auto& all = context.relations();
  const auto it = std::find_if(all.begin(), all.end(), [&](const RelationWriter& r) {
    return static_cast<std::int64_t>(r.index()) == t.relation &&
           r.group().index == t.group;
  });
  BT_INVARIANT(it != all.end());
  return *it;
}

class ViewWriter {
 public:
  explicit ViewWriter(const CompiledRule& rule) : rule_(rule) {}

  TraceViewProgram run() {
    const auto builder = Builder::create();
    for (const WeightVar& w : rule_.graph().module_info.weights) {
      program_.leaves.push_back(leaf_name(w));
      leaves_[leaf_name(w)] =
          builder->input(rule_.graph().module_info.program().type(w.id));
    }
    for (const TraceSlot& t : rule_.traces()) stored_.push_back(builder->input(t.type));
    for (std::size_t i = 0; i < stored_.size();) i += write(i);
    program_.graph = builder->finish(outputs_);
    return std::move(program_);
  }

 private:
  // Handles the slots of one relation at once; says how many.
  std::size_t write(std::size_t first) {
    const TraceSlot& t = rule_.traces()[first];
    if (!per_weight_entry(t)) {
      add(t, stored_[first]);
      return 1;
    }
    const RelationWriter& r = writer_of(rule_.context(), t);
    const auto count = static_cast<std::size_t>(r.num_slots());
    std::vector<Value> slots;
    for (std::size_t i = first; i < first + count; ++i)
      slots.push_back(astype(stored_[i], r.y_type().dtype));
    StepValues ids;
    for (const WeightVar& w : r.leaves()) ids.emplace(w.id, leaves_.at(leaf_name(w)));
    for (const LeafTrace& v : r.parameter_traces(ids, slots, rule_.options().prologue)) {
      TraceSlot slot{
          .kind = t.kind, .key = v.key, .relation = t.relation, .group = t.group};
      slot.type = v.value.type();
      slot.parameter = v.leaf.path;
      add(std::move(slot), v.value);
    }
    return count;
  }

  void add(TraceSlot slot, const Value& v) {
    program_.slots.push_back(std::move(slot));
    outputs_.push_back(v);
  }

  const CompiledRule& rule_;
  std::map<std::string, Value> leaves_;
  std::vector<Value> stored_, outputs_;
  TraceViewProgram program_;
};

}  // namespace

TraceViewProgram parameter_view(const CompiledRule& rule) {
  return ViewWriter(rule).run();
}

}  // namespace braintrace
