// SPDX-License-Identifier: Apache-2.0
// A loop of known length: carry values go from step to step, xs are read and ys stacked
// along axis 0.
#include <cstring>

#include <fmt/format.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/ir/subgraph.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/region_rewrite.h"
#include "braintrace/ops/scan_impl.h"

namespace braintrace {
namespace {

std::size_t checked_count_scan(const Attrs& attrs, std::string_view name,
                               std::size_t limit) {
  const std::int64_t n = attrs.integer(name);
  BT_REQUIRE(n >= 0 && static_cast<std::uint64_t>(n) <= limit,
             fmt::format("scan: {} must be in [0, {}], got {}", name, limit, n));
  return static_cast<std::size_t>(n);
}

std::vector<Type> infer_scan(std::span<const Type> in, const Attrs& attrs) {
  const std::int64_t length = attrs.integer("length");
  BT_REQUIRE(length >= 0,
             fmt::format("scan: length must not be negative, got {}", length));
  const std::size_t consts = checked_count_scan(attrs, "num_consts", in.size());
  const std::size_t carry = checked_count_scan(attrs, "num_carry", in.size() - consts);
  const Graph& body = *attrs.graph("body");

  std::vector<Type> steps(in.begin(),
                          in.begin() + static_cast<std::ptrdiff_t>(consts + carry));
  for (std::size_t i = consts + carry; i < in.size(); ++i) {
    BT_REQUIRE(in[i].rank() >= 1 && in[i].shape[0] == length,
               fmt::format("scan: axis 0 of input {} must have length {}, got {}", i,
                           length, to_string(in[i])));
    steps.push_back(step_type(in[i]));
  }
  require_types("scan", "body input", steps, body.input_types());
  std::vector<Type> out = body.output_types();
  BT_REQUIRE(out.size() >= carry,
             fmt::format("scan: the body must return {} carry values, got {} outputs",
                         carry, out.size()));
  require_types("scan", "carry output", in.subspan(consts, carry),
                std::span<const Type>(out).first(carry));
  for (std::size_t i = carry; i < out.size(); ++i) out[i] = stacked_type(out[i], length);
  return out;
}

Array step_of(const Array& stacked, std::int64_t t) {
  Ints start(stacked.shape().size(), 0), step(stacked.shape().size(), 1);
  Shape size = stacked.shape();
  start[0] = t;
  size[0] = 1;
  const Shape shape(size.begin() + 1, size.end());
  return stacked.sliced(start, size, step).reshaped(shape);
}

void store_step(Array& stacked, std::int64_t t, const Array& value) {
  const Array packed = value.contiguous();
  if (packed.num_bytes() == 0) return;
  auto* to = static_cast<std::byte*>(stacked.mutable_raw());
  std::memcpy(to + static_cast<std::size_t>(t) * packed.num_bytes(), packed.raw(),
              packed.num_bytes());
}

void eval_scan(const Kernel& k) {
  const ScanLayout p = scan_layout(k.attrs);
  std::vector<Array> in(k.in.begin(), k.in.end());
  for (std::int64_t i = 0; i < p.length; ++i) {
    const std::int64_t t = p.reverse ? p.length - 1 - i : i;
    for (std::size_t j = 0; j < p.xs; ++j)
      in[p.consts + p.carry + j] = step_of(k.in[p.consts + p.carry + j], t);
    std::vector<Array> out = eval_graph(p.body, in);
    for (std::size_t j = 0; j < p.carry; ++j) in[p.consts + j] = std::move(out[j]);
    for (std::size_t j = 0; j < p.ys; ++j)
      store_step(k.out[p.carry + j], t, out[p.carry + j]);
  }
  for (std::size_t j = 0; j < p.carry; ++j) k.out[j] = in[p.consts + j].contiguous();
}

Lowering lower_scan(const Signature& s) {
  const ScanLayout p = scan_layout(s.attrs);
  return lowering::Scan{s.attrs.graph("body"), p.length, p.consts, p.carry, p.reverse};
}

std::int64_t scan_length(const Values& xs, const ScanOptions& options) {
  std::int64_t length = options.length;
  for (const Value& x : xs) {
    BT_REQUIRE(x.rank() >= 1,
               "scan: every x needs an axis 0 to step along, got a scalar");
    if (length < 0) length = x.dim(0);
    BT_REQUIRE(x.dim(0) == length,
               fmt::format("scan: every x must have length {} along axis 0, got {}",
                           length, to_string(x.type())));
  }
  BT_REQUIRE(length >= 0, "scan: without xs a length is needed");
  return length;
}

}  // namespace

ScanLayout scan_layout(const Attrs& attrs) {
  const Graph& body = *attrs.graph("body");
  const auto consts = static_cast<std::size_t>(attrs.integer("num_consts"));
  const auto carry = static_cast<std::size_t>(attrs.integer("num_carry"));
  return {.body = body,
          .consts = consts,
          .carry = carry,
          .xs = body.inputs().size() - consts - carry,
          .ys = body.outputs().size() - carry,
          .length = attrs.integer("length"),
          .reverse = attrs.flag("reverse")};
}

Values emit_scan(ScanNode n, SourceLoc loc) {
  Attrs attrs = {{"body", n.body},
                 {"length", n.length},
                 {"num_carry", static_cast<std::int64_t>(n.carry.size())},
                 {"num_consts", static_cast<std::int64_t>(n.consts.size())},
                 {"reverse", n.reverse}};
  Values in = std::move(n.consts);
  append(in, n.carry);
  append(in, n.xs);
  return emit(scan_op, std::move(in), std::move(attrs), loc);
}

const OpDef scan_op = {
    .name = "scan",
    .traits = Trait::region,
    .arity = kVariadic,
    .attrs = {{"body", AttrKind::graph},
              {"length", AttrKind::integer},
              {"num_carry", AttrKind::integer},
              {"num_consts", AttrKind::integer},
              {"reverse", AttrKind::boolean}},
    .infer = infer_scan,
    .eval = eval_scan,
    .lower = lower_scan,
    .code = "scan({body}, {length}, $*)",
    .jvp_region = scan_jvp,
    .transpose = scan_transpose,
    .batch = scan_batch,
    .unroll = scan_unroll,
};

ScanResult scan(const ValuesFn& body, const Values& init, const Values& xs,
                ScanOptions options, Loc loc) {
  const std::int64_t length = scan_length(xs, options);
  std::vector<Type> types = types_of(init);
  for (const Value& x : xs) types.push_back(step_type(x.type()));
  const Traced t = trace(body, types);
  const std::vector<Type> out = t.graph.output_types();
  BT_REQUIRE(
      out.size() >= init.size(),
      fmt::format("scan: the body must return {} carry values first, got {} outputs",
                  init.size(), out.size()));
  require_types("scan", "carry output", types_of(init),
                std::span<const Type>(out).first(init.size()));

  // Captured values come last in the trace and first in the node.
  const auto ids = t.graph.inputs();
  std::vector<ValueId> order(ids.begin() + static_cast<std::ptrdiff_t>(types.size()),
                             ids.end());
  append(order, ids.first(types.size()));
  auto graph = std::make_shared<const Graph>(subgraph(t.graph, order, t.graph.outputs()));
  Values result =
      emit_scan({std::move(graph), t.captured, init, xs, length, options.reverse}, loc);
  const auto split = result.begin() + static_cast<std::ptrdiff_t>(init.size());
  return {.carry = {result.begin(), split}, .ys = {split, result.end()}};
}

}  // namespace braintrace
