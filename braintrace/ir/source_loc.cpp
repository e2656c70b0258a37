// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/source_loc.h"

#include <string_view>

#include <fmt/format.h>

namespace braintrace {

std::string to_string(const SourceLoc& l) {
  if (!l) return "";
  std::string_view path = l.file;
  if (const auto slash = path.rfind('/'); slash != std::string_view::npos)
    path.remove_prefix(slash + 1);
  return fmt::format("{}:{}", path, l.line);
}

}  // namespace braintrace
