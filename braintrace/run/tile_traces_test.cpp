// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/run/tile_compile_impl.h"
#include "braintrace/run/trace_specs_impl.h"
#include "braintrace/testing/every_target.h"

namespace tile_traces_test {

using namespace braintrace;
using namespace braintrace::trace_specs;

namespace {

template <class T>
void check(const TileSpec& spec, int states, std::size_t apart) {
  testing::on_every_target([&](const std::string& target) {
    INFO(target);
    check_here<T>(spec, states, apart);
  });
}

}  // namespace

TEST_CASE("the update of a trace and its sum are one action with the bits of many") {
  for (const bool constant_df : {false, true}) {
    CAPTURE(constant_df);
    const TileSpec f32 = one_state(DType::f32, constant_df);
    CHECK(compile_tile(f32).actions.size() == (constant_df ? 2 : 1));
    CHECK(compile_tile(f32).traces.size() == 1);
    CHECK(compile_tile(f32).by_rows == !constant_df);
    check<float>(f32, 1, 0);
    check<double>(one_state(DType::f64, constant_df), 1, 0);
  }
}

TEST_CASE("a trace whose coefficient is a number is updated several rows at once") {
  for (const DType t : {DType::f32, DType::f64}) {
    TileSpec joined = two_joined_traces(t), added = one_state(t, false);
    TileSpec plain = added;  // what is added to the trace is a number
    plain.steps = {{MicroOp::mul, t, {1, 0}},
                   {MicroOp::add, t, {6, 3}},
                   {MicroOp::mul, t, {4, 6}},
                   {MicroOp::add, t, {5, 8}}};
    plain.outputs = {{7, {kColumns, 1}, 0}, {9, {kColumns, 1}, 5}};
    for (TileSpec spec : {added, plain, joined, single_sample(t, false, false)}) {
      spec.inputs[1] = {t, {0, 0}};
      const TileCode code = compile_tile(spec);
      CHECK(code.actions.size() == code.traces.size());
      CHECK(code.traces.size() == (spec.outputs.size() == 4 ? 2 : 1));
      CHECK(code.by_rows);
      if (t == DType::f32)
        check<float>(spec, 1, 0);
      else
        check<double>(spec, 1, 0);
      spec.inputs[2] = {t, {0, 0}};  // as its df may be
      CHECK(compile_tile(spec).by_rows);
      if (t == DType::f32)
        check<float>(spec, 1, 0);
      else
        check<double>(spec, 1, 0);
      spec.inputs[4] = rows(t);  // another signal in every row: one after the other
      CHECK_FALSE(compile_tile(spec).by_rows);
      if (t == DType::f32) check<float>(spec, 1, 0);
    }
  }
}

TEST_CASE(
    "two states with zeros among their coefficients are updated several rows at once") {
  // Bits: d11, d12, d21, d22.
  for (const unsigned there : {15U, 13U, 11U, 9U, 7U, 14U, 10U, 5U, 6U})
    for (const bool sample : {false, true})
      for (const bool numbers : {false, true})
        for (const DType t : {DType::f32, DType::f64}) {
          CAPTURE(there);
          CAPTURE(sample);
          CAPTURE(numbers);
          TileSpec spec = sparse_states(t, there, sample);
          if (numbers)
            for (const std::size_t d : {2, 5}) spec.inputs[d] = {t, {0, 0}};
          const TileCode code = compile_tile(spec);
          CHECK(code.actions.size() == 1);
          CHECK(code.traces.size() == 1);
          CHECK(code.by_rows);
          t == DType::f32 ? check<float>(spec, 2, kRows * kColumns)
                          : check<double>(spec, 2, kRows * kColumns);
          spec.inputs[7] = {t, {0, 0}};  // the second df is a number that never changes
          CHECK(compile_tile(spec).by_rows);
          t == DType::f32 ? check<float>(spec, 2, kRows * kColumns)
                          : check<double>(spec, 2, kRows * kColumns);
          spec.inputs[9] = rows(t);  // another signal in every row
          CHECK_FALSE(compile_tile(spec).by_rows);
          CHECK(compile_tile(spec).traces.size() == 1);
          if (t == DType::f32) check<float>(spec, 2, kRows * kColumns);
        }
}

TEST_CASE("a sum that takes in the new trace itself is not joined with its update") {
  for (const DType t : {DType::f32, DType::f64}) {
    const auto run = [&](const TileSpec& spec, int states) {
      CHECK(compile_tile(spec).traces.empty());
      t == DType::f32 ? check<float>(spec, states, kRows * kColumns)
                      : check<double>(spec, states, kRows * kColumns);
    };
    TileSpec one = one_state(t, false), driven = driven_state(t, false, false);
    one.steps.back().operands[0] = 8;  // e' + s t
    run(one, 1);
    driven.steps.back().operands[0] = 12;
    run(driven, 1);
    for (const int next : {20, 21}) {
      TileSpec two = two_states(t, false, false);
      two.steps.back().operands[0] = next;
      run(two, 2);
    }
  }
}

TEST_CASE("a trace that is its own signal is not joined with its sum") {
  TileSpec spec = one_state(DType::f32, false);
  spec.steps[3].operands[0] = 6;  // t t + sum
  check<float>(spec, 1, 0);
}

TEST_CASE("a state that reads the new value of another one is not joined with it") {
  const DType t = DType::f32;
  const TileInput n = number_per_row(t), v = repeated_row(t), r = rows(t);
  // e1, memory of e2, d1, d2, df1, df2, x, s1, s2, sum; e2' = d2 e1' + df2 x
  const TileSpec spec{
      .loop = {kRows, kColumns},
      .inputs = {r, r, v, v, v, v, n, v, v, r},
      .steps = {{MicroOp::mul, t, {2, 0}},
                {MicroOp::mul, t, {6, 4}},
                {MicroOp::add, t, {10, 11}},
                {MicroOp::mul, t, {3, 12}},
                {MicroOp::mul, t, {6, 5}},
                {MicroOp::add, t, {13, 14}},
                {MicroOp::mul, t, {7, 10}},
                {MicroOp::mul, t, {8, 13}},
                {MicroOp::add, t, {16, 17}},
                {MicroOp::add, t, {9, 18}}},
      .outputs = {
          {12, {kColumns, 1}, 0}, {15, {kColumns, 1}, 1}, {19, {kColumns, 1}, 9}}};
  check<float>(spec, 2, kRows * kColumns);
}

TEST_CASE("two states of a trace that lie in turn are taken apart for one action") {
  for (const bool constant_df : {false, true}) {
    CAPTURE(constant_df);
    const TileSpec in_turn = two_states(DType::f32, true, constant_df);
    const TileCode code = compile_tile(in_turn);
    CHECK(code.actions.size() == (constant_df ? 5 : 3));
    REQUIRE(code.traces.size() == 1);
    check<float>(in_turn, 2, 1);
    check<float>(in_turn, 2, 2 * kRows * kColumns);  // far apart all the same
  }
}

TEST_CASE("two states of a trace with memory of their own are one action") {
  const TileSpec spec = two_states(DType::f64, false, false);
  REQUIRE(compile_tile(spec).traces.size() == 1);
  CHECK(compile_tile(spec).actions.size() == 1);
  check<double>(spec, 2, kRows * kColumns);
}

TEST_CASE("two states whose coefficients are numbers, or shared, are one action") {
  for (const bool in_turn : {true, false})
    for (const bool mixed : {false, true}) {
      CAPTURE(in_turn);
      CAPTURE(mixed);
      TileSpec spec = two_states(DType::f32, in_turn, false);
      spec.inputs[2] = {DType::f32, {0, 0}};                  // d11 = d21, one number:
      spec.steps[5].operands[0] = spec.steps[2].operands[0];  // d11 e1 is in both states
      if (mixed)  // the second state takes in a number
        spec.steps[9].operands[1] = 8;
      const TileCode code = compile_tile(spec);
      REQUIRE(code.traces.size() == 1);
      CHECK(code.actions.size() == (in_turn ? 3 : 1));
      check<float>(spec, 2, in_turn ? 1 : kRows * kColumns);
    }
}

TEST_CASE("two states of one sample whose weights move in the same pass are one action") {
  for (const DType t : {DType::f32, DType::f64})
    for (const unsigned there : {15U, 9U, 11U, 14U}) {
      CAPTURE(to_string(t));
      CAPTURE(there);
      TileSpec spec = sparse_states(t, there, true);
      // The sum is no memory for the result any more: what is earned is added to it.
      const int earned = spec.outputs[2].value;
      spec.steps.push_back({MicroOp::add, t, {11, earned}});
      spec.outputs[2].value = earned + 1;
      const TileCode code = compile_tile(spec);
      CHECK(code.actions.size() == 1);
      CHECK(code.by_rows);
      t == DType::f32 ? check<float>(spec, 2, kRows * kColumns)
                      : check<double>(spec, 2, kRows * kColumns);
    }
}

TEST_CASE("two terms of one state are not taken for terms of two") {
  TileSpec spec = sparse_states(DType::f32, 15U, true);
  spec.steps[1].operands[1] = 0;  // t1 = d11 e1 + d12 e1
  check<float>(spec, 2, kRows * kColumns);
}

// What the joined action makes is not there yet when it reads its operands.
TEST_CASE("a coefficient that is another number in every row is no coefficient") {
  TileSpec spec = two_states(DType::f32, true, false);
  spec.inputs[2] = number_per_row(DType::f32);
  CHECK(compile_tile(spec).traces.empty());
  check<float>(spec, 2, 1);
}

TEST_CASE("a state that others drive is one action with the bits of many") {
  for (const bool constant_df : {false, true})
    for (const bool turned : {false, true}) {
      CAPTURE(constant_df);
      CAPTURE(turned);
      const TileSpec spec = driven_state(DType::f32, constant_df, turned);
      CHECK(compile_tile(spec).actions.size() == (constant_df ? 2 : 1));
      CHECK(compile_tile(spec).traces.size() == 1);
      check<float>(spec, 1, 0);
      check<double>(driven_state(DType::f64, constant_df, turned), 1, 0);
    }
}

TEST_CASE("the trace of a single sample is one action with the bits of many") {
  for (const bool constant_df : {false, true})
    for (const bool turned : {false, true}) {
      CAPTURE(constant_df);
      CAPTURE(turned);
      const TileSpec spec = single_sample(DType::f32, constant_df, turned);
      CHECK(compile_tile(spec).actions.size() == (constant_df ? 2 : 1));
      CHECK(compile_tile(spec).traces.size() == 1);
      CHECK(compile_tile(spec).by_rows == !constant_df);
      check<float>(spec, 1, 0);
      check<double>(single_sample(DType::f64, constant_df, turned), 1, 0);
    }
}

TEST_CASE("traces whose sums take in the newest step are one action each") {
  const TileSpec spec = two_joined_traces(DType::f32);
  const TileCode code = compile_tile(spec);
  CHECK(code.actions.size() == 2);
  REQUIRE(code.traces.size() == 2);
  for (const TileTrace& t : code.traces) CHECK((t.kind->form == TraceForm::joined));
  CHECK(code.by_rows);
  check<float>(spec, 1, 0);
  check<double>(two_joined_traces(DType::f64), 1, 0);
}

TEST_CASE("a trace with other coefficients in every row is updated row by row") {
  for (const std::size_t changing : {1, 2, 4}) {  // d, df, s
    CAPTURE(changing);
    TileSpec spec = one_state(DType::f32, false);
    spec.inputs[changing] = rows(DType::f32);
    CHECK(compile_tile(spec).traces.size() == 1);
    CHECK_FALSE(compile_tile(spec).by_rows);
    check<float>(spec, 1, 0);
  }
}

TEST_CASE("d and e of a trace may stand in either order") {
  TileSpec spec = one_state(DType::f32, false);
  std::swap(spec.steps[0].operands[0], spec.steps[0].operands[1]);
  CHECK(compile_tile(spec).by_rows);
  check<float>(spec, 1, 0);
}

TEST_CASE("a trace does not wait for its sum when its d is overwritten meanwhile") {
  for (const DType t : {DType::f32, DType::f64}) {
    TileSpec spec = one_state(t, false);  // then s (d f) into the memory of d
    spec.inputs[1] = rows(t);
    spec.inputs.push_back(rows(t));
    spec.steps = {{MicroOp::mul, t, {1, 0}},  {MicroOp::mul, t, {3, 2}},
                  {MicroOp::add, t, {7, 8}},  {MicroOp::mul, t, {1, 6}},
                  {MicroOp::mul, t, {4, 10}}, {MicroOp::mul, t, {4, 7}},
                  {MicroOp::add, t, {5, 12}}};
    const Ints packed{kColumns, 1};
    spec.outputs = {{9, packed, 0}, {11, packed, 1}, {13, packed, 5}};
    CHECK(compile_tile(spec).traces.empty());
    t == DType::f32 ? check<float>(spec, 1, 0) : check<double>(spec, 1, 0);
  }
}

TEST_CASE("a trace that reads another one runs behind it") {
  const DType t = DType::f32;
  TileSpec spec = one_state(t, false);  // then e'' = d e' + df x into memory of its own
  spec.inputs.push_back(rows(t));
  spec.inputs.push_back(rows(t));
  for (TileStep& s : spec.steps)
    for (int& v : s.operands) v += v > 5 ? 2 : 0;
  spec.steps.insert(spec.steps.end(), {{MicroOp::mul, t, {1, 10}},
                                       {MicroOp::mul, t, {3, 2}},
                                       {MicroOp::add, t, {13, 14}},
                                       {MicroOp::mul, t, {4, 13}},
                                       {MicroOp::add, t, {6, 16}}});
  const Ints packed{kColumns, 1};
  spec.outputs = {{10, packed, 0}, {12, packed, 5}, {15, packed, 7}, {17, packed, 6}};
  CHECK(compile_tile(spec).traces.size() == 2);
  CHECK(compile_tile(spec).by_rows);
  check<float>(spec, 1, 0);
}

TEST_CASE("a product somebody else reads is not taken into the update of a trace") {
  TileSpec spec = one_state(DType::f32, false);
  spec.outputs.push_back({6, {kColumns, 1}, -1});
  CHECK(compile_tile(spec).traces.empty());
}

}  // namespace tile_traces_test
