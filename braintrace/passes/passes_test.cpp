// SPDX-License-Identifier: Apache-2.0
// Every pass as text in, text out.
#include <doctest/doctest.h>

#include "braintrace/ir/evaluate.h"
#include "braintrace/ops/registry.h"
#include "braintrace/passes/cse.h"
#include "braintrace/passes/dce.h"
#include "braintrace/passes/fold.h"
#include "braintrace/passes/if_convert.h"
#include "braintrace/passes/inline_calls.h"
#include "braintrace/passes/simplify.h"
#include "braintrace/passes/squeeze_axes.h"
#include "braintrace/passes/unroll_scan.h"

namespace passes_test {

using namespace braintrace;

namespace {

// The same text in the printer's layout.
std::string text(std::string_view t) { return print(parse(t)); }

}  // namespace

TEST_CASE("cse merges equal nodes") {
  const Graph g = parse(R"(in %0:f32[2]
      %1:f32[2] = tanh %0
      %2:f32[2] = tanh %0
      %3:f32[2] = add %1 %2
      out %3)");
  CHECK(print(cse(g)) == text(R"(in %0:f32[2]
      %1:f32[2] = tanh %0
      %2:f32[2] = add %1 %1
      out %2)"));
}

TEST_CASE("cse merges commutative nodes in either order and no others") {
  const Graph g = parse(R"(in %0:f32[2] %1:f32[2]
      %2:f32[2] = add %0 %1
      %3:f32[2] = add %1 %0
      %4:f32[2] = sub %0 %1
      %5:f32[2] = sub %1 %0
      out %2 %3 %4 %5)");
  CHECK(print(cse(g)) == text(R"(in %0:f32[2] %1:f32[2]
      %2:f32[2] = add %0 %1
      %3:f32[2] = sub %0 %1
      %4:f32[2] = sub %1 %0
      out %2 %2 %3 %4)"));
}

TEST_CASE("cse tells attributes and constants apart") {
  const Graph g = parse(R"(in %0:f32[2]
      %1:f64[2] = convert {dtype=f64} %0
      %2:i32[2] = convert {dtype=i32} %0
      %3:f32[2] = constant {value=f32[2](1, 2)}
      %4:f32[2] = constant {value=f32[2](1, 3)}
      %5:f32[2] = constant {value=f32[2](1, 2)}
      out %1 %2 %3 %4 %5)");
  CHECK(print(cse(g)) == text(R"(in %0:f32[2]
      %1:f64[2] = convert {dtype=f64} %0
      %2:i32[2] = convert {dtype=i32} %0
      %3:f32[2] = constant {value=f32[2](1, 2)}
      %4:f32[2] = constant {value=f32[2](1, 3)}
      out %1 %2 %3 %4 %3)"));
}

// Large constants are hashed by some of their elements only.
TEST_CASE("cse tells large constants apart that differ in one element") {
  constexpr std::int64_t kSize = 300;
  for (std::int64_t at = 0; at < kSize; ++at) {
    Array a = zeros({kSize}), b = zeros({kSize});
    b.mutable_data<float>()[at] = 1;
    const auto builder = Builder::create();
    const Value x = builder->input({DType::f32, {kSize}});
    const Values out = {x * Value(a), x * Value(b), x * Value(a.contiguous())};
    const Graph g = cse(builder->finish(out));
    REQUIRE(g.outputs()[0] != g.outputs()[1]);
    REQUIRE(g.outputs()[0] == g.outputs()[2]);
    REQUIRE(structural_hash(Attrs{{"value", a}}) != structural_hash(Attrs{{"value", b}}));
  }
}

TEST_CASE("dce drops what no output reads and keeps unused inputs") {
  const Graph g = parse(R"(in %0:f32[2] %1:f32[]
      %2:f32[2] = tanh %0
      %3:f32[2] = exp %2
      %4:f32[2] = sin %0
      out %4)");
  CHECK(print(dce(g)) == text(R"(in %0:f32[2] %1:f32[]
      %2:f32[2] = sin %0
      out %2)"));
}

TEST_CASE("dce and cse work inside sub-graphs") {
  const Graph g = parse(R"(in %0:bool[] %1:f32[2]
      %2:f32[2] = cond {false_branch={ in %0:f32[2] %1:f32[2] = tanh %0 out %0 },
                        true_branch={ in %0:f32[2] %1:f32[2] = sin %0
                                      %2:f32[2] = sin %0 %3:f32[2] = mul %1 %2
                                      out %3 }} %0 %1
      out %2)");
  CHECK(print(dce(cse(g))) == text(R"(in %0:bool[] %1:f32[2]
      %2:f32[2] = cond {false_branch={ in %0:f32[2] out %0 },
                        true_branch={ in %0:f32[2] %1:f32[2] = sin %0
                                      %2:f32[2] = mul %1 %1 out %2 }} %0 %1
      out %2)"));
}

TEST_CASE("fold computes constants and leaves the rest") {
  const Graph g = parse(R"(in %0:f32[2]
      %1:f32[2] = constant {value=f32[2](1, 2)}
      %2:f32[2] = neg %1
      %3:f32[2] = add %1 %2
      %4:f32[2] = mul %0 %3
      out %4)");
  CHECK(print(dce(fold(g))) == text(R"(in %0:f32[2]
      %1:f32[2] = constant {value=f32[2](splat 0)}
      %2:f32[2] = mul %0 %1
      out %2)"));
}

TEST_CASE("fold neither grows literals nor passes its size limit") {
  const Graph stretched = parse(R"(in
      %0:f32[] = constant {value=f32[](1)}
      %1:f32[1000] = broadcast {shape=[1000]} %0
      out %1)");
  CHECK(print(fold(stretched)) == print(stretched));
  const Graph large = parse(R"(in
      %0:f32[4097] = constant {value=f32[4097](splat 1)}
      %1:f32[4097] = cumsum {axis=0, reverse=false} %0
      out %1)");
  CHECK(print(fold(large)) == print(large));
  CHECK(print(fold(large, {.max_elements = 5000})) != print(large));
}

TEST_CASE("fold runs stretched numbers once, whatever their size, in loops too") {
  const char* before = R"(in %0:f64[3,9000]
      %1:f64[3,9000] = scan {body={
        in %0:f64[9000]
        %1:f64[] = constant {value=f64[](3)}
        %2:f64[9000] = broadcast {shape=[9000]} %1
        %3:f64[9000] = constant {value=f64[9000](splat 2)}
        %4:f64[9000] = mul %2 %3
        %5:f64[9000] = add %0 %4
        out %5}, length=3, num_carry=0, num_consts=0, reverse=false} %0
      out %1)";
  CHECK(print(dce(fold(parse(before)))) == text(R"(in %0:f64[3,9000]
      %1:f64[3,9000] = scan {body={
        in %0:f64[9000]
        %1:f64[] = constant {value=f64[](6)}
        %2:f64[9000] = broadcast {shape=[9000]} %1
        %3:f64[9000] = add %0 %2
        out %3}, length=3, num_carry=0, num_consts=0, reverse=false} %0
      out %1)"));
}

TEST_CASE("fold leaves a failing node for the run to report") {
  const Graph g = parse(R"(in
      %0:f32[2] = constant {value=f32[2](1, 2)}
      %1:i32[1] = constant {value=i32[1](5)}
      %2:f32[1] = gather {axis=0} %0 %1
      out %2)");
  CHECK(print(fold(g)) == print(g));
}

TEST_CASE("simplify removes what changes nothing") {
  const Graph g = parse(R"(in %0:f32[2,3] %1:i32[2]
      %2:f32[] = constant {value=f32[](1)}
      %3:f32[2,3] = broadcast {shape=[2,3]} %2
      %4:f32[2,3] = mul %3 %0
      %5:f32[2,3] = neg %4
      %6:f32[2,3] = neg %5
      %7:f32[3,2] = transpose {permutation=[1,0]} %6
      %8:f32[2,3] = transpose {permutation=[1,0]} %7
      %9:f32[6] = reshape {shape=[6]} %8
      %10:f32[3,2] = reshape {shape=[3,2]} %9
      %11:f32[3,2] = convert {dtype=f32} %10
      %12:i32[2] = constant {value=i32[2](splat 0)}
      %13:i32[2] = add %1 %12
      out %11 %13)");
  CHECK(print(dce(simplify(g))) == text(R"(in %0:f32[2,3] %1:i32[2]
      %2:f32[3,2] = reshape {shape=[3,2]} %0
      out %2 %1)"));
}

TEST_CASE("simplify keeps what IEEE forbids to remove") {
  const Graph g = parse(R"(in %0:f32[2]
      %1:f32[2] = constant {value=f32[2](splat 0)}
      %2:f32[2] = add %0 %1
      %3:f32[2] = mul %0 %1
      out %2 %3)");
  CHECK(print(simplify(g)) == print(g));
}

TEST_CASE("simplify takes the side a constant predicate picks") {
  const Graph g = parse(R"(in %0:f32[2] %1:f32[2] %2:bool[2]
      %3:bool[2] = constant {value=bool[2](splat true)}
      %4:f32[2] = select %3 %0 %1
      %5:f32[2] = select %2 %1 %1
      out %4 %5)");
  CHECK(print(dce(simplify(g))) == text("in %0:f32[2] %1:f32[2] %2:bool[2] out %0 %1"));
}

TEST_CASE("if_convert computes both branches on guarded operands") {
  const Graph g = parse(R"(in %0:bool[] %1:f32[]
      %2:f32[] = cond {false_branch={ in %0:f32[] out %0 },
                       true_branch={ in %0:f32[] %1:f32[] = sqrt %0 out %1 }} %0 %1
      out %2)");
  CHECK(print(if_convert(g)) == text(R"(in %0:bool[] %1:f32[]
      %2:f32[] = constant {value=f32[](1)}
      %3:f32[] = select %0 %1 %2
      %4:f32[] = sqrt %3
      %5:bool[] = logical_not %0
      %6:f32[] = constant {value=f32[](1)}
      %7:f32[] = select %5 %1 %6
      %8:f32[] = select %0 %4 %7
      out %8)"));
}

TEST_CASE("if_convert keeps branches that read by index") {
  const Graph g = parse(R"(in %0:bool[] %1:f32[2] %2:i32[]
      %3:f32[] = cond {false_branch={ in %0:f32[2] %1:i32[]
                                      %2:f32[] = reduce_sum {axes=[0]} %0 out %2 },
                       true_branch={ in %0:f32[2] %1:i32[]
                                     %2:f32[] = gather {axis=0} %0 %1 out %2 }} %0 %1 %2
      out %3)");
  CHECK(print(if_convert(g)) == print(g));
}

TEST_CASE("unroll_scan writes the steps out, in the order of the loop") {
  const Graph g = parse(R"(in %0:f32[] %1:f32[2]
      %2:f32[], %3:f32[2] = scan {body={ in %0:f32[] %1:f32[]
                                         %2:f32[] = mul %0 %1 out %2 %0 },
          length=2, num_carry=1, num_consts=0, reverse=true} %0 %1
      out %2 %3)");
  const Graph u = unroll_scan(g);
  const Array in[] = {scalar(3), array({5, 7})};
  const std::vector<Array> out = eval_graph(u, in);
  CHECK(out[0] == scalar(105));
  CHECK(out[1] == array({21, 3}));
  CHECK(print(u).find("scan") == std::string::npos);
  CHECK(print(unroll_scan(g, {.max_length = 1})) == print(g));
}

TEST_CASE("inline_calls puts the primal program in place of the call") {
  const Graph g = parse(R"(in %0:f32[2]
      %1:f32[2] = custom_jvp {elementwise=true,
          jvp={ in %0:f32[2] %1:f32[2] out %1 },
          primal={ in %0:f32[2] %1:f32[2] = floor %0 out %1 }} %0
      out %1)");
  CHECK(print(inline_calls(g)) == text("in %0:f32[2] %1:f32[2] = floor %0 out %1"));
}

TEST_CASE("squeeze_axes lets neighbours meet without axes of size 1") {
  const Graph g = parse(R"(in %0:f32[2,3] %1:f32[2,1,3,1]
      %2:f32[2,3] = exp %0
      %3:f32[2,1,3,1] = reshape {shape=[2,1,3,1]} %2
      %4:f32[2,1,3,1] = add %3 %1
      out %4)");
  CHECK(print(dce(simplify(squeeze_axes(g)))) == text(R"(in %0:f32[2,3] %1:f32[2,1,3,1]
      %2:f32[2,3] = exp %0
      %3:f32[2,3] = reshape {shape=[2,3]} %1
      %4:f32[2,3] = add %2 %3
      %5:f32[2,1,3,1] = reshape {shape=[2,1,3,1]} %4
      out %5)"));
}

}  // namespace passes_test
