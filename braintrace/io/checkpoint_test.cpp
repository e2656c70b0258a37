// SPDX-License-Identifier: Apache-2.0
// Checkpoints come back whole or not at all, also when the writer is killed.
#include "braintrace/io/checkpoint.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "braintrace/io/safetensors.h"
#include "braintrace/testing/temporary_folder.h"

namespace checkpoint_test {

using namespace braintrace;
using braintrace::testing::TemporaryFolder;

namespace {

Checkpoint sample(std::int64_t step = 7) {
  Checkpoint c;
  const RngKey key = rng_key(static_cast<std::uint64_t>(step));
  c.weights["rnn/W/weight"] = random_normal(fold_in(key, "w"), {8, 16}, DType::f32);
  c.weights["rnn/W/bias"] = random_normal(fold_in(key, "b"), {16}, DType::f32);
  c.states["rnn/h"] = random_normal(fold_in(key, "h"), {16}, DType::f64);
  c.states["rnn/key"] = key_array(key);
  c.traces["rnn/W/weight|rnn/h"] =
      random_normal(fold_in(key, "e"), {8, 16}, DType::f32).astype(DType::bf16);
  c.optimizer["m/rnn/W/weight"] = zeros({8, 16});
  c.optimizer["mask"] = array({1, 0, 1}, DType::boolean);
  c.step = step;
  c.rng["data"] = key;
  c.model = R"({"name":"gru","units":[16,{"bias":true}]})";
  c.config = R"({"algorithm":"D_RTRL","decay":0.99})";
  return c;
}

std::string complaint(const std::string& bytes) {
  try {
    parse_checkpoint(bytes, "the-file");
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

// The sample with its manifest text changed, under a hash that still says the old one.
std::string with_manifest(const std::string& from, const std::string& to) {
  Safetensors s = parse_safetensors(to_bytes(sample()));
  std::string& text = s.metadata.at("braintrace");
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  return to_safetensors(s);
}

}  // namespace

TEST_CASE("a checkpoint comes back as it was") {
  const TemporaryFolder folder;
  const Checkpoint c = sample();
  CHECK(parse_checkpoint(to_bytes(c)) == c);
  save_checkpoint(folder / "c", c);
  CHECK(load_checkpoint(folder / "c") == c);
  CHECK(parse_checkpoint(to_bytes(Checkpoint{})) == Checkpoint{});
  CHECK_FALSE(sample(7) == sample(8));
}

TEST_CASE("JSON texts come back in normal form and keep every digit") {
  Checkpoint c;
  c.config = "{ \"b\": 0.1234567890123456789, \"a\": [1, 1e-300] }";
  const Checkpoint back = parse_checkpoint(to_bytes(c));
  CHECK(back.config == R"({"a":[1,1e-300],"b":0.12345678901234568})");
  CHECK(parse_checkpoint(to_bytes(back)) == back);
}

TEST_CASE("what is no JSON or no text is refused when saving") {
  Checkpoint c;
  c.model = "{";
  CHECK_THROWS_AS(to_bytes(c), UserError);
  c.model = std::string(1000, '[') + std::string(1000, ']');
  CHECK_THROWS_AS(to_bytes(c), UserError);
  c = {};
  c.weights["\xc3"] = scalar(1);
  CHECK_THROWS_AS(to_bytes(c), UserError);
  c = {};
  c.step = -1;
  CHECK_THROWS_AS(to_bytes(c), UserError);
}

TEST_CASE("every flipped bit is found or changes nothing") {
  const Checkpoint c = sample();
  std::string bytes = to_bytes(c);
  int found = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char flip = static_cast<char>(1 << (i * 5 % 8));
    bytes[i] = static_cast<char>(bytes[i] ^ flip);
    try {
      const Checkpoint back = parse_checkpoint(bytes);
      CHECK(back == c);
    } catch (const UserError&) {
      ++found;
    }
    bytes[i] = static_cast<char>(bytes[i] ^ flip);
  }
  // Only the few spaces behind the header do not matter, when they become a tab or so.
  CHECK(found > static_cast<int>(bytes.size()) - 8);
}

TEST_CASE("the manifest is checked") {
  const auto refused = [](const char* from, const char* to, const char* about) {
    const std::string text = complaint(with_manifest(from, to));
    CAPTURE(text);
    return text.find("the-file") == 0 && text.find(about) != std::string::npos;
  };
  CHECK(refused("\"version\":1", "\"version\":2", "reads version 1, found '2'"));
  CHECK(refused("\"version\":1", "\"version\":\"1\"", "reads version 1"));
  CHECK(refused("braintrace checkpoint", "other", "'format' must be"));
  CHECK(refused("\"step\":7", "\"step\":-7", "'step' must be"));
  CHECK(refused("\"step\":7", "\"step\":7.5", "'step' must be"));
  CHECK(refused("\"step\":7", "\"stop\":7", "has no 'step'"));
  CHECK(refused("\"step\":7", "\"x\":0,\"step\":7", "6 entries"));
  CHECK(refused("\"data\":[", "\"data\":[4294967296,", "two 32-bit numbers"));
  CHECK(refused("\"step\":7", "\"step\":8", "damaged"));
  CHECK(refused("\"step\":7", "\"step\":7,", "bad JSON"));
  CHECK(refused("\"step\":7", "\"step\":7,\"step\":7", "stands twice"));
}

TEST_CASE("arrays outside the four groups are refused by name") {
  for (const char* name : {"other/x", "weights", "x"}) {
    Safetensors s = parse_safetensors(to_bytes(sample()));
    s.arrays[name] = scalar(1);
    const std::string text = complaint(to_safetensors(s));
    CHECK(text.find(std::string("array '") + name + "' must stand in") !=
          std::string::npos);
  }
}

TEST_CASE("an array that is missing, added or renamed is found by the hash") {
  const auto damaged = [](const Safetensors& s) {
    return complaint(to_safetensors(s)).find("damaged") != std::string::npos;
  };
  const Safetensors whole = parse_safetensors(to_bytes(sample()));
  CHECK_FALSE(damaged(whole));
  Safetensors s = whole;
  s.arrays.erase("weights/rnn/W/bias");
  CHECK(damaged(s));
  s = whole;
  s.arrays["weights/more"] = zeros({0});
  CHECK(damaged(s));
  s = whole;
  s.arrays["states/rnn/W/bias"] = s.arrays.at("weights/rnn/W/bias");
  s.arrays.erase("weights/rnn/W/bias");
  CHECK(damaged(s));
  s = whole;
  s.arrays["weights/rnn/W/weight"] = s.arrays["weights/rnn/W/weight"].reshaped({16, 8});
  CHECK(damaged(s));
}

TEST_CASE("safetensors without manifest and hash are no checkpoint") {
  Safetensors s = parse_safetensors(to_bytes(sample()));
  s.metadata.erase("hash");
  CHECK(complaint(to_safetensors(s)).find("not a checkpoint") != std::string::npos);
  CHECK(complaint(to_safetensors({})).find("not a checkpoint") != std::string::npos);
}

TEST_CASE("a write that fails at any stage keeps the old checkpoint") {
  const TemporaryFolder folder;
  const std::string path = folder / "c";
  const Checkpoint old = sample(1), next = sample(2);
  save_checkpoint(path, old);
  // One stage more than succeeds, until all succeed. Pieces count as stages.
  int failures = 0;
  for (int allowed = 0;; ++allowed) {
    int seen = 0;
    FileStage last = FileStage::create;
    const AtomicFileOptions options = {.fault = [&](FileStage s) {
      last = s;
      return seen++ == allowed ? EIO : 0;
    }};
    try {
      save_checkpoint(path, next, options);
      break;
    } catch (const UserError&) {
      ++failures;
    }
    CHECK(load_checkpoint(path) == (last == FileStage::sync_directory ? next : old));
  }
  CHECK(failures == 12);  // create, head, 7 arrays, sync, rename, sync of the folder
  CHECK(load_checkpoint(path) == next);
}

TEST_CASE("a writer killed at a random moment leaves a whole checkpoint") {
  const TemporaryFolder folder;
  const std::string path = folder / "c";
  const Checkpoint even = sample(0), odd = sample(1);
  save_checkpoint(path, even);
  int kills = 0;
  for (std::uint64_t round = 0; round < 30; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int i = 1;; ++i) save_checkpoint(path, i % 2 ? odd : even);
    }
    ::usleep(static_cast<useconds_t>(500 + 9500 * uniform_at(rng_key(1), round)));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    kills += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 1 : 0;
    const Checkpoint c = load_checkpoint(path);
    CHECK((c == even || c == odd));
  }
  CHECK(kills == 30);
}

}  // namespace checkpoint_test
