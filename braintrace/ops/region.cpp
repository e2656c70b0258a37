// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/region.h"

#include <fmt/format.h>

#include "braintrace/ir/builder.h"

namespace braintrace {

Traced trace(const ValuesFn& f, std::span<const Type> inputs) {
  const auto builder = Builder::create();
  const RecordingScope scope(builder);
  Values in;
  for (const Type& t : inputs) in.push_back(builder->input(t));
  Graph graph = builder->finish(f(in));
  return {std::move(graph), {builder->captured().begin(), builder->captured().end()}};
}

GraphPtr write_graph(std::span<const Type> inputs, const ValuesFn& f) {
  Traced t = trace(f, inputs);
  BT_INVARIANT(t.captured.empty());
  return std::make_shared<const Graph>(std::move(t.graph));
}

std::vector<Type> types_of(std::span<const Value> values) {
  std::vector<Type> types;
  for (const Value& v : values) types.push_back(v.type());
  return types;
}

std::vector<bool> present(std::span<const Tangent> tangents) {
  std::vector<bool> marks;
  for (const Tangent& t : tangents) marks.push_back(t.has_value());
  return marks;
}

Values present_values(std::span<const Tangent> tangents) {
  Values values;
  for (const Tangent& t : tangents)
    if (t) values.push_back(*t);
  return values;
}

Type step_type(Type stacked) {
  BT_INVARIANT(stacked.rank() >= 1);
  stacked.shape.erase(stacked.shape.begin());
  return stacked;
}

Type stacked_type(Type step, std::int64_t length) {
  step.shape.insert(step.shape.begin(), length);
  return step;
}

void require_types(std::string_view who, std::string_view what,
                   std::span<const Type> want, std::span<const Type> got) {
  BT_REQUIRE(want.size() == got.size(),
             fmt::format("{}: needs {} {}s, got {}", who, want.size(), what, got.size()));
  for (std::size_t i = 0; i < want.size(); ++i)
    BT_REQUIRE_KIND(want[i] == got[i], ErrorKind::type,
                    fmt::format("{}: {} {} must be {}, got {}", who, what, i,
                                to_string(want[i]), to_string(got[i])));
}

}  // namespace braintrace
