// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/tile_program.h"

#include <cmath>
#include <limits>
#include <random>
#include <variant>

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/registry.h"
#include "braintrace/run/thread_pool.h"
#include "braintrace/run/tile_kernels.h"

namespace tile_program_test {

using namespace braintrace;

namespace {

constexpr int kNumMicroOps = static_cast<int>(MicroOp::clamp) + 1;

// The op whose lowering is the micro-op, run by its own eval.
Array judge(MicroOp micro, const std::vector<Array>& operands, DType result) {
  if (micro == MicroOp::copy) return operands[0];  // the op refuses bf16
  for (const OpDef* op : op_table()) {
    if (op->lower == nullptr || op->name != to_string(micro)) continue;
    Attrs attrs;
    if (micro == MicroOp::convert) attrs = {{"dtype", result}};
    return emit1(*op, Values(operands.begin(), operands.end()), attrs).array();
  }
  FAIL("no op for " << to_string(micro));
  return {};
}

// Ordinary numbers and every special one.
Array data(DType dtype, const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-4, 4);
  const double infinity = std::numeric_limits<double>::infinity();
  const double special[] = {0.0, -0.0, infinity, -infinity, std::nan(""), 1, -1, 3e9};
  std::vector<double> values;
  for (std::int64_t i = 0; i < num_elements(shape); ++i)
    values.push_back(random() % 8 == 0 ? special[random() % 8] : uniform(random));
  if (dtype != DType::i32) return array(shape, values, DType::f64).astype(dtype);
  for (double& v : values) v = random() % 3 == 0 ? std::floor(uniform(random)) : v * 1e9;
  return array(shape, values, DType::f64).astype(dtype);
}

struct Run {
  std::vector<Array> outputs;
};

Run run(const TileSpec& spec, const std::vector<Array>& inputs,
        const std::vector<Array>& like, int threads = 1) {
  ThreadPool pool(threads);
  std::vector<const void*> in;
  for (const Array& a : inputs) in.push_back(a.raw());
  Run r{like};
  std::vector<void*> out;
  for (Array& a : r.outputs) {
    a = Array(a.dtype(), a.shape());
    out.push_back(a.mutable_raw());
  }
  TileProgram(spec).run(in, out, pool);
  return r;
}

Ints packed(const Shape& s) { return row_major_strides(s); }

std::vector<DType> operand_types(MicroOp op, DType data) {
  std::vector<DType> types(static_cast<std::size_t>(arity(op)), data);
  if (op == MicroOp::select) types[0] = DType::boolean;
  return types;
}

}  // namespace

TEST_CASE("every micro-op on every type gives the bits of its op") {
  int checked = 0;
  const DType all[] = {DType::boolean, DType::i32, DType::bf16, DType::f32, DType::f64};
  for (int i = 0; i < kNumMicroOps; ++i) {
    const auto op = static_cast<MicroOp>(i);
    for (DType operand : all) {
      for (DType result : all) {
        if (!tile_supports(op, operand, result)) continue;
        ++checked;
        const Shape shape = {1031};
        TileSpec spec{.loop = shape};
        std::vector<Array> inputs;
        for (DType d : operand_types(op, operand)) {
          inputs.push_back(data(d, shape, static_cast<unsigned>(inputs.size()) + 1));
          spec.inputs.push_back({d, packed(shape)});
        }
        TileStep step{op, result, {}};
        for (int v = 0; v < arity(op); ++v) step.operands.push_back(v);
        spec.steps.push_back(step);
        spec.outputs.push_back({arity(op), packed(shape)});
        const Array want = judge(op, inputs, result);
        INFO(to_string(op) << " " << to_string(operand) << " -> " << to_string(result));
        CHECK(run(spec, inputs, {want}).outputs[0] == want);
      }
    }
  }
  // 16 on i32, 31 on each float, 11 on booleans, 5 copies, 19 conversions.
  CHECK(checked == 16 + 2 * 31 + 11 + 5 + 19);
}

