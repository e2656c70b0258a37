// SPDX-License-Identifier: Apache-2.0
// Damaged program texts: parse() must return a program that verifies or throw UserError.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "braintrace/array/rng.h"
#include "braintrace/ir/graph.h"
#include "braintrace/ops/registry.h"
#include "braintrace/testing/random_graph.h"

namespace parse_fuzz_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

constexpr int kSources = 100, kMutationsPerSource = 100;

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : key_(rng_key(seed)) {}

  std::string damaged(std::string text) {
    for (std::uint64_t n = 1 + below(3); n > 0 && !text.empty(); --n) damage(text);
    return text;
  }

 private:
  std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>(uniform_at(key_, counter_++) *
                                      static_cast<double>(n));
  }
  void damage(std::string& t) {
    const std::size_t at = below(t.size());
    const std::size_t length = std::min<std::size_t>(1 + below(20), t.size() - at);
    switch (below(7)) {
      case 0:
        t[at] = static_cast<char>(below(256));
        return;
      case 1:
        t.erase(at, length);
        return;
      case 2:
        t.insert(below(t.size()), t.substr(at, length));
        return;
      case 3:
        return swap_tokens(t);
      case 4:
        return replace_number(t, at);
      case 5:
        t.resize(at);
        return;
      default:
        return replace_token(t, at);
    }
  }
  // [begin, end) of the run of token characters at or after `at`.
  static std::pair<std::size_t, std::size_t> token(const std::string& t, std::size_t at) {
    const char* const stops = " \n,={}[]():%";
    const std::size_t begin = t.find_first_not_of(stops, at);
    if (begin == std::string::npos) return {t.size(), t.size()};
    return {begin, std::min(t.find_first_of(stops, begin), t.size())};
  }
  void swap_tokens(std::string& t) {
    const auto [a, b] = token(t, below(t.size()));
    const auto [c, d] = token(t, below(t.size()));
    if (b > c) return;
    const std::string first = t.substr(a, b - a), second = t.substr(c, d - c);
    t.replace(c, d - c, first);
    t.replace(a, b - a, second);
  }
  void replace_number(std::string& t, std::size_t at) {
    static const char* const numbers[] = {
        "0",   "-1",        "1",          "2147483648",           "9223372036854775807",
        "1e9", "-99999999", "4294967296", "99999999999999999999", "1099511627776",
        "nan", "-inf",      "1e-320",     "-9223372036854775808", "1000003"};
    const std::size_t begin = t.find_first_of("0123456789", at);
    if (begin == std::string::npos) return;
    const std::size_t end = std::min(t.find_first_not_of("0123456789.", begin), t.size());
    t.replace(begin, end - begin, numbers[below(std::size(numbers))]);
  }
  void replace_token(std::string& t, std::size_t at) {
    const OpTable ops = op_table();
    static const char* const words[] = {"in",   "out", "true", "f32",   "i32",
                                        "bf16", "{",   "}",    "splat", "\""};
    const auto [begin, end] = token(t, at);
    const std::string word = below(2) ? std::string(ops[below(ops.size())]->name)
                                      : std::string(words[below(std::size(words))]);
    t.replace(begin, end - begin, word);
  }

  RngKey key_;
  std::uint64_t counter_ = 0;
};

// Returns true when the text is a program. Anything but UserError escapes.
bool survives(const std::string& text) {
  Graph g;
  try {
    g = parse(text);
  } catch (const UserError&) {
    return false;
  }
  verify(g);
  return true;
}

}  // namespace

TEST_CASE("damaged program texts give a program that verifies or a UserError") {
  int programs = 0;
  for (int s = 0; s < kSources; ++s) {
    const auto seed = static_cast<std::uint64_t>(s);
    const std::string text =
        print(random_graph(seed, {.min_steps = 2, .max_steps = 6}).graph);
    Mutator mutator(seed);
    for (int m = 0; m < kMutationsPerSource; ++m) {
      const std::string bad = mutator.damaged(text);
      CAPTURE(bad);
      CHECK_NOTHROW(programs += survives(bad) ? 1 : 0);
    }
  }
  // The damage is mild enough that some texts stay valid, and strong enough that most
  // do not.
  CHECK(programs > 100);
  CHECK(programs < kSources * kMutationsPerSource / 2);
}

}  // namespace parse_fuzz_test
