// SPDX-License-Identifier: Apache-2.0
#include "braintrace/model/path.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace braintrace {
namespace {

std::string plain(const PathKey& k) {
  if (const auto* i = std::get_if<std::int64_t>(&k)) return fmt::format("{}", *i);
  return std::get<std::string>(k);
}

// Python's repr: double quotes when the text holds single ones only.
std::string quoted(const PathKey& k) {
  if (std::holds_alternative<std::int64_t>(k)) return plain(k);
  const std::string& s = std::get<std::string>(k);
  const bool single = s.find('\'') != std::string::npos;
  const bool twice = s.find('"') != std::string::npos;
  return single && !twice ? fmt::format("\"{}\"", s) : fmt::format("'{}'", s);
}

PathKey key_from_text(std::string_view text) {
  std::int64_t number = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
  if (digits && r.ec == std::errc{}) return number;
  return std::string(text);
}

}  // namespace

Path Path::child(PathKey key) const {
  Path p = *this;
  p.keys.push_back(std::move(key));
  return p;
}

std::string to_string(const Path& p) {
  std::string text;
  for (const PathKey& k : p.keys) text += (text.empty() ? "" : ", ") + quoted(k);
  return fmt::format("({}{})", text, p.keys.size() == 1 ? "," : "");
}

std::string to_slashes(const Path& p) {
  std::string text;
  for (const PathKey& k : p.keys) text += (&k == p.keys.data() ? "" : "/") + plain(k);
  return text;
}

Path path_from_slashes(std::string_view text) {
  Path p;
  while (true) {
    const std::size_t slash = text.find('/');
    p.keys.push_back(key_from_text(text.substr(0, slash)));
    if (slash == std::string_view::npos) return p;
    text.remove_prefix(slash + 1);
  }
}

}  // namespace braintrace
