// SPDX-License-Identifier: Apache-2.0
// Damaged checkpoint files: the content that was saved, or a UserError, nothing else.
#include <cstring>
#include <string>

#include <doctest/doctest.h>

#include "braintrace/io/checkpoint.h"
#include "braintrace/io/safetensors.h"

namespace checkpoint_fuzz_test {

using namespace braintrace;

namespace {

constexpr int kMutations = 20000;

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : key_(rng_key(seed)) {}

  std::string damaged(std::string bytes) {
    for (std::uint64_t n = 1 + below(3); n > 0 && !bytes.empty(); --n) damage(bytes);
    return bytes;
  }

 private:
  std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>(uniform_at(key_, counter_++) *
                                      static_cast<double>(n));
  }
  // Half of the damage goes into the header, where the rules are.
  std::size_t place(const std::string& b) {
    return below(below(2) ? std::min<std::size_t>(b.size(), 900) : b.size());
  }
  void damage(std::string& b) {
    const std::size_t at = place(b);
    const std::size_t length = std::min<std::size_t>(1 + below(40), b.size() - at);
    switch (below(8)) {
      case 0:
        b[at] = static_cast<char>(b[at] ^ (1 << below(8)));
        return;
      case 1:
        b[at] = static_cast<char>(below(256));
        return;
      case 2:
        b.erase(at, length);
        return;
      case 3:
        b.insert(place(b), b.substr(at, length));
        return;
      case 4:
        b.resize(at);
        return;
      case 5:
        return change_length(b);
      case 6:
        return replace_number(b, at);
      default:
        return replace_word(b, at);
    }
  }
  void change_length(std::string& b) {
    static constexpr std::uint64_t lengths[] = {
        0, 1, 8, 1u << 20, 100000000, ~std::uint64_t{0}, 1u << 31, 1ull << 63};
    if (b.size() < 8) return;
    std::uint64_t length = 0;
    std::memcpy(&length, b.data(), 8);
    length = below(2) ? lengths[below(std::size(lengths))] : length + below(17) - 8;
    std::memcpy(b.data(), &length, 8);
  }
  // Keeps the length of the header when it can, so that the damage is met further on.
  void replace_number(std::string& b, std::size_t at) {
    static const char* const numbers[] = {
        "0",  "-1",   "1",     "4294967296", "18446744073709551615", "1099511627776",
        "64", "1e18", "1e400", "null",       "9223372036854775807",  "[[[["};
    const std::size_t begin = b.find_first_of("0123456789", at);
    if (begin == std::string::npos) return;
    const std::size_t end = std::min(b.find_first_not_of("0123456789", begin), b.size());
    if (below(2)) {
      b[begin] = static_cast<char>('0' + below(10));
      return;
    }
    const std::string number = numbers[below(std::size(numbers))];
    replace(b, begin, end - begin, number);
  }
  void replace_word(std::string& b, std::size_t at) {
    static const char* const words[] = {"F32",  "F64",   "I64",   "BOOL",    "BF16",
                                        "I32",  "shape", "dtype", "weights", "states",
                                        "hash", "{",     "}",     "\"",      "\\u0000"};
    const std::size_t begin = b.find_first_of("\"", at);
    if (begin == std::string::npos || begin + 1 >= b.size()) return;
    const std::size_t end = std::min(b.find_first_of("\"", begin + 1), b.size());
    replace(b, begin + 1, end - begin - 1, words[below(std::size(words))]);
  }
  // Adjusts the stored length of the header half of the time.
  void replace(std::string& b, std::size_t at, std::size_t n, const std::string& by) {
    b.replace(at, n, by);
    if (b.size() < 8 || at < 8 || below(2)) return;
    std::uint64_t length = 0;
    std::memcpy(&length, b.data(), 8);
    length += by.size() - n;
    std::memcpy(b.data(), &length, 8);
  }

  RngKey key_;
  std::uint64_t counter_ = 0;
};

Checkpoint sample() {
  Checkpoint c;
  c.weights["W"] = random_normal(rng_key(1), {4, 3}, DType::f32);
  c.weights["b"] = random_normal(rng_key(2), {3}, DType::f64);
  c.states["h"] = array({1, 2, 3}, DType::bf16);
  c.states["key"] = key_array(rng_key(3));
  c.traces["W"] = zeros({0, 4});
  c.optimizer["mask"] = array({1, 0, 1}, DType::boolean);
  c.step = 12;
  c.rng["data"] = rng_key(4);
  c.model = R"({"name":"gru","sizes":[3,4]})";
  return c;
}

}  // namespace

TEST_CASE("damaged checkpoints give the saved content or a UserError") {
  const Checkpoint original = sample();
  const std::string bytes = to_bytes(original);
  Mutator mutator(1);
  int equal = 0, refused = 0;
  for (int i = 0; i < kMutations; ++i) {
    const std::string bad = mutator.damaged(bytes);
    try {
      const Checkpoint c = parse_checkpoint(bad);
      REQUIRE(c == original);
      ++equal;
    } catch (const UserError&) {
      ++refused;
    }
  }
  CHECK(equal + refused == kMutations);
  CHECK(refused > kMutations / 2);
}

// Without the hash in the way the rules of the format stand alone.
TEST_CASE("damaged safetensors give arrays that fit the file or a UserError") {
  const std::string bytes = to_bytes(sample());
  Mutator mutator(2);
  int read = 0;
  for (int i = 0; i < kMutations; ++i) {
    const std::string bad = mutator.damaged(bytes);
    try {
      std::size_t held = 0;
      for (const auto& [name, a] : parse_safetensors(bad).arrays) {
        held += a.num_bytes();
        REQUIRE(a.to_doubles().size() == static_cast<std::size_t>(a.size()));
      }
      REQUIRE(held <= bad.size());
      ++read;
    } catch (const UserError&) {
    }
  }
  // Mild enough to reach the elements, strong enough to be refused.
  CHECK(read > kMutations / 50);
  CHECK(read < kMutations / 2);
}

}  // namespace checkpoint_fuzz_test
