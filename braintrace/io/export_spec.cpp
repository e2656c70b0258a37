// SPDX-License-Identifier: Apache-2.0
// Ports against the program.
#include <fmt/format.h>

#include "braintrace/io/export_impl.h"

namespace braintrace::internal {
namespace {

using Role = ExportPort::Role;

bool is_input_role(Role r) { return is_carried(r) || r == Role::argument; }

[[noreturn]] void refuse(const ExportPort& p, const std::string& why) {
  throw UserError(
      fmt::format("export_header: {} '{}' {}", to_string(p.role), p.name, why));
}

const ExportPort* find(const std::vector<ExportPort>& ports, const std::string& name,
                       Role role) {
  for (const ExportPort& p : ports)
    if (p.name == name && p.role == role) return &p;
  return nullptr;
}

void check_input(const Graph& g, const ExportSpec& spec, std::size_t i) {
  const ExportPort& p = spec.inputs[i];
  const Type& t = g.type(g.inputs()[i]);
  if (!is_input_role(p.role)) refuse(p, "cannot be an input");
  if (find(spec.inputs, p.name, p.role) != &p) refuse(p, "stands twice");
  if (t.dtype == DType::bf16) refuse(p, "is bf16, which C has not");
  if (p.initial && type_of(*p.initial) != t)
    refuse(p, fmt::format("starts as {}, the program wants {}",
                          to_string(type_of(*p.initial)), to_string(t)));
}

void check_output(const Graph& g, const ExportSpec& spec, std::size_t i) {
  const ExportPort& p = spec.outputs[i];
  if (p.role == Role::argument) refuse(p, "cannot be an output");
  if (find(spec.outputs, p.name, p.role) != &p) refuse(p, "stands twice");
  if (p.role == Role::output || p.role == Role::loss) return;
  if (!find(spec.inputs, p.name, partner_role(p.role)))
    refuse(p, "has no input of its name");
  const Type &in = g.type(g.inputs()[partner_of(spec, i)]), &out = g.type(g.outputs()[i]);
  if (in != out)
    refuse(p, fmt::format("is {}, its input is {}", to_string(out), to_string(in)));
}

}  // namespace

bool is_carried(Role r) {
  return r == Role::state || r == Role::trace || r == Role::parameter;
}

Role partner_role(Role r) { return r == Role::gradient ? Role::parameter : r; }

std::size_t partner_of(const ExportSpec& spec, std::size_t output) {
  const ExportPort& p = spec.outputs[output];
  const ExportPort* in = find(spec.inputs, p.name, partner_role(p.role));
  BT_INVARIANT(in != nullptr);
  return static_cast<std::size_t>(in - spec.inputs.data());
}

void check_export_spec(const Graph& g, const ExportSpec& spec, ExportLanguage language) {
  BT_REQUIRE(
      is_identifier(spec.name),
      fmt::format("export_header: the name must be an identifier, got '{}'", spec.name));
  BT_REQUIRE(!is_keyword(spec.name),
             fmt::format("export_header: '{}' is a keyword of C or C++ and cannot be a "
                         "name",
                         spec.name));
  BT_REQUIRE(language == ExportLanguage::c99 || !is_library_name(spec.name),
             fmt::format("export_header: '{}' is a name of the C library and cannot be a "
                         "namespace",
                         spec.name));
  BT_REQUIRE(spec.inputs.size() == g.inputs().size() &&
                 spec.outputs.size() == g.outputs().size(),
             fmt::format("export_header: the program has {} inputs and {} outputs, the "
                         "ports are {} and {}",
                         g.inputs().size(), g.outputs().size(), spec.inputs.size(),
                         spec.outputs.size()));
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) check_input(g, spec, i);
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) check_output(g, spec, i);
}

}  // namespace braintrace::internal
