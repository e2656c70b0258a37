// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/source_loc.h"

#include <doctest/doctest.h>

namespace source_loc_test {

using namespace braintrace;

TEST_CASE("a location prints as file name and line, without folders") {
  CHECK(to_string(SourceLoc("a/b/model.cpp", 12)) == "model.cpp:12");
  CHECK(to_string(SourceLoc("model.cpp", 1)) == "model.cpp:1");
}

TEST_CASE("an unknown location is false and prints nothing") {
  CHECK(!SourceLoc());
  CHECK(to_string(SourceLoc()).empty());
  // A default std::source_location has an empty file name.
  CHECK(!SourceLoc(std::source_location()));
  CHECK(to_string(SourceLoc(std::source_location())).empty());
  CHECK(SourceLoc("model.cpp", 1));
}

}  // namespace source_loc_test
