// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tile programs that update traces, and their judge: for tests only.
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "braintrace/array/rng.h"
#include "braintrace/run/thread_pool.h"
#include "braintrace/run/tile_program.h"

namespace braintrace::trace_specs {

inline constexpr std::int64_t kRows = 7,
                              kColumns = 205;  // rows: four at once, then single ones

inline TileInput rows(DType t) { return {t, {kColumns, 1}}; }
inline TileInput repeated_row(DType t) { return {t, {0, 1}}; }
inline TileInput number_per_row(DType t) { return {t, {1, 0}}; }
inline TileInput halves(DType t) { return {t, {2 * kColumns, 2}}; }

// e, d, df, x, s, sum: the update of a trace in the memory of e, the sum in that of sum.
inline TileSpec one_state(DType t, bool constant_df) {
  const TileInput df = constant_df ? number_per_row(t) : repeated_row(t);
  return {.loop = {kRows, kColumns},
          .inputs = {rows(t), repeated_row(t), df, number_per_row(t), repeated_row(t),
                     rows(t)},
          .steps = {{MicroOp::mul, t, {1, 0}},
                    {MicroOp::mul, t, {3, 2}},
                    {MicroOp::add, t, {6, 7}},
                    {MicroOp::mul, t, {4, 6}},
                    {MicroOp::add, t, {5, 9}}},
          .outputs = {{8, {kColumns, 1}, 0}, {10, {kColumns, 1}, 5}}};
}

// e, d, df, x, s, q and memory for the sum: like one_state, of a single sample.
inline TileSpec single_sample(DType t, bool constant_df, bool turned) {
  const TileInput df = constant_df ? number_per_row(t) : repeated_row(t);
  TileSpec spec{.loop = {kRows, kColumns},
                .inputs = {rows(t), repeated_row(t), df, number_per_row(t),
                           repeated_row(t), repeated_row(t), rows(t)},
                .steps = {{MicroOp::mul, t, {1, 0}},
                          {MicroOp::mul, t, {3, 2}},
                          {MicroOp::add, t, {7, 8}},
                          {MicroOp::mul, t, {4, 7}},
                          {MicroOp::mul, t, {5, 3}},
                          {MicroOp::add, t, {10, 11}}},
                .outputs = {{9, {kColumns, 1}, 0}, {12, {kColumns, 1}, 6}}};
  if (turned) std::swap(spec.steps.back().operands[0], spec.steps.back().operands[1]);
  return spec;
}

// e1, e2, d11, d12, d21, d22, df1, df2, x, s1, s2, sum
inline TileSpec two_states(DType t, bool in_turn, bool constant_df) {
  const TileInput e = in_turn ? halves(t) : rows(t);
  const TileInput df = constant_df ? number_per_row(t) : repeated_row(t), d = rows(t);
  TileSpec spec{.loop = {kRows, kColumns},
                .inputs = {e, e, d, d, d, d, df, df, number_per_row(t), d, d, rows(t)},
                .steps = {},
                .outputs = {}};
  const auto step = [&](MicroOp op, int a, int b) {
    spec.steps.push_back({op, t, {a, b}});
    return static_cast<int>(spec.inputs.size() + spec.steps.size()) - 1;
  };
  const auto block = [&](int d1, int d2) {
    const int a = step(MicroOp::mul, d1, 0), b = step(MicroOp::mul, d2, 1);
    return step(MicroOp::add, a, b);
  };
  const int t1 = block(2, 3), t2 = block(4, 5);
  const int u1 = step(MicroOp::mul, 8, 6), u2 = step(MicroOp::mul, 8, 7);
  const int next1 = step(MicroOp::add, t1, u1), next2 = step(MicroOp::add, t2, u2);
  const int h1 = step(MicroOp::mul, 9, t1), h2 = step(MicroOp::mul, 10, t2);
  const int sum = step(MicroOp::add, 11, step(MicroOp::add, h1, h2));
  spec.outputs = {{next1, e.strides, 0}, {next2, e.strides, 1}, {sum, {kColumns, 1}, 11}};
  return spec;
}

// e1, e2, d11, d12, d21, d22, df1, df2, x, s1, s2, and sum, or of a single sample memory
// for it and q. Bits of `there`: which d are not zero, d11 first.
inline TileSpec sparse_states(DType t, unsigned there, bool sample) {
  const TileInput v = repeated_row(t);
  TileSpec spec{
      .loop = {kRows, kColumns},
      .inputs = {rows(t), rows(t), v, v, v, v, v, v, number_per_row(t), v, v, rows(t), v},
      .steps = {},
      .outputs = {}};
  const auto step = [&](MicroOp op, int a, int b) {
    spec.steps.push_back({op, t, {a, b}});
    return static_cast<int>(spec.inputs.size() + spec.steps.size()) - 1;
  };
  const auto is_there = [&](int d) { return (there >> (3 - d) & 1U) != 0; };
  const auto state = [&](int d) {
    const int first = is_there(d) ? step(MicroOp::mul, 2 + d, 0) : -1;
    const int second = is_there(d + 1) ? step(MicroOp::mul, 3 + d, 1) : -1;
    return first < 0 ? second : second < 0 ? first : step(MicroOp::add, first, second);
  };
  const int t1 = state(0), t2 = state(2);
  const int u1 = step(MicroOp::mul, 8, 6), u2 = step(MicroOp::mul, 8, 7);
  const int next1 = step(MicroOp::add, t1, u1), next2 = step(MicroOp::add, t2, u2);
  const int h1 = step(MicroOp::mul, 9, t1), h2 = step(MicroOp::mul, 10, t2);
  const int h = step(MicroOp::add, h1, h2);
  const int more = sample ? step(MicroOp::mul, 12, 8) : 11;
  const int sum = step(MicroOp::add, more, h);
  spec.outputs = {
      {next1, {kColumns, 1}, 0}, {next2, {kColumns, 1}, 1}, {sum, {kColumns, 1}, 11}};
  return spec;
}

// e, d, r, df, x, s, c, y, sum
inline TileSpec driven_state(DType t, bool constant_df, bool turned) {
  const TileInput n = number_per_row(t), v = repeated_row(t);
  const TileInput df = constant_df ? n : v;
  return {.loop = {kRows, kColumns},
          .inputs = {rows(t), v, n, df, n, v, v, n, rows(t)},
          .steps = {{MicroOp::mul, t, {1, 0}},
                    {MicroOp::add, t, {9, 2}},
                    {MicroOp::mul, t, {4, 3}},
                    {MicroOp::add, t, {10, 11}},
                    {MicroOp::mul, t, {5, 10}},
                    {MicroOp::mul, t, {6, 7}},
                    {MicroOp::add, t, {turned ? 14 : 13, turned ? 13 : 14}},
                    {MicroOp::add, t, {8, 15}}},
          .outputs = {{12, {kColumns, 1}, 0}, {16, {kColumns, 1}, 8}}};
}

// Two traces, one after the other in the program: e1, d, df1, x1, s, q1, sum1, e2, df2,
// x2, q2, sum2; their sums are added to when both summands are there.
inline TileSpec two_joined_traces(DType t) {
  const TileInput n = number_per_row(t), v = repeated_row(t), r = rows(t);
  return {.loop = {kRows, kColumns},
          .inputs = {r, v, v, n, v, v, r, r, v, n, v, r},
          .steps = {{MicroOp::mul, t, {1, 0}},
                    {MicroOp::mul, t, {3, 2}},
                    {MicroOp::add, t, {12, 13}},
                    {MicroOp::mul, t, {1, 7}},
                    {MicroOp::mul, t, {9, 8}},
                    {MicroOp::add, t, {15, 16}},
                    {MicroOp::mul, t, {4, 15}},
                    {MicroOp::mul, t, {9, 10}},
                    {MicroOp::add, t, {18, 19}},
                    {MicroOp::mul, t, {4, 12}},
                    {MicroOp::mul, t, {3, 5}},
                    {MicroOp::add, t, {21, 22}},
                    {MicroOp::add, t, {11, 20}},
                    {MicroOp::add, t, {6, 23}}},
          .outputs = {{14, {kColumns, 1}, 0},
                      {17, {kColumns, 1}, 7},
                      {24, {kColumns, 1}, 11},
                      {25, {kColumns, 1}, 6}}};
}

template <class T>
std::vector<T> drawn(std::size_t n, std::uint64_t seed) {
  std::vector<T> out(n);
  for (std::size_t i = 0; i < n; ++i)
    out[i] = static_cast<T>(2 * uniform_at(rng_key(seed), i) - 1);
  return out;
}

// The element of an operand at a position.
inline std::size_t place(const Ints& strides, std::int64_t r, std::int64_t c) {
  return static_cast<std::size_t>(r * strides[0] + c * strides[1]);
}

// Runs the chain on memory in which e2 follows e1 by `apart` elements, and checks it
// against the same steps element by element.
template <class T>
void check_here(const TileSpec& spec, int states, std::size_t apart) {
  const std::size_t room = 4 * kRows * kColumns;
  std::vector<std::vector<T>> memory;
  std::vector<T*> at;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i)
    memory.push_back(drawn<T>(room, i));
  for (auto& m : memory) at.push_back(m.data());
  if (states == 2) at[1] = at[0] + apart;
  std::vector<std::vector<T>> want(spec.outputs.size());
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t c = 0; c < kColumns; ++c) {
      std::vector<T> v;
      for (std::size_t i = 0; i < spec.inputs.size(); ++i)
        v.push_back(at[i][place(spec.inputs[i].strides, r, c)]);
      for (const TileStep& s : spec.steps) {
        const T a = v[static_cast<std::size_t>(s.operands[0])];
        const T b = v[static_cast<std::size_t>(s.operands[1])];
        v.push_back(s.op == MicroOp::mul ? a * b : a + b);
      }
      for (std::size_t o = 0; o < want.size(); ++o)
        want[o].push_back(v[static_cast<std::size_t>(spec.outputs[o].value)]);
    }
  std::vector<const void*> in(at.begin(), at.end());
  std::vector<void*> out;
  for (const TileOutput& o : spec.outputs)
    out.push_back(at[static_cast<std::size_t>(o.in_place)]);
  ThreadPool pool(1);
  TileProgram(spec).run(in, out, pool);
  for (std::size_t o = 0; o < want.size(); ++o) {
    std::vector<T> got;
    for (std::int64_t r = 0; r < kRows; ++r)
      for (std::int64_t c = 0; c < kColumns; ++c)
        got.push_back(
            static_cast<const T*>(out[o])[place(spec.outputs[o].strides, r, c)]);
    REQUIRE((got == want[o]));
  }
}

}  // namespace braintrace::trace_specs
