// SPDX-License-Identifier: Apache-2.0
#include "braintrace/base/error.h"

#include <doctest/doctest.h>

namespace error_test {

using namespace braintrace;

TEST_CASE("BT_REQUIRE throws a UserError of kind value with its message") {
  try {
    BT_REQUIRE(1 == 2, "add: one is not two");
    FAIL("did not throw");
  } catch (const UserError& e) {
    CHECK(std::string(e.what()) == "add: one is not two");
    CHECK(e.kind() == ErrorKind::value);
  }
}

TEST_CASE("BT_REQUIRE_KIND keeps the kind") {
  try {
    BT_REQUIRE_KIND(false, ErrorKind::not_supported, "x");
    FAIL("did not throw");
  } catch (const UserError& e) {
    CHECK(e.kind() == ErrorKind::not_supported);
    CHECK(to_string(e.kind()) == "not_supported");
  }
}

TEST_CASE("the message of a requirement that holds is never built") {
  bool built = false;
  auto message = [&] {
    built = true;
    return std::string("x");
  };
  BT_REQUIRE(true, message());
  CHECK(!built);
}

TEST_CASE("BT_INVARIANT throws an InternalError naming the condition") {
  CHECK_THROWS_WITH_AS(BT_INVARIANT(2 < 1), doctest::Contains("2 < 1"), InternalError);
}

}  // namespace error_test
