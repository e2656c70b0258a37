// SPDX-License-Identifier: Apache-2.0
#include "braintrace/model/path.h"

#include <doctest/doctest.h>

namespace path_test {

using namespace braintrace;

TEST_CASE("a path prints as a Python tuple") {
  CHECK(to_string(Path{"rnn", "W", "weight"}) == "('rnn', 'W', 'weight')");
  CHECK(to_string(Path{"h"}) == "('h',)");
  CHECK(to_string(Path{"layers", 0, "h"}) == "('layers', 0, 'h')");
  CHECK(to_string(Path{"it's"}) == "(\"it's\",)");
}

TEST_CASE("slash paths round trip, digits are list positions") {
  const Path p{"layers", 3, "h"};
  CHECK(to_slashes(p) == "layers/3/h");
  CHECK(path_from_slashes("layers/3/h") == p);
  CHECK(path_from_slashes("h") == Path{"h"});
  CHECK(path_from_slashes("w1") == Path{"w1"});
}

TEST_CASE("paths sort by key, list positions by number") {
  CHECK(Path{"l", 2} < Path{"l", 10});
  CHECK(Path{"a"} < Path{"a", "b"});
  CHECK(Path{"a", "z"} < Path{"b", "a"});
}

}  // namespace path_test
