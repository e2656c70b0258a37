// SPDX-License-Identifier: Apache-2.0
// The format as others write it, and files that break each of its rules.
#include "braintrace/io/safetensors.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include <doctest/doctest.h>

#include "braintrace/testing/temporary_folder.h"

namespace safetensors_test {

using namespace braintrace;
using braintrace::testing::TemporaryFolder;

namespace {

// A file from its parts, as any other tool would write it.
std::string file_of(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), 8);
  return bytes + header + std::string(data_bytes, '\0');
}

std::string entry(const std::string& name, const std::string& dtype,
                  const std::string& shape, const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

// What parse says about the file; empty when it accepts it.
std::string complaint(const std::string& bytes) {
  try {
    parse_safetensors(bytes, "the-file");
  } catch (const UserError& e) {
    CHECK(std::string(e.what()).find("the-file") == 0);
    return e.what();
  }
  return "";
}

bool complains(const std::string& bytes, const std::string& about) {
  const std::string text = complaint(bytes);
  CAPTURE(text);
  return text.find(about) != std::string::npos;
}

Safetensors sample() {
  Safetensors s;
  const double inf = std::numeric_limits<double>::infinity();
  s.arrays["w"] = array({2, 3}, {1, -2.5, 3, inf, std::nan(""), -0.0});
  s.arrays["d"] = array({0.1, 1e300}, DType::f64);
  s.arrays["i"] = array({-2147483648.0, 7}, DType::i32);
  s.arrays["b"] = array({1, 0, 1}, DType::boolean);
  s.arrays["h"] = array({1.5, -3}, DType::bf16);
  s.arrays["scalar"] = scalar(4);
  s.arrays["empty"] = zeros({0, 5});
  s.arrays["transposed"] = array({2, 2}, {1, 2, 3, 4}).transposed({1, 0});
  s.arrays["ünicode/\"name\""] = scalar(1);
  s.metadata = {{"key", "va\nlue"}, {"", ""}};
  return s;
}

}  // namespace

TEST_CASE("arrays and metadata come back as they were") {
  const Safetensors s = sample();
  const Safetensors back = parse_safetensors(to_safetensors(s));
  CHECK(back.arrays == s.arrays);
  CHECK(back.metadata == s.metadata);
  CHECK(to_safetensors(back) == to_safetensors(s));

  const TemporaryFolder folder;
  write_safetensors(folder / "file", s);
  CHECK(read_safetensors(folder / "file").arrays == s.arrays);
  CHECK(parse_safetensors(to_safetensors({})).arrays.empty());
}

TEST_CASE("the bytes are those of the format") {
  Safetensors s;
  s.arrays["a"] = array({1, 0}, DType::boolean);
  s.arrays["b"] = array({1, 2});
  const std::string bytes = to_safetensors(s);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  CHECK(length % 8 == 0);
  CHECK(bytes.size() == 8 + length + 10);
  // Keys are sorted, so the order inside an entry is data_offsets, dtype, shape.
  CHECK(bytes.find(R"("b":{"data_offsets":[0,8],"dtype":"F32","shape":[2]})") !=
        std::string::npos);
  CHECK(bytes.substr(8 + length) == std::string("\0\0\x80\x3f\0\0\0\x40\x01\0", 10));
}

TEST_CASE("a file another tool wrote is read") {
  const std::string header = "{\"__metadata__\":{\"format\":\"pt\"}," +
                             entry("x", "F32", "[1,2]", "[4,12]") + ", " +
                             entry("y", "I32", "[]", "[0,4]") + "}   ";
  const Safetensors s = parse_safetensors(file_of(header, 12));
  CHECK(s.arrays.at("x") == zeros({1, 2}));
  CHECK(s.arrays.at("y") == zeros({}, DType::i32));
  CHECK(s.metadata.at("format") == "pt");
}

TEST_CASE("lengths that do not fit the file are refused") {
  CHECK(complains("", "at least 8 bytes"));
  CHECK(complains("1234567", "at least 8 bytes"));
  CHECK(complains(std::string(8, '\0'), "must start with '{'"));
  CHECK(complains(std::string(8, '\xff') + "{}", "does not fit"));
  const std::string whole = to_safetensors(sample());
  for (std::size_t n = 0; n < whole.size(); ++n)
    CHECK_FALSE(complaint(whole.substr(0, n)).empty());
  CHECK(complains(whole + "x", "the file has"));
}

TEST_CASE("files of another kind are said to be no safetensors") {
  for (const char* text : {"[train]\ntask = \"copying\"\n", "not a checkpoint"})
    CHECK(complains(text, "no safetensors file, as checkpoints are"));
}

