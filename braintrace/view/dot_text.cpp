// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "braintrace/view/dot_impl.h"

namespace braintrace::internal {

std::string dot_string(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    // Other control characters have no picture.
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

std::string wrapped(std::string_view text, std::size_t width) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    if (column > 0) {
      const bool fits = column + 1 + word.size() <= width;
      out += fits ? ' ' : '\n';
      column = fits ? column + 1 : 0;
    }
    out += word;
    column += word.size();
    text = space == std::string_view::npos ? "" : text.substr(space + 1);
  }
  return out;
}

std::string dot_head(std::string_view extra) {
  return fmt::format(
      "digraph braintrace {{\n"
      "  graph [{}, bgcolor=\"#ffffff\", fontname=\"Helvetica\", fontsize=11];\n"
      "  node [fontname=\"Helvetica\", fontsize=11, color=\"#57606a\", "
      "fontcolor=\"#1f2328\"];\n"
      "  edge [fontname=\"Helvetica\", fontsize=9, color=\"#57606a\", "
      "fontcolor=\"#57606a\", arrowsize=0.7];\n",
      extra);
}

}  // namespace braintrace::internal
