// SPDX-License-Identifier: Apache-2.0
#pragma once
// Graphviz text to SVG, by the Graphviz library in this process.
#include <string>

namespace braintrace {

// UserError on malformed text or when the layout fails, with Graphviz' own message;
// not_supported when the library was built without Graphviz.
std::string dot_to_svg(const std::string& dot);
// Without the XML declaration and document type, to stand inside an HTML page; every id
// starts with `id_prefix`, so that a page can hold several pictures.
std::string dot_to_inline_svg(const std::string& dot, const std::string& id_prefix);

}  // namespace braintrace
