// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/pipeline.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>

#include "braintrace/ir/evaluate.h"
#include "braintrace/ops/registry.h"
#include "braintrace/passes/if_convert.h"
#include "braintrace/transforms/vjp.h"

namespace pipeline_test {

using namespace braintrace;

namespace {

const char* const kProgram = R"(in %0:f32[2]
    %1:f32[2] = tanh %0
    %2:f32[2] = tanh %0
    %3:f32[2] = sub %1 %2
    %4:f32[2] = exp %0
    out %3)";

std::string contents(const std::filesystem::path& p) {
  std::stringstream s;
  s << std::ifstream(p).rdbuf();
  return s.str();
}

}  // namespace

TEST_CASE("the report names passes in order with node counts") {
  PassRunner run(PassOptions{});
  const Graph g = optimize(parse(kProgram), run);
  const auto& passes = run.report().passes;
  REQUIRE(passes.size() == 4);
  CHECK(passes[2].name == "cse");
  CHECK(passes[2].nodes_before == 4);
  CHECK(passes[2].nodes_after == 3);
  CHECK(passes[3].nodes_after == g.nodes().size());
  CHECK(to_string(run.report()).find("cse") != std::string::npos);
}

TEST_CASE("timings are appended to a file, one line per pass") {
  const auto file = std::filesystem::temp_directory_path() / "bt_pass_times.txt";
  std::filesystem::remove(file);
  PassRunner run(PassOptions{.time_file = file.string()});
  optimize(parse("in %0:f64[2] %1 = tanh %0 out %1"), run);
  std::ifstream stream(file);
  std::string line;
  std::size_t lines = 0;
  while (std::getline(stream, line)) {
    CHECK(line.starts_with(run.report().passes[lines].name));
    ++lines;
  }
  CHECK(lines == run.report().passes.size());
  CHECK(lines >= 4);
  PassRunner nowhere(PassOptions{.time_file = "/no/such/folder/times.txt"});
  CHECK_THROWS_WITH_AS(optimize(parse("in %0:f64[2] out %0"), nowhere),
                       "BT_TIME_PASSES: cannot write /no/such/folder/times.txt",
                       UserError);
}

TEST_CASE("a dump holds the program after the pass it names") {
  const auto dir = std::filesystem::temp_directory_path() / "bt_pipeline_test";
  std::filesystem::remove_all(dir);
  PassRunner run(PassOptions{.dump = "cse,dce", .dump_dir = dir.string()});
  const Graph g = optimize(parse(kProgram), run);
  CHECK(contents(dir / "04_dce.txt") == print(g));
  CHECK(std::filesystem::exists(dir / "03_cse.txt"));
  CHECK_FALSE(std::filesystem::exists(dir / "01_fold.txt"));
  std::filesystem::remove_all(dir);
}

TEST_CASE("a pass that breaks the program is named when verifying") {
  PassRunner run(PassOptions{.verify = true});
  const auto broken = [](const Graph& g) {
    GraphParts parts;
    parts.types = {g.type(g.inputs()[0])};
    parts.inputs = {ValueId{0}};
    parts.outputs = {ValueId{7}};
    return Graph(parts);
  };
  CHECK_THROWS_WITH_AS(run("breaker", broken, parse(kProgram)),
                       doctest::Contains("after pass breaker"), InternalError);
}

TEST_CASE("the gradient of a converted branch is finite where the other side is not") {
  const Graph g = parse(R"(in %0:f64[]
      %1:f64[] = constant {value=f64[](0)}
      %2:bool[] = greater %0 %1
      %3:f64[] = cond {false_branch={ in %0:f64[]
                                      %1:f64[] = constant {value=f64[](0)} out %1 },
                       true_branch={ in %0:f64[] %1:f64[] = sqrt %0 out %1 }} %2 %0
      out %3)");
  const Graph d = grad(if_convert(g));
  const Array below[] = {scalar(-1, DType::f64)}, above[] = {scalar(4, DType::f64)};
  CHECK(eval_graph(d, below)[0].item() == 0);
  CHECK(eval_graph(d, above)[0].item() == 0.25);
}

TEST_CASE("lower runs the rewrites it is asked for") {
  const Graph g = parse(R"(in %0:f32[] %1:f32[2]
      %2:f32[] = scan {body={ in %0:f32[] %1:f32[] %2:f32[] = mul %0 %1 out %2 },
          length=2, num_carry=1, num_consts=0, reverse=false} %0 %1
      out %2)");
  PassRunner keep, unroll;
  CHECK(print(lower(g, {}, keep)).find("scan") != std::string::npos);
  const Graph u = lower(g, {.unroll = {.max_length = 2}}, unroll);
  CHECK(print(u).find("scan") == std::string::npos);
}

}  // namespace pipeline_test
