// SPDX-License-Identifier: Apache-2.0
#include "braintrace/array/array_json.h"

#include <cmath>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "braintrace/testing/recorded_json.h"

namespace braintrace::array_json_test {
namespace {

Array read(const char* text) { return array_from_json("x", testing::parse_json(text)); }

}  // namespace

TEST_CASE("arrays are read with shape and element type") {
  CHECK(read(R"({"shape": [2, 1], "data": [1.5, -2]})") ==
        array({2, 1}, {1.5, -2}, DType::f64));
  CHECK(read(R"({"shape": [2], "data": [1, 2], "dtype": "int32", "unit": "mV"})") ==
        array({1, 2}, DType::i32));
  CHECK(read(R"({"shape": [], "data": [3]})") == scalar(3, DType::f64));
  CHECK(read(R"({"shape": [0, 4], "data": []})").size() == 0);
}

TEST_CASE("infinities and NaN may stand as texts") {
  const Array a = read(R"({"shape": [3], "data": ["inf", "-inf", "nan"]})");
  CHECK(a.at(0) == INFINITY);
  CHECK(a.at(1) == -INFINITY);
  CHECK(std::isnan(a.at(2)));
}

TEST_CASE("malformed arrays are refused") {
  const char* texts[] = {
      R"(5)",
      R"({"shape": [2]})",
      R"({"shape": [2], "data": [1]})",
      R"({"shape": [-1], "data": []})",
      R"({"shape": [1.5], "data": [1]})",
      R"({"shape": [18446744073709551615], "data": [1]})",
      R"({"shape": [4611686018427387903, 4611686018427387903], "data": []})",
      R"({"shape": [1], "data": ["one"]})",
      R"({"shape": [1], "data": [[1]]})",
      R"({"shape": [1], "data": [1], "dtype": "complex64"})"};
  for (const char* text : texts) {
    CAPTURE(text);
    CHECK_THROWS_AS(read(text), UserError);
  }
  CHECK_THROWS_WITH_AS(read(R"({"shape": [2], "data": [1]})"),
                       "x: shape [2] does not hold 1 numbers", UserError);
}

}  // namespace braintrace::array_json_test
