// SPDX-License-Identifier: Apache-2.0
#include "braintrace/base/memory_plan.h"

#include <doctest/doctest.h>

#include "braintrace/base/error.h"

namespace memory_plan_test {

using namespace braintrace;

TEST_CASE("a memory plan adds its items, all or of one kind") {
  const MemoryPlan p{.algorithm = "D_RTRL",
                     .items = {{.kind = "bwg", .bytes = 10},
                               {.kind = "kappa_filtered", .bytes = 10},
                               {.kind = "bwg", .bytes = 3}}};
  CHECK(p.total_bytes() == 23);
  CHECK(p.bytes_of("bwg") == 13);
  CHECK(p.bytes_of("x") == 0);
}

TEST_CASE("sizes are read with units of 1000 and of 1024") {
  CHECK(parse_bytes("4096") == 4096);
  CHECK(parse_bytes("12B") == 12);
  CHECK(parse_bytes("64MB") == 64'000'000);
  CHECK(parse_bytes("1.5 GiB") == 1'610'612'736);
  CHECK(parse_bytes("2kib") == 2048);
}

TEST_CASE("a size that is none is refused") {
  for (const char* text :
       {"", "MB", "-3MB", "3 apples", "nan", "inf", "1e30GB", "3MBMB"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_bytes(text), UserError);
  }
  CHECK_THROWS_WITH_AS(
      parse_bytes("much"),
      "parse_bytes: must be a size like 64MB, 1.5GiB or 4096, got 'much'", UserError);
}

TEST_CASE("sizes are written in the largest unit that gives at least 1") {
  CHECK(bytes_text(512) == "512 B");
  CHECK(bytes_text(1500) == "1.5 kB");
  CHECK(bytes_text(64'000'000) == "64.0 MB");
  CHECK(bytes_text(3'000'000'000'000'000) == "3000.0 TB");
}

}  // namespace memory_plan_test