TEST_CASE("bad JSON and bad headers are refused") {
  CHECK(complains(file_of("{\"a\":", 0), "bad JSON"));
  CHECK(complains(file_of("{}x", 0), "bad JSON"));
  CHECK(complains(file_of(" {}", 0), "must start with '{'"));
  CHECK(complains(file_of("{\"a\xff\":1}", 0), "bad JSON"));
  CHECK(complains(file_of("{\"a\":1e999}", 0), "bad JSON"));
  CHECK(complains(file_of("{\"a\":" + std::string(100000, '['), 0), "deeper than 64"));
  const std::string x = entry("x", "F32", "[0]", "[0,0]");
  CHECK(complains(file_of("{" + x + "," + x + "}", 0), "'x' stands twice"));
  CHECK(complains(file_of("{\"x\":3}", 0), "exactly dtype"));
  CHECK(complains(file_of(R"({"x":{"dtype":"F32","shape":[0]}})", 0), "exactly dtype"));
  CHECK(complains(file_of(R"({"__metadata__":[]})", 0), "must be an object"));
  CHECK(complains(file_of(R"({"__metadata__":{"a":1}})", 0), "must hold texts"));
}

TEST_CASE("element types outside the five are refused by name") {
  for (const char* dtype : {"U8", "I64", "F16", "I8", "f32", "F8_E4M3", ""}) {
    const std::string bytes = file_of("{" + entry("x", dtype, "[0]", "[0,0]") + "}", 0);
    CHECK(complains(bytes, std::string("got '") + dtype + "'"));
    CHECK(complains(bytes, "array 'x'"));
  }
  CHECK(complains(file_of(R"({"x":{"dtype":1,"shape":[0],"data_offsets":[0,0]}})", 0),
                  "must be a text"));
}

TEST_CASE("sizes and places that make no sense are refused") {
  const auto one = [](const char* shape, const char* offsets, std::size_t bytes) {
    return file_of("{" + entry("x", "F32", shape, offsets) + "}", bytes);
  };
  CHECK(complaint(one("[2]", "[0,8]", 8)) == "");
  CHECK(complains(one("[2]", "[0,4]", 4), "takes 8 bytes"));
  CHECK(complains(one("[-1]", "[0,4]", 4), "whole numbers"));
  CHECK(complains(one("[1.0]", "[0,4]", 4), "whole numbers"));
  CHECK(complains(one("[18446744073709551615]", "[0,4]", 4), "whole numbers"));
  CHECK(complains(one("[4294967296,4294967296]", "[0,4]", 4), "more than 2^40"));
  CHECK(complains(one("[1099511627776]", "[0,4398046511104]", 4), "the file has 4"));
  CHECK(complains(one("2", "[0,8]", 8), "must be a list"));
  CHECK(complains(one("[2]", "[8,0]", 8), "[begin, end]"));
  CHECK(complains(one("[2]", "[0,4,8]", 8), "[begin, end]"));
  CHECK(complains(one("[2]", "[4,12]", 12), "begins at byte 4"));
  CHECK(complains(one("[2]", "[0,8]", 9), "the file has 9"));
}

TEST_CASE("arrays that overlap or leave a gap are refused") {
  const auto two = [](const char* second, std::size_t bytes) {
    return file_of("{" + entry("x", "F32", "[2]", "[0,8]") + "," +
                       entry("y", "F32", "[1]", second) + "}",
                   bytes);
  };
  CHECK(complaint(two("[8,12]", 12)) == "");
  CHECK(complains(two("[4,8]", 8), "before"));
  CHECK(complains(two("[0,4]", 8), "begins at byte 0"));
  CHECK(complains(two("[12,16]", 16), "begins at byte 12"));
}

TEST_CASE("a boolean that is neither 0 nor 1 is refused") {
  std::string bytes = file_of("{" + entry("x", "BOOL", "[2]", "[0,2]") + "}", 2);
  CHECK(complaint(bytes) == "");
  bytes.back() = 2;
  CHECK(complains(bytes, "0 or 1, got 2"));
}

TEST_CASE("names that the format cannot hold are refused when writing") {
  Safetensors s;
  s.arrays["\xff"] = scalar(1);
  CHECK_THROWS_AS(to_safetensors(s), UserError);
  s.arrays.clear();
  s.arrays["__metadata__"] = scalar(1);
  CHECK_THROWS_AS(to_safetensors(s), UserError);
}

TEST_CASE("a path that is no readable file gives a UserError") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(read_safetensors(folder / "none"), UserError);
  CHECK_THROWS_AS(read_safetensors(folder.path()), UserError);
  CHECK_THROWS_AS(read_safetensors("/dev/zero"), UserError);
}

}  // namespace safetensors_test
