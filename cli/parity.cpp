// SPDX-License-Identifier: Apache-2.0
// parity DIR... [--filter TEXT] [--verbose] [--dtype f32|f64] [--no-rule] [--sound]
// Replays every recorded run directly in the directories; exit 1 when any differs.
#include "braintrace/testing/parity.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "braintrace/testing/sound.h"

namespace fs = std::filesystem;
using namespace braintrace;
using testing::GoldenKind;
using testing::ParityResult;

namespace {

struct Options {
  std::vector<std::string> directories;
  std::string filter;
  std::string dtype = "f64";
  bool verbose = false;
  bool no_rule = false;
  bool sound = false;
};

std::vector<fs::path> json_files(const fs::path& directory) {
  if (fs::is_regular_file(directory)) return {directory};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.is_regular_file() && entry.path().extension() == ".json")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<ParityResult> check_file(const fs::path& file, const Options& o) {
  const testing::ParityOptions options{
      .dtype = o.dtype == "f32" ? DType::f32 : DType::f64, .rule = !o.no_rule};
  const std::string text = read(file), name = file.stem().string();
  switch (testing::classify_golden(text)) {
    case GoldenKind::golden_case:
    case GoldenKind::malformed:
      if (name.find(o.filter) == std::string::npos) return {};
      return {testing::check_case(name, text, options)};
    case GoldenKind::algorithm_table:
      return testing::check_algorithm_table(name, text, options);
    case GoldenKind::other:
      break;
  }
  fmt::print("     {}  not a golden\n", name);
  return {};
}

// The models of the recorded runs in the default mode, against back-propagation.
int check_sound(const Options& o) {
  int passed = 0, failed = 0;
  for (const std::string& directory : o.directories)
    for (const fs::path& file : json_files(directory)) {
      const std::string text = read(file), name = file.stem().string();
      const GoldenKind kind = testing::classify_golden(text);
      if (kind != GoldenKind::golden_case && kind != GoldenKind::malformed) continue;
      if (name.find(o.filter) == std::string::npos) continue;
      const testing::SoundResult r = testing::check_sound_case(name, text);
      (r.passed() ? passed : failed)++;
      fmt::print("{}\n", testing::describe(r));
      for (const std::string& note : r.notes)
        if (o.verbose) fmt::print("       {}\n", note);
      std::fflush(stdout);
    }
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Replays recorded runs of the reference and compares the numbers.");
  app.add_option("directories", o.directories, "golden JSON files, or folders of them")
      ->required()
      ->check(CLI::ExistingPath);
  app.add_option("--filter", o.filter, "only cases whose name contains this text");
  app.add_option("--dtype", o.dtype, "element type")
      ->check(CLI::IsMember({"f32", "f64"}));
  app.add_flag("--verbose", o.verbose, "one line per compared array");
  app.add_flag("--no-rule", o.no_rule, "leave the recorded learning rule out");
  app.add_flag("--sound", o.sound,
               "instead: gradients in the default mode against back-propagation, of the "
               "whole and of the cut program");
  CLI11_PARSE(app, argc, argv);
  if (o.sound) return check_sound(o);

  int passed = 0, failed = 0;
  for (const std::string& directory : o.directories) {
    for (const fs::path& file : json_files(directory)) {
      for (const ParityResult& r : check_file(file, o)) {
        if (r.name.find(o.filter) == std::string::npos) continue;
        (r.passed() ? passed : failed)++;
        fmt::print("{}\n", testing::describe(r, o.verbose));
        std::fflush(stdout);
      }
    }
  }
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}
