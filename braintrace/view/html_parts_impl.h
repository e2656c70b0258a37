// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the page is made of: small pieces of mark-up, and the parts that come from a run.
#include <string>
#include <string_view>
#include <vector>

#include "braintrace/view/html.h"

namespace braintrace::internal {

std::string esc(std::string_view text);
std::string code(std::string_view text);
std::string tag(std::string_view look, std::string_view text);

struct Table {
  std::vector<std::string> head;
  std::vector<std::string> rows;  // complete <tr> elements
};
std::string row(const std::vector<std::string>& cells, std::string_view attributes = "");
std::string render(const Table& t, std::string_view when_empty);
std::string card(std::string_view heading, const std::string& body);

// One page of the tabs; empty bodies make no tab.
struct Tab {
  std::string id, title, body;
};

std::string run_part(const RunLog& log);
std::string memory_part(const std::vector<MemoryPlan>& plans);
std::string equations_part(const ETraceGraph& g, const Algorithm& algorithm);
std::string certificate_part(const CertificateData& c);

}  // namespace braintrace::internal
