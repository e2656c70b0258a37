// SPDX-License-Identifier: Apache-2.0
// Checks the invariants I1-I6 of graph.h.
#include <fmt/format.h>

#include "braintrace/ir/op_def.h"
#include "braintrace/ir/print.h"

namespace braintrace {
namespace {

constexpr std::size_t kContext = 5;  // lines either side of the offending node

class Verifier {
 public:
  explicit Verifier(const Graph& g) : g_(g), defined_(g.num_values(), false) {}

  void run() {
    std::uint32_t next = 0;
    for (ValueId v : g_.inputs()) define(v, next++);
    for (at_ = 0; at_ < g_.nodes().size(); ++at_) {
      const Node& n = g_.nodes()[at_];
      check(n.op != nullptr, "I3", "node without an op");
      for (ValueId v : n.inputs) use(v);
      check_types(n);
      for (ValueId v : n.outputs) define(v, next++);
      check_subgraphs(n);
    }
    for (ValueId v : g_.outputs()) use(v);
    check(next == g_.num_values(), "I2", "a value is never defined");
  }

 private:
  void check(bool ok, std::string_view invariant, std::string_view what) const {
    if (ok) return;
    throw InternalError(fmt::format("verify: {} broken at node {}: {}\n{}", invariant,
                                    at_, what, context()));
  }
  std::string context() const {
    std::string text;
    const std::size_t begin = at_ < kContext ? 0 : at_ - kContext;
    for (std::size_t i = begin; i < std::min(at_ + kContext, g_.nodes().size()); ++i) {
      const Node& n = g_.nodes()[i];
      text += i == at_ ? "> " : "  ";
      for (ValueId v : n.outputs) text += fmt::format("%{} ", v.index);
      text += fmt::format("= {}", n.op ? n.op->name : "?");
      for (ValueId v : n.inputs) text += fmt::format(" %{}", v.index);
      text += "\n";
    }
    return text;
  }
  void define(ValueId v, std::uint32_t expected) {
    check(v.index == expected, "I2",
          fmt::format("defines %{} where %{} is next", v.index, expected));
    check(v.index < defined_.size(), "I2", fmt::format("%{} has no type", v.index));
    defined_[v.index] = true;
  }
  void use(ValueId v) const {
    check(v.index < defined_.size() && defined_[v.index], "I3",
          fmt::format("uses %{} before its definition", v.index));
  }
  void check_types(const Node& n) const {
    std::vector<Type> want;
    try {
      want = infer_types(*n.op, g_.types_of(n.inputs), n.attrs);
    } catch (const UserError& e) {
      check(false, "I6", e.what());
    }
    check(want.size() == n.outputs.size(), "I3", "wrong number of outputs");
    for (std::size_t i = 0; i < want.size(); ++i)
      check(n.outputs[i].index < g_.num_values() && want[i] == g_.type(n.outputs[i]),
            "I3", fmt::format("output {} is not {}", i, to_string(want[i])));
  }
  void check_subgraphs(const Node& n) const {
    for (const auto& [name, value] : n.attrs.entries())
      if (const auto* sub = std::get_if<GraphPtr>(&value)) verify(**sub);
  }

  const Graph& g_;
  std::vector<bool> defined_;
  std::size_t at_ = 0;
};

}  // namespace

void verify(const Graph& g) { Verifier(g).run(); }

}  // namespace braintrace
