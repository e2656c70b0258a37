// SPDX-License-Identifier: Apache-2.0
#pragma once
// `braintrace bench`: times one learning rule on one model of any size, beside the time
// its matrix products take alone.
#include <string>

#include <CLI/CLI.hpp>

namespace braintrace::cli {

struct BenchRequest {
  std::string model = "gru", algorithm = "d_rtrl", mode = "window";
  std::int64_t n_in = 10, n_rec = 128, n_out = 10, batch = 16, steps = 100, window = 0,
               layers = 1, repeat = 5;
  int threads = 0;
  bool json = false, compat = false, plan = false;
  std::string dtype = "f32";
  std::vector<std::string> set;  // name=value
};

CLI::App* add_bench(CLI::App& app, BenchRequest& request);
// What to print. The last line is one JSON object.
std::string bench(const BenchRequest& request);

}  // namespace braintrace::cli
