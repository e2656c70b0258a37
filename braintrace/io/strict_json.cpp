// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <vector>

#include <fmt/format.h>

#include "braintrace/base/error.h"
#include "braintrace/io/strict_json_impl.h"

namespace braintrace::internal {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 64;

// Watches the parser, which itself keeps the last of equal keys and nests without limit.
class Watch {
 public:
  explicit Watch(const std::string& where) : where_(where) {}

  void see(int depth, json::parse_event_t event, const json& parsed) {
    BT_REQUIRE(depth <= kMaxDepth,
               fmt::format("{}: JSON must not nest deeper than {}", where_, kMaxDepth));
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event != json::parse_event_t::key) return;
    const auto& key = parsed.get_ref<const std::string&>();
    BT_REQUIRE(keys_.back().insert(key).second,
               fmt::format("{}: the key {} stands twice", where_, in_quotes(key)));
  }

 private:
  const std::string& where_;
  std::vector<std::set<std::string>> keys_;  // per open object
};

}  // namespace

json parse_strict_json(const std::string& where, std::string_view text) {
  Watch watch(where);
  const auto callback = [&](int depth, json::parse_event_t event, json& parsed) {
    watch.see(depth, event, parsed);
    return true;
  };
  try {
    return json::parse(text, callback);
  } catch (const json::exception& e) {
    // The parser's message quotes the text, whatever bytes it has.
    throw UserError(
        fmt::format("{}: bad JSON (error {}) in {}", where, e.id, in_quotes(text)));
  }
}

std::string dump_json(const std::string& where, const json& j) {
  try {
    return j.dump();
  } catch (const json::exception&) {
    throw UserError(where + ": names and texts must be UTF-8");
  }
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMost = 80;
  std::string out = "'";
  for (const char c : text.substr(0, kMost)) {
    const bool plain = c >= ' ' && c <= '~';
    out += plain ? std::string(1, c)
                 : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out + (text.size() > kMost ? "...'" : "'");
}

}  // namespace braintrace::internal
