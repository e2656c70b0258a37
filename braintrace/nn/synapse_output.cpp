// SPDX-License-Identifier: Apache-2.0
// CUBA, COBA and MgBlock.
#include "braintrace/nn/synapse_output.h"

#include <cmath>

#include <fmt/core.h>

#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

void require(std::string_view who, std::string_view name, double value) {
  BT_REQUIRE(std::isfinite(value),
             fmt::format("{}: {} must be finite, got {}", who, name, value));
}

}  // namespace

SynapseOutput CUBA(double scale) {
  require("CUBA", "scale", scale);
  const std::string name = scale == 1 ? "CUBA" : fmt::format("CUBA_scale={:g}V", scale);
  return {name, [scale](const Value& g, const Value&) -> Current {
            return {scaled(g, scale)};
          }};
}

SynapseOutput COBA(double E, COBAOptions options) {
  require("COBA", "E", E);
  require("COBA", "scale", options.scale);
  const double scale = options.scale;
  return {fmt::format("COBA_E={:g}V", E / 1000),
          [E, scale](const Value& g, const Value& V) -> Current {
            const Value conductance = scaled(g, scale);
            return {conductance * (E - V), -conductance};
          }};
}

SynapseOutput MgBlock(MgBlockOptions o) {
  const std::pair<std::string_view, double> numbers[] = {
      {"E", o.E},       {"cc_Mg", o.cc_Mg},       {"alpha", o.alpha},
      {"beta", o.beta}, {"V_offset", o.V_offset}, {"scale", o.scale}};
  for (const auto& [name, value] : numbers) require("MgBlock", name, value);
  BT_REQUIRE(o.beta > 0 && o.cc_Mg >= 0,
             fmt::format("MgBlock: needs beta > 0 and cc_Mg >= 0, got {} and {}", o.beta,
                         o.cc_Mg));
  return {fmt::format("MgBlock_E={:g}V", o.E / 1000),
          [o](const Value& g, const Value& V) -> Current {
            const Value conductance = scaled(g, o.scale);
            // 1 / (1 + c e^{-alpha V}) as a logistic function cannot overflow.
            if (o.cc_Mg == 0) return {conductance * (o.E - V), -conductance};
            const double shift = o.alpha * o.V_offset + std::log(o.cc_Mg / o.beta);
            const Value open = sigmoid(o.alpha * V - shift);
            const Value slope =
                conductance * open * (o.alpha * (1 - open) * (o.E - V) - 1);
            return {conductance * open * (o.E - V), slope};
          }};
}

}  // namespace braintrace::nn
