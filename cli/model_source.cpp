// SPDX-License-Identifier: Apache-2.0
#include "model_source.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "run_request.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "braintrace/base/error.h"
#include "braintrace/model/step_model.h"
#include "braintrace/nn/model_registry.h"

namespace braintrace::cli {

std::string kind_hint(const std::string& kind) {
  return fmt::format(
      "; give options of a kind as JSON, --model '{{\"kind\": \"{}\", "
      "...}}' (docs/nn.md#kinds-of-models lists them)",
      kind);
}

namespace {

using nlohmann::json;

struct Input {
  Shape shape;  // without batch
  DType dtype = DType::f32;
};

bool is_short_name(const std::string& model) {
  const std::vector<std::string> names = nn::sized_model_names();
  return std::find(names.begin(), names.end(), model) != names.end();
}

struct BuiltModel {
  json text;
  std::unique_ptr<Module> module;
};

BuiltModel built_from(json text) {
  std::unique_ptr<Module> module = nn::build_model(text.dump());
  return {std::move(text), std::move(module)};
}

// A kind of the registry with as many of the sizes as it takes; with those that were
// given in any case.
BuiltModel with_sizes(const ModelRequest& r) {
  const json all = json::parse(nn::sized_model(r.model, r.sizes));
  std::exception_ptr first;  // with all sizes: what is missing besides
  for (const std::set<std::string>& without :
       std::vector<std::set<std::string>>{{}, {"n_out"}, {"n_in"}, {"n_in", "n_out"}}) {
    const bool wanted =
        std::any_of(without.begin(), without.end(),
                    [&](const std::string& size) { return r.given.contains(size); });
    if (wanted) continue;
    json text = all;
    for (const std::string& size : without) text.erase(size);
    try {
      return built_from(std::move(text));
    } catch (const UserError&) {
      if (!first) first = std::current_exception();
    }
  }
  std::rethrow_exception(first);
}

// By itself where it can be.
BuiltModel of_kind(const ModelRequest& r) {
  if (r.given.empty()) try {
      return built_from({{"kind", r.model}});
    } catch (const UserError&) {  // it has sizes without a default
    }
  try {
    return with_sizes(r);
  } catch (const UserError& e) {
    throw UserError(e.what() + kind_hint(r.model));
  }
}

// The JSON object behind a request, and the model it describes.
BuiltModel source_of(const ModelRequest& request) {
  require_model(request.model);
  if (!is_model_file(request.model) && !is_short_name(request.model))
    return of_kind(request);
  return built_from(is_model_file(request.model)
                        ? model_file(request.model)
                        : json::parse(nn::sized_model(request.model, request.sizes)));
}

Shape shape_from(const json& j, const char* what) {
  Shape shape;
  const bool is_list = j.is_array();
  BT_REQUIRE(is_list || j.is_number_integer(),
             fmt::format("{} must be a list of sizes", what));
  for (const json& n : is_list ? j : json::array({j})) {
    BT_REQUIRE(
        n.is_number_integer() && n.get<std::int64_t>() > 0,
        fmt::format("{} must hold positive whole numbers, got {}", what, n.dump()));
    shape.push_back(n.get<std::int64_t>());
  }
  return shape;
}

Shape shape_from_text(const std::string& text) {
  Shape shape;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::int64_t size = 0;
    const auto done = std::from_chars(text.data() + at, text.data() + end, size);
    BT_REQUIRE(done.ec == std::errc() && done.ptr == text.data() + end && size > 0 &&
                   size < (std::int64_t{1} << 31),
               fmt::format("--input must be sizes like 10 or 1,28,28, got '{}'", text));
    shape.push_back(size);
    at = end + 1;
  }
  return shape;
}

// Inputs of a recorded run: [T, (batch,) ...].
Input recorded_input(const json& run) {
  const json& inputs = run["inputs"];
  BT_REQUIRE(inputs.is_object() && inputs.contains("shape") && inputs["shape"].is_array(),
             "the recorded run has no inputs.shape");
  const bool lanes = run.contains("batch") && run["batch"].is_number_integer();
  const std::size_t skipped = lanes ? 2 : 1;
  BT_REQUIRE(inputs["shape"].size() >= skipped, "inputs.shape has too few axes");
  Input in;
  for (std::size_t i = skipped; i < inputs["shape"].size(); ++i)
    in.shape.push_back(shape_from(inputs["shape"][i], "inputs.shape").front());
  if (inputs.value("dtype", "") == "int32") in.dtype = DType::i32;
  return in;
}

std::int64_t size_or(const json& model, const char* name, std::int64_t otherwise) {
  return model.contains(name) ? shape_from(model[name], name).front() : otherwise;
}

// Of a stack whose first layer says it.
std::optional<std::int64_t> first_layer_input(const json& model) {
  const json::json_pointer size("/layers/0/args/in_size");
  if (!model.contains(size) || !model[size].is_number_integer()) return {};
  return shape_from(model[size], "in_size").front();
}

// What the model says about its input.
Input own_input(const json& source) {
  if (source.contains("inputs")) return recorded_input(source);
  const json& model = source.contains("model") ? source["model"] : source;
  if (model.contains("in_shape")) return {shape_from(model["in_shape"], "in_shape")};
  const std::string kind =
      model.contains("kind") && model["kind"].is_string() ? model["kind"] : json("");
  if (kind == "conv_rnn") {
    const std::int64_t size = size_or(model, "size", 28);
    return {{1, size, size}};
  }
  if (kind == "single_rnn" || kind == "two_layer_gru")
    return {{size_or(model, "n_in", 10)}};
  if (kind == "embed_leaky") return {{}, DType::i32};
  // Without a weight for the input, it has the size of the state.
  for (const char* plain : {"elemwise_fn", "scan_body", "tied", "two_island"})
    if (kind == plain) return {shape_from(model["n_rec"], "n_rec")};
  if (const std::optional<std::int64_t> in = first_layer_input(model)) return {{*in}};
  BT_REQUIRE(
      model.contains("n_in"),
      fmt::format("the shape of the input of model '{}' is not known: give --input",
                  kind));
  return {shape_from(model["n_in"], "n_in")};
}

// A short name is no kind, though it stands for one.
void require_no_short_name(const json& source) {
  const json& model = source.contains("model") ? source["model"] : source;
  if (!model.is_object() || !model.contains("kind") || !model["kind"].is_string()) return;
  const auto kind = model["kind"].get<std::string>();
  BT_REQUIRE(!is_short_name(kind),
             fmt::format("--model: '{0}' is a short name, not a kind: give --model {0} "
                         "with --hidden and --layers, or the kind it stands for, as {1}",
                         kind, nn::sized_model(kind, {})));
}

// A step that does not take the input is wrong use, before anything is compiled.
void require_input_fits(const ModelRequest& request, const LoadedModel& m) {
  try {
    trace_step(*m.module, m.inputs);
  } catch (const UserError& e) {
    if (request.inputs.empty()) throw;
    throw UserError(
        fmt::format("--input {}: {}", fmt::join(request.inputs, " "), e.what()));
  }
}

std::optional<std::int64_t> recorded_batch(const json& source) {
  if (!source.contains("batch") || !source["batch"].is_number_integer()) return {};
  if (source.value("mode", "") != "batch") return {};
  return source["batch"].get<std::int64_t>();
}

}  // namespace

