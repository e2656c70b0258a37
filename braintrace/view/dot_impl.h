// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pieces of Graphviz text.
#include <string>
#include <string_view>

namespace braintrace::internal {

// "text" with quotes and backslashes escaped; line ends become centred line breaks.
std::string dot_string(std::string_view text);
// Breaks a text at spaces so that lines have at most `width` letters where possible.
std::string wrapped(std::string_view text, std::size_t width);
// The head of a digraph with the fonts and colours all pictures share.
std::string dot_head(std::string_view extra);

}  // namespace braintrace::internal
