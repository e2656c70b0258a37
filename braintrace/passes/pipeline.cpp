// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/pipeline.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "braintrace/ir/print.h"
#include "braintrace/passes/cse.h"
#include "braintrace/passes/dce.h"
#include "braintrace/passes/fold.h"
#include "braintrace/passes/if_convert.h"
#include "braintrace/passes/inline_calls.h"
#include "braintrace/passes/simplify.h"
#include "braintrace/passes/unroll_scan.h"

namespace braintrace {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool names(std::string_view list, std::string_view name) {
  if (list == "all") return true;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (list.substr(0, comma) == name) return true;
    list = comma == std::string_view::npos ? "" : list.substr(comma + 1);
  }
  return false;
}

void verify_after(std::string_view name, const Graph& g) {
  try {
    verify(g);
  } catch (const InternalError& e) {
    throw InternalError(fmt::format("after pass {}: {}", name, e.what()));
  }
}

}  // namespace

PassOptions pass_options_from_environment() {
  PassOptions options{.verify = environment("BT_VERIFY") == "1",
                      .dump = environment("BT_DUMP"),
                      .dump_dir = environment("BT_DUMP_DIR"),
                      .time_file = environment("BT_TIME_PASSES")};
#ifdef BRAINTRACE_VERIFY
  options.verify = true;
#endif
  return options;
}

std::string to_string(const PassRecord& p) {
  return fmt::format("{:<12} {:>9.3f} ms  {:>6} -> {} nodes\n", p.name, p.seconds * 1e3,
                     p.nodes_before, p.nodes_after);
}

std::string to_string(const PassReport& report) {
  std::string text;
  for (const PassRecord& p : report.passes) text += to_string(p);
  return text;
}

Graph PassRunner::operator()(std::string_view name, const Pass& pass, const Graph& g) {
  const auto start = std::chrono::steady_clock::now();
  Graph out = pass(g);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  report_.passes.push_back(
      {std::string(name), took.count(), g.nodes().size(), out.nodes().size()});
  if (!options_.time_file.empty()) append_timing();
  if (!options_.dump_dir.empty() && names(options_.dump, name)) dump(name, out);
  if (options_.verify) verify_after(name, out);
  return out;
}

void PassRunner::append_timing() const {
  std::ofstream stream(options_.time_file, std::ios::app);
  stream << to_string(report_.passes.back());
  stream.close();
  BT_REQUIRE_KIND(stream.good(), ErrorKind::runtime,
                  fmt::format("BT_TIME_PASSES: cannot write {}", options_.time_file));
}

void PassRunner::dump(std::string_view name, const Graph& g) const {
  const std::filesystem::path dir(options_.dump_dir);
  std::error_code ignored;  // an unwritable folder shows up below
  std::filesystem::create_directories(dir, ignored);
  const auto file = dir / fmt::format("{:02}_{}.txt", report_.passes.size(), name);
  std::ofstream stream(file);
  stream << print(g);
  stream.close();
  BT_REQUIRE_KIND(stream.good(), ErrorKind::runtime,
                  fmt::format("BT_DUMP: cannot write {}", file.string()));
}

Graph optimize(const Graph& g, PassRunner& run) {
  Graph h = run(
      "fold", [](const Graph& x) { return fold(x); }, g);
  h = run("simplify", simplify, h);
  h = run("cse", cse, h);
  return run("dce", dce, h);
}

Graph optimize(const Graph& g) {
  PassRunner run;
  return optimize(g, run);
}

Graph lower(const Graph& g, const LowerOptions& options, PassRunner& run) {
  Graph h = run("inline_calls", inline_calls, g);
  if (options.if_convert) h = run("if_convert", if_convert, h);
  if (options.unroll.max_length > 0)
    h = run(
        "unroll_scan", [&](const Graph& x) { return unroll_scan(x, options.unroll); }, h);
  return optimize(h, run);
}

}  // namespace braintrace
