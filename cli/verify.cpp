// SPDX-License-Identifier: Apache-2.0
// `braintrace verify`: how far a rule's gradients are from back-propagation, parameter by
// parameter, on the task's own data.
#include <algorithm>
#include <memory>

#include "command.h"
#include "model_source.h"
#include "option_use.h"
#include "output.h"
#include "run_file.h"
#include "task_defaults.h"
#include <fmt/format.h>

#include "braintrace/base/error.h"
#include "braintrace/view/certificate_text.h"

namespace braintrace::cli {
namespace {

using nlohmann::json;

constexpr const char* kVerifyFooter =
    "Verdicts are given before anything runs: exact, approximate, local, refused. The\n"
    "certificate then shows what the data say. Exit code 1 when an exact parameter is "
    "not.\n"
    "Examples:\n"
    "  braintrace verify --task integrator --model gru --algorithm d_rtrl\n"
    "  braintrace verify --checkpoint run.safetensors --json\n";

struct VerifyRequest {
  RunRequest run;
  std::string checkpoint;
  std::int64_t window = 1;
  double tolerance = 1e-4;
  bool json = false;
};

json certificate_json(const CertificateData& c, bool holds) {
  json j = {{"algorithm", c.algorithm}, {"history", c.history},
            {"steps", c.steps},         {"window", c.window},
            {"loss", c.loss},           {"cosine", c.cosine},
            {"error", c.error},         {"holds", holds},
            {"warnings", c.warnings},   {"parameters", json::array()},
            {"states", json::array()}};
  for (const CertificateRow& r : c.rows)
    j["parameters"].push_back({{"parameter", r.parameter},
                               {"verdict", r.verdict},
                               {"because", r.because},
                               {"cosine", r.cosine},
                               {"error", r.error},
                               {"norm", r.norm},
                               {"bptt_norm", r.bptt_norm},
                               {"trace_max", r.trace_max},
                               {"zero", r.zero}});
  for (const CertificateState& s : c.states) {
    json one = {{"state", s.state}, {"largest", s.largest}, {"change", s.change}};
    if (s.rate) one["rate"] = *s.rate;
    j["states"].push_back(one);
  }
  return j;
}

std::string conclusion(const CertificateData& c, bool holds) {
  if (!holds) return "";
  const auto exact =
      std::count_if(c.rows.begin(), c.rows.end(),
                    [](const CertificateRow& row) { return row.verdict == "exact"; });
  if (exact == 0)
    return "\nNo parameter is called exact: there is nothing to certify, the cosines say "
           "how far the gradients are.\n";
  return "\nThe certificate holds: what is called exact is exact.\n";
}

void verify(const VerifyRequest& r) {
  BuiltRun b = r.checkpoint.empty() ? build_run(r.run, 0) : load_run(r.checkpoint, 0);
  const CertificateData c = b.run->certificate(r.window);
  const bool holds = c.holds(r.tolerance);
  if (r.json)
    write_text(json_text(certificate_json(c, holds)) + "\n");
  else
    write_text(fmt::format("{} on {}, {} samples\n", model_title(b.request.model),
                           b.request.task, b.request.batch) +
               to_text(c) + conclusion(c, holds));
  BT_REQUIRE_KIND(
      holds, ErrorKind::runtime,
      fmt::format("verify: the certificate does not hold to {}", r.tolerance));
}

}  // namespace

Command add_verify(CLI::App& app) {
  auto r = std::make_shared<VerifyRequest>();
  CLI::App* c = app.add_subcommand("verify", "certify a rule's gradients against bptt");
  c->footer(kVerifyFooter);
  c->fallthrough();
  add_run_options(*c, r->run, {.optimizer = false});
  c->add_option("--checkpoint", r->checkpoint,
                "certify what braintrace train saved, at its weights")
      ->check(file_name());
  c->add_option("--window", r->window, "steps that run as one program")
      ->check(at_least_one())
      ->capture_default_str();
  c->add_option("--tolerance", r->tolerance, "relative error an exact parameter may have")
      ->check(positive_number())
      ->capture_default_str();
  c->add_flag("--json", r->json, "one JSON object instead of text");
  return {c, [r, c] {
            suit_task(r->run, *c);
            if (r->checkpoint.empty())
              require_arguments_used(*c, {r->run.algorithm});
            else
              require_only(*c, "--checkpoint", {"--window", "--tolerance", "--json"});
            verify(*r);
          }};
}

}  // namespace braintrace::cli
