// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parts of the page: the fixed ones, and escaping.
#include <string>
#include <string_view>

namespace braintrace::internal {

// Safe as text and inside quoted attributes, in HTML and XML. Control characters, which
// XML does not allow, become spaces.
std::string html_escape(std::string_view text);

std::string_view page_style();
std::string_view page_script();

}  // namespace braintrace::internal