TEST_CASE("operands repeated along axes are read as such") {
  // Rows short and long, so that blocks hold whole rows or lie inside one.
  for (const Shape& loop :
       {Shape{37, 5}, Shape{3, 700}, Shape{4, 6, 9}, Shape{2, 3, 200}, Shape{7, 23},
        Shape{7, 24}, Shape{5, 3, 41}, Shape{4, 32, 32}, Shape{3, 50, 48},
        Shape{2, 3, 4, 100}, Shape{1, 1}, Shape{}, Shape{0, 4}}) {
    const auto rank = loop.size();
    for (std::size_t mask = 0; mask < (1U << rank); ++mask) {
      Shape small = loop;
      for (std::size_t a = 0; a < rank; ++a)
        if ((mask >> a & 1) != 0) small[a] = 1;
      Ints strides = packed(small);
      for (std::size_t a = 0; a < rank; ++a)
        if ((mask >> a & 1) != 0) strides[a] = 0;
      const Array x = data(DType::f32, loop, 3), b = data(DType::f32, small, 4);
      const TileSpec spec{
          .loop = loop,
          .inputs = {{DType::f32, packed(loop)}, {DType::f32, strides}},
          .steps = {{MicroOp::mul, DType::f32, {0, 1}},
                    {MicroOp::pow, DType::f32, {2, 1}},
                    {MicroOp::sub, DType::f32, {1, 2}},
                    {MicroOp::neg, DType::f32, {1}}},
          .outputs = {{3, packed(loop)}, {4, packed(loop)}, {5, packed(loop)}}};
      const Array wide = b.broadcast_to(loop).contiguous();
      const Array product = judge(MicroOp::mul, {x, wide}, DType::f32);
      INFO(to_string(loop) << " repeated " << mask);
      const Run r = run(spec, {x, b}, {x, x, x});
      CHECK(r.outputs[0] == judge(MicroOp::pow, {product, wide}, DType::f32));
      CHECK(r.outputs[1] == judge(MicroOp::sub, {wide, product}, DType::f32));
      CHECK(r.outputs[2] == judge(MicroOp::neg, {wide}, DType::f32));
    }
  }
}

TEST_CASE("outer products over several axes are made row by row at any start") {
  const Shape loop = {50, 33, 32};
  const Array x = data(DType::f32, {50, 1, 32}, 3), y = data(DType::f32, {50, 33, 1}, 4);
  const TileSpec spec{.loop = loop,
                      .inputs = {{DType::f32, {32, 0, 1}}, {DType::f32, {33, 1, 0}}},
                      .steps = {{MicroOp::mul, DType::f32, {0, 1}}},
                      .outputs = {{2, packed(loop)}}};
  const Array want =
      judge(MicroOp::mul, {x.broadcast_to(loop), y.broadcast_to(loop)}, DType::f32);
  for (const int threads : {1, 2, 4})  // each starts somewhere between rows
    CHECK(run(spec, {x, y}, {want}, threads).outputs[0] == want);
}

TEST_CASE("inputs and outputs may be transposed or padded") {
  const Shape loop = {40, 30};
  const Array x = data(DType::f64, loop, 1);
  const Array turned = x.transposed({1, 0}).contiguous();  // [30, 40]
  Array wide(DType::f64, {40, 50});
  const TileSpec spec{.loop = loop,
                      .inputs = {{DType::f64, {1, 40}}},
                      .steps = {{MicroOp::abs, DType::f64, {0}}},
                      .outputs = {{1, {50, 1}}, {0, packed(loop)}}};
  Array same(DType::f64, loop);
  ThreadPool pool;
  const void* in[] = {turned.raw()};
  void* out[] = {wide.mutable_raw(), same.mutable_raw()};
  TileProgram(spec).run(in, out, pool);
  CHECK(same == x);
  CHECK(wide.sliced({0, 0}, loop, {1, 1}).contiguous() ==
        judge(MicroOp::abs, {x}, DType::f64));
  CHECK(wide.sliced({0, 30}, {40, 20}, {1, 1}).contiguous() ==
        zeros({40, 20}, DType::f64));
}

TEST_CASE("outputs may take over the memory of inputs") {
  const Shape loop = {2000};
  const Ints flat = packed(loop);
  const Array a = data(DType::f32, loop, 1), b = data(DType::f32, loop, 2);
  // a' = a + b is ready before a is read for the last time; b' = a is a swap.
  const TileSpec spec{
      .loop = loop,
      .inputs = {{DType::f32, flat}, {DType::f32, flat}},
      .steps = {{MicroOp::add, DType::f32, {0, 1}}, {MicroOp::mul, DType::f32, {0, 2}}},
      .outputs = {{2, flat, 0}, {0, flat, 1}, {3, flat}}};
  Array x = a.astype(DType::f64).astype(DType::f32);
  Array y = b.astype(DType::f64).astype(DType::f32);
  Array z(DType::f32, loop);
  ThreadPool pool;
  const void* in[] = {x.mutable_raw(), y.mutable_raw()};
  void* out[] = {x.mutable_raw(), y.mutable_raw(), z.mutable_raw()};
  TileProgram(spec).run(in, out, pool);
  const Array sum = judge(MicroOp::add, {a, b}, DType::f32);
  CHECK(x == sum);
  CHECK(y == a);
  CHECK(z == judge(MicroOp::mul, {a, sum}, DType::f32));
}

