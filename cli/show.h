// SPDX-License-Identifier: Apache-2.0
#pragma once
// `braintrace show`: compiles a model and draws what the compiler found.
#include <string>
#include <vector>

#include "model_source.h"

#include "braintrace/etrace/options.h"

namespace braintrace::cli {

struct ShowRequest {
  ModelRequest model;
  bool compat = false;
  std::vector<std::string> set;  // name=value
  int verbose = 1;
  std::string format = "text";
  std::string what = "graph";  // dot and svg: graph or program
};

const std::vector<std::string>& show_formats();

// The compile options of a request. UserError on an unknown name or value.
CompileOptions options_of(const ShowRequest& request, bool batched);
// What to write. UserError when the model cannot be compiled.
std::string show(const LoadedModel& model, const CompileOptions& options,
                 const ShowRequest& request);

}  // namespace braintrace::cli
