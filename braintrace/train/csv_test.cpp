// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/csv.h"

#include <doctest/doctest.h>

namespace braintrace::csv_test {

TEST_CASE("a table of numbers with and without a header") {
  const CsvTable t = parse_csv("a,b\n1,2.5\r\n\n-3e2, +4 \n");
  CHECK(t.header == std::vector<std::string>{"a", "b"});
  CHECK(t.values == array({2, 2}, {1, 2.5, -300, 4}, DType::f64));
  CHECK(parse_csv("1;2", {.separator = ';'}).values == array({1, 2}, {1, 2}, DType::f64));
  CHECK(parse_csv("1,2\n3,4", {.header = true}).header[0] == "1");
  CHECK(parse_csv("").values.size() == 0);
}

TEST_CASE("quoted fields may hold separators, quotes and line ends") {
  const CsvTable t = parse_csv("\"x, y\",\"say \"\"hi\"\"\nnow\"\n1,\"2\"\n");
  CHECK(t.header == std::vector<std::string>{"x, y", "say \"hi\"\nnow"});
  CHECK(t.values.at(1) == 2);
}

TEST_CASE("a missing field is refused, or stands for what the caller says") {
  CHECK_THROWS_WITH_AS(parse_csv("1,2\n3,\n"),
                       "parse_csv: line 2, field 2: not a number: ''", UserError);
  CHECK(parse_csv("1,2\n3,\n", {.missing = -1}).values.at(3) == -1);
}

TEST_CASE("malformed tables are refused with their line") {
  CHECK_THROWS_WITH_AS(parse_csv("1,2\n3\n"),
                       "parse_csv: line 2 has 1 fields, expected 2", UserError);
  CHECK_THROWS_WITH_AS(parse_csv("1,2\n3,4x\n"),
                       "parse_csv: line 2, field 2: not a number: '4x'", UserError);
  CHECK_THROWS_WITH_AS(parse_csv("a\n\"1"),
                       "parse_csv: line 2: a quoted field does not end", UserError);
  CHECK_THROWS_WITH_AS(parse_csv("\"1\"2\n"),
                       "parse_csv: line 1: text follows a closed field", UserError);
  CHECK_THROWS_AS(read_csv("/no/such/file.csv"), UserError);
  CHECK_THROWS_AS(read_csv("/"), UserError);
}

}  // namespace braintrace::csv_test
