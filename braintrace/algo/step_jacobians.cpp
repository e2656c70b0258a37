// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/step_jacobians.h"

#include <algorithm>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

class JacobianWriter {
 public:
  JacobianWriter(const RuleContext& context, HiddenJacobian hidden)
      : context_(context), hidden_(hidden), d_(context.groups().size()) {}

  JacobianProgram run() {
    const auto builder = Builder::create();
    StepValues values;
    program_.reads = context_.reads();
    for (ValueId v : program_.reads)
      values.emplace(v, builder->input(context_.graph().module_info.program().type(v)));
    StepTerms terms(context_, std::move(values));
    std::map<const ScanDescentInfo*, std::vector<std::size_t>> inside;
    for (std::size_t r = 0; r < context_.relations().size(); ++r) {
      const auto* loop = context_.relations()[r].relation().control_flow_context.get();
      if (loop)
        inside[loop].push_back(r);
      else
        note(r, x_of(terms, r), context_.relations()[r].df(terms.values()));
    }
    for (const auto& [loop, relations] : inside) sub_steps(terms, loop, relations);
    for (const HiddenGroup& g : context_.groups())
      if (!g.descent) d_[static_cast<std::size_t>(g.index)] = D(terms, g);
    return finish(*builder);
  }

 private:
  std::optional<Value> x_of(const StepTerms& t, std::size_t r) const {
    const auto& x = context_.relations()[r].relation().x;
    return x ? std::optional(t.values().at(*x)) : std::nullopt;
  }

  Value D(StepTerms& t, const HiddenGroup& g) const {
    const ModuleInfo& info = g.descent ? g.descent->body : context_.graph().module_info;
    const Type member = info.program().type(g.members[0].in);
    Shape full = g.varshape();
    full.push_back(g.num_state());
    if (hidden_ == HiddenJacobian::full) {
      const Shape one = full;
      full.insert(full.end(), one.begin(), one.end());
      if (!g.has_recurrence) return Value(zeros(full, member.dtype));
      std::vector<Value> in;
      for (ValueId v : g.transition_constants) in.push_back(t.values().at(v));
      for (ValueId v : g.hidden_invars()) in.push_back(t.values().at(v));
      return inline_graph(g.full_jacobian_program(), in)[0];
    }
    if (const std::optional<Value>& d = t.D(g.index)) return *d;
    full.back() = context_.width(g.index);
    full.push_back(full.back());
    return Value(zeros(full, member.dtype));
  }

  void note(std::size_t r, const std::optional<Value>& x, const Value& df) {
    const RelationWriter& w = context_.relations()[r];
    program_.df.emplace_back(w.index(), w.group().index);
    df_.push_back(df);
    if (!x) return;
    const auto* loop = w.relation().control_flow_context.get();
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const HiddenParamOpRelation& other =
          context_.graph().hidden_param_op_relations[program_.x[i][0]];
      if (other.control_flow_context.get() != loop || other.x != w.relation().x) continue;
      std::vector<std::size_t>& readers = program_.x[i];
      if (std::find(readers.begin(), readers.end(), w.index()) == readers.end())
        readers.push_back(w.index());
      return;
    }
    program_.x.push_back({w.index()});
    x_.push_back(*x);
  }

  // The terms of every sub-step of an opened loop, stacked.
  void sub_steps(const StepTerms& terms, const ScanDescentInfo* loop,
                 const std::vector<std::size_t>& relations) {
    std::vector<const HiddenGroup*> groups;
    for (const HiddenGroup& g : context_.groups())
      if (g.descent.get() == loop) groups.push_back(&g);
    const LoopValues& values = context_.loop(loop);
    const ScanResult r = scan(
        [&](const Values& in) {
          StepTerms sub = terms.within(values.at(terms.values(), in));
          Values out;
          for (std::size_t i : relations) {
            if (const auto x = x_of(sub, i)) out.push_back(*x);
            out.push_back(context_.relations()[i].df(sub.values()));
          }
          for (const HiddenGroup* g : groups) out.push_back(D(sub, *g));
          return out;
        },
        {}, values.stacked(terms.values()));
    std::size_t at = 0;
    for (std::size_t i : relations) {
      std::optional<Value> x;
      if (context_.relations()[i].relation().x) x = r.ys[at++];
      note(i, x, r.ys[at++]);
    }
    for (const HiddenGroup* g : groups)
      d_[static_cast<std::size_t>(g->index)] = r.ys[at++];
  }

  JacobianProgram finish(Builder& builder) {
    std::vector<Value> outputs = x_;
    outputs.insert(outputs.end(), df_.begin(), df_.end());
    outputs.insert(outputs.end(), d_.begin(), d_.end());
    program_.num_groups = d_.size();
    program_.graph = builder.finish(outputs);
    return std::move(program_);
  }

  const RuleContext& context_;
  HiddenJacobian hidden_;
  JacobianProgram program_;
  std::vector<Value> x_, df_, d_;  // d_: a scalar zero where nothing is asked for
};

}  // namespace

JacobianProgram jacobian_program(const RuleContext& context, HiddenJacobian hidden) {
  return JacobianWriter(context, hidden).run();
}

}  // namespace braintrace
