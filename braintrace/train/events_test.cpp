// SPDX-License-Identifier: Apache-2.0
// On small files made here, byte by byte.
#include "braintrace/train/events.h"

#include <doctest/doctest.h>

#include "braintrace/array/rng.h"

namespace braintrace::events_test {
namespace {

std::string little(std::uint64_t v, int width) {
  std::string s;
  for (int i = 0; i < width; ++i) s += static_cast<char>(v >> (8 * i) & 255);
  return s;
}

std::string big(std::uint64_t v, int width) {
  const std::string s = little(v, width);
  return {s.rbegin(), s.rend()};
}

std::string nmnist_event(int x, int y, bool on, std::uint32_t time) {
  return big(static_cast<std::uint64_t>(x), 1) + big(static_cast<std::uint64_t>(y), 1) +
         big(std::uint64_t{on} << 23 | time, 3);
}

std::string packet(int type, std::uint32_t overflow, std::uint32_t count,
                   const std::string& body, std::uint32_t event_size = 8) {
  return little(static_cast<std::uint64_t>(type), 2) + little(1, 2) +
         little(event_size, 4) + little(4, 4) + little(overflow, 4) + little(count, 4) +
         little(count, 4) + little(count, 4) + body;
}

std::string polarity(std::uint32_t x, std::uint32_t y, bool on, bool valid,
                     std::uint32_t time) {
  return little(std::uint64_t{x} << 17 | y << 2 | std::uint32_t{on} << 1 |
                    std::uint32_t{valid},
                4) +
         little(time, 4);
}

const std::string head3 = "#!AER-DAT3.1\r\n#Format: RAW\r\n#!END-HEADER\r\n";

}  // namespace

TEST_CASE("N-MNIST events have five bytes") {
  const EventStream s =
      parse_nmnist(nmnist_event(3, 33, true, 70000) + nmnist_event(0, 1, false, 5));
  CHECK(s.width == 34);
  CHECK(s.events == std::vector<Event>{{70000, 3, 33, true}, {5, 0, 1, false}});
  CHECK_THROWS_WITH_AS(parse_nmnist("123456"),
                       "nmnist: 6 bytes are not a whole number of events", UserError);
  CHECK_THROWS_WITH_AS(parse_nmnist(nmnist_event(34, 0, true, 0)),
                       "nmnist: event 0 at (34, 0) lies outside 34 x 34", UserError);
}

TEST_CASE("AEDAT 2.0 counts columns from the right") {
  const std::string head = "#!AER-DAT2.0\r\n# made here\r\n";
  const std::string event = big(7 << 8 | 20 << 1 | 1, 4) + big(1234, 4);
  const std::string special = big(0x80000000U, 4) + big(9, 4);
  const EventStream s = parse_aedat(head + event + special);
  CHECK(s.events == std::vector<Event>{{1234, 107, 7, true}});
  CHECK_THROWS_AS(parse_aedat(head + event + "x"), UserError);
}

TEST_CASE("AEDAT 3.1 packets: other types and invalid events are left out") {
  const std::string body = polarity(5, 6, true, true, 100) +
                           polarity(1, 1, true, false, 1) +
                           polarity(127, 0, false, true, 200);
  const EventStream s =
      parse_aedat(head3 + packet(0, 0, 1, std::string(8, 'x')) + packet(1, 0, 3, body) +
                  packet(1, 2, 1, polarity(0, 0, true, true, 7)));
  CHECK(s.events == std::vector<Event>{{100, 5, 6, true},
                                       {200, 127, 0, false},
                                       {(std::int64_t{2} << 31) + 7, 0, 0, true}});
}

TEST_CASE("malformed event files are refused") {
  CHECK_THROWS_AS(parse_aedat(""), UserError);
  CHECK_THROWS_AS(parse_aedat("#!AER-DAT1.0\n"), UserError);
  CHECK_THROWS_AS(parse_aedat("#!AER-DAT3.1 no line end"), UserError);
  CHECK_THROWS_AS(parse_aedat(head3 + "short"), UserError);
  CHECK_THROWS_AS(parse_aedat(head3 + packet(1, 0, 4000000000U, "")), UserError);
  CHECK_THROWS_AS(parse_aedat(head3 + packet(1, 0, 1, std::string(9, 'x'), 9)),
                  UserError);
  CHECK_THROWS_AS(parse_aedat(head3 + packet(1, 0, 1, polarity(128, 0, true, true, 0))),
                  UserError);
}

TEST_CASE("frames count events by time, place and polarity") {
  const EventStream s{4,
                      2,
                      {{0, 0, 0, false},
                       {999, 3, 1, true},
                       {999, 2, 1, true},
                       {1000, 0, 0, true},
                       {5000, 0, 0, true}}};
  const Array f = count_frames(s, {.steps = 2});
  CHECK(f.shape() == Shape{2, 2, 4, 2});
  CHECK(f.at(0) == 1);
  CHECK(f.at((0 * 8 + 1 * 4 + 3) * 2 + 1) == 1);
  CHECK(f.at(8 * 2 + 1) == 1);
  const Array small = count_frames(s, {.steps = 1, .step_us = 10000, .shrink = 2});
  CHECK(small.shape() == Shape{1, 1, 2, 2});
  CHECK(small == array({1, 1, 2, 2}, {1, 2, 0, 2}));
  CHECK(count_frames(s, {.steps = 1, .step_us = 10, .start_us = 995}) ==
        count_frames({4, 2, {{4, 3, 1, true}, {4, 2, 1, true}, {5, 0, 0, true}}},
                     {.steps = 1, .step_us = 10}));
  CHECK_THROWS_AS(count_frames(s, {.steps = 0}), UserError);
  CHECK_THROWS_AS(count_frames({1, 1, {{0, 1, 0, true}}}), UserError);
}

}  // namespace braintrace::events_test