void add_model_options(CLI::App& app, ModelRequest& r) {
  app.add_option("--model", r.model,
                 fmt::format("{}; a kind of the registry; JSON, or a file with it",
                             fmt::join(nn::sized_model_names(), ", ")))
      ->capture_default_str();
  const auto size_option = [&](const char* name, std::int64_t& value, const char* key,
                               const char* what) {
    app.add_option(name, value, what)
        ->check(&value == &r.sizes.layers ? layer_count() : at_least_one())
        ->each([&r, key](const std::string&) { r.given.insert(key); })
        ->capture_default_str();
  };
  size_option("--hidden", r.sizes.n_rec, "n_rec", "recurrent units of a layer");
  size_option("--layers", r.sizes.layers, "layers", "recurrent layers");
  size_option("--n-in", r.sizes.n_in, "n_in", "inputs");
  size_option("--n-out", r.sizes.n_out, "n_out", "outputs");
  app.add_option("--input", r.inputs,
                 "shape of an input without batch, e.g. 1,28,28 (repeatable)")
      ->delimiter(' ');
  app.add_option("--batch", r.batch, "samples at a time (none: no batch axis)")
      ->check(whole_number(1, 1 << 20));
}

void require_model(const std::string& model) {
  if (is_model_file(model)) return;
  const std::vector<std::string> kinds = nn::model_kinds(),
                                 names = nn::sized_model_names();
  for (const auto& known : {names, kinds})
    if (std::find(known.begin(), known.end(), model) != known.end()) return;
  throw UserError(fmt::format("unknown model '{}'; known: {}, {}; or give a file.json",
                              model, fmt::join(names, ", "), fmt::join(kinds, ", ")));
}

bool is_model_file(const std::string& model) {
  return model.starts_with("{") || model.ends_with(".json") ||
         std::filesystem::is_regular_file(model);
}

json model_file(const std::string& file) {
  if (file.starts_with("{")) {
    json j = json::parse(file, nullptr, false);
    BT_REQUIRE(j.is_object(), fmt::format("--model is no JSON object: '{}'", file));
    require_no_short_name(j);
    return j;
  }
  std::ifstream in(file, std::ios::binary);
  BT_REQUIRE(in, fmt::format("cannot read the model file '{}'", file));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  json j = json::parse(text, nullptr, false);
  BT_REQUIRE(j.is_object(), fmt::format("'{}' does not hold a JSON object", file));
  require_no_short_name(j);
  return j;
}

std::string model_title(const std::string& model) {
  if (!model.starts_with("{")) return model;
  const json j = model_file(model);
  return j.contains("kind") && j["kind"].is_string() ? j["kind"] : json("model");
}

LoadedModel load_model(const ModelRequest& request) {
  BuiltModel made = source_of(request);
  const json& source = made.text;
  LoadedModel out;
  out.title = std::filesystem::path(model_title(request.model)).stem().string();
  out.module = std::move(made.module);
  std::vector<Input> inputs;
  for (const std::string& text : request.inputs)
    inputs.push_back({shape_from_text(text)});
  if (inputs.empty()) inputs.push_back(own_input(source));
  const auto batch = request.batch ? request.batch : recorded_batch(source);
  out.batched = batch.has_value();
  for (Input& in : inputs) {
    if (batch) in.shape.insert(in.shape.begin(), *batch);
    out.inputs.push_back(zeros(in.shape, in.dtype));
  }
  init_all_states(*out.module, {.batch_size = batch});
  require_input_fits(request, out);
  return out;
}

}  // namespace braintrace::cli