TEST_CASE("random chains give the bits of their ops at any number of threads") {
  std::mt19937 random(7);
  const MicroOp unary[] = {MicroOp::neg, MicroOp::abs, MicroOp::sign, MicroOp::floor};
  const MicroOp binary[] = {MicroOp::add, MicroOp::sub, MicroOp::mul, MicroOp::max,
                            MicroOp::min};
  for (int round = 0; round < 40; ++round) {
    const DType type = round % 2 == 0 ? DType::f32 : DType::f64;
    const Shape loop = {20 + static_cast<std::int64_t>(random() % 600), 33};
    TileSpec spec{.loop = loop};
    std::vector<Array> values;
    for (unsigned i = 0; i < 3; ++i) {
      spec.inputs.push_back({type, packed(loop)});
      values.push_back(data(type, loop, random()));
    }
    const std::vector<Array> inputs = values;
    for (int s = 0; s < 30; ++s) {
      const auto pick = [&] { return static_cast<int>(random() % values.size()); };
      TileStep step{unary[random() % 4], type, {pick()}};
      if (random() % 3 != 0) step = {binary[random() % 5], type, {pick(), pick()}};
      std::vector<Array> operands;
      for (int v : step.operands) operands.push_back(values[static_cast<std::size_t>(v)]);
      values.push_back(judge(step.op, operands, type));
      spec.steps.push_back(step);
    }
    std::vector<Array> want;
    for (int o = 0; o < 4; ++o) {
      const auto v = random() % values.size();
      spec.outputs.push_back({static_cast<int>(v), packed(loop)});
      want.push_back(values[v]);
    }
    const Run r = run(spec, inputs, want, 1 + round % 3);
    for (std::size_t o = 0; o < want.size(); ++o) CHECK(r.outputs[o] == want[o]);
  }
}

TEST_CASE("a tile program says what it does") {
  const TileProgram p({.loop = {4, 6},
                       .inputs = {{DType::f32, {6, 1}}},
                       .steps = {{MicroOp::tanh, DType::f32, {0}}},
                       .outputs = {{1, {6, 1}}}});
  CHECK(p.describe() == "1 steps over [24]: tanh");
  CHECK(p.work_ns() > 0);
}

TEST_CASE("two values that lie in turn, or far apart, are read and written as they lie") {
  const std::int64_t rows = 3, n = 219;
  const Shape loop = {rows, n};
  const Ints halves = {2 * n + 6, 2};  // with a gap behind each row
  TileSpec spec{
      .loop = loop,
      .inputs = {{DType::f32, halves}, {DType::f32, halves}},
      .steps = {{MicroOp::sub, DType::f32, {0, 1}}, {MicroOp::mul, DType::f32, {0, 1}}},
      .outputs = {{2, halves}, {3, halves}}};
  const TileProgram program(spec);
  ThreadPool pool;
  const auto room = static_cast<std::size_t>(rows * (2 * n + 6));
  std::vector<float> from(2 * room);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i % 97) - 40;
  // Where the second of each pair lies, as seen from the first.
  for (const std::int64_t apart : {std::int64_t{1}, std::int64_t{-1}, std::int64_t{0},
                                   static_cast<std::int64_t>(room)}) {
    CAPTURE(apart);
    std::vector<float> to(2 * room, -1), want = to;
    const std::int64_t first = apart < 0 ? 1 : 0;
    // Outputs may not share elements, inputs may.
    const std::int64_t to_second = first + (apart == 0 ? 1 : apart);
    const void* in[] = {from.data() + first, from.data() + first + apart};
    void* out[] = {to.data() + first, to.data() + to_second};
    program.run(in, out, pool);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(r * halves[0] + 2 * i + first);
        const float a = from[at], b = from[at + static_cast<std::size_t>(apart)];
        want[at] = a - b;
        want[at + static_cast<std::size_t>(to_second - first)] = a * b;
      }
    CHECK(to == want);
  }
}

}  // namespace tile_program_test
