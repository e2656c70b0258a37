// SPDX-License-Identifier: Apache-2.0
// On files written by NumPy, whole and damaged.
#include "braintrace/train/npz.h"

#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/array/rng.h"
#include "braintrace/train/csv.h"

namespace braintrace::npz_test {
namespace {

const std::string data = BT_TESTS_DIR "/data/";

void check_arrays(const std::map<std::string, Array>& a) {
  CHECK(a.at("f4") == array({2, 2}, {1.5, -2, 3, 4}));
  CHECK(a.at("f8") == array({0, 0.25, 0.5, 0.75, 1}, DType::f64));
  CHECK(a.at("i8") == array({1, -2, 3}, DType::i32));
  CHECK(a.at("u1") == array({0, 255}, DType::i32));
  CHECK(a.at("b") == array({1, 0}, DType::boolean));
  CHECK(a.at("big") == array({1.25, -8}, DType::f64));
  CHECK(a.at("fortran") == array({2, 3}, {0, 1, 2, 3, 4, 5}, DType::i32));
  CHECK(a.at("half") == array({1, -0.5, 65504, std::ldexp(1, -24)}));
  CHECK(a.at("scalar") == scalar(7, DType::f64));
  CHECK(a.at("empty").shape() == Shape{0, 3});
  CHECK(a.size() == 10);
}

std::string npy(const std::string& dict, const std::string& body = "") {
  std::string s = "\x93NUMPY";
  s += '\x01';
  s += '\0';
  s += static_cast<char>(dict.size() & 255);
  s += static_cast<char>(dict.size() >> 8);
  return s + dict + body;
}

}  // namespace

TEST_CASE("stored and deflated archives hold the same arrays") {
  check_arrays(read_npz(data + "arrays.npz"));
  check_arrays(read_npz(data + "arrays_deflated.npz"));
}

TEST_CASE("element types without a counterpart are refused") {
  CHECK_THROWS_WITH_AS(read_npy(data + "cplx.npy"),
                       doctest::Contains("element type '<c16' is not supported"),
                       UserError);
  const std::string big(8, '\x7f');
  CHECK_THROWS_WITH_AS(
      parse_npy(npy("{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", big)),
      doctest::Contains("does not fit in 32 bits"), UserError);
  const std::string all(8, '\xff');
  CHECK_THROWS_AS(
      parse_npy(npy("{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }", all)),
      UserError);
}

TEST_CASE("malformed headers are refused") {
  const char* dicts[] = {
      "",
      "{}",
      "{'descr': '<f4'}",
      "{'descr': '<f4', 'fortran_order': False}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (x,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,)}",
      "{'descr': '<f3', 'fortran_order': False, 'shape': ()}",
      "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}"};
  for (const char* dict : dicts) {
    CAPTURE(dict);
    CHECK_THROWS_AS(parse_npy(npy(dict)), UserError);
  }
}

TEST_CASE("damaged archives give a UserError or the right arrays, never anything else") {
  for (const char* file : {"arrays.npz", "arrays_deflated.npz"}) {
    const std::string whole = read_file(data + file);
    for (std::size_t n = 0; n < whole.size(); n += 17)
      CHECK_THROWS_AS(parse_npz(whole.substr(0, n)), UserError);
    int refused = 0;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      std::string bytes = whole;
      const RandomWords w = random_words(rng_key(5), i);
      bytes[w.w[0] % bytes.size()] ^= static_cast<char>(1 + w.w[1] % 255);
      try {
        parse_npz(bytes);
      } catch (const UserError&) {
        ++refused;
      }
    }
    CHECK(refused > 500);
  }
}

}  // namespace braintrace::npz_test
