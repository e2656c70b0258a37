// SPDX-License-Identifier: Apache-2.0
// Reads address-event files and bins events into frames.
#include "braintrace/train/events.h"

#include <fmt/core.h>

#include "braintrace/train/bytes_impl.h"
#include "braintrace/train/csv.h"

namespace braintrace {
namespace {

using internal::ByteReader;

constexpr std::int32_t nmnist_side = 34, dvs_side = 128;

void require_inside(const EventStream& s, const Event& e, std::string_view who) {
  BT_REQUIRE(e.x >= 0 && e.x < s.width && e.y >= 0 && e.y < s.height,
             fmt::format("{}: event {} at ({}, {}) lies outside {} x {}", who,
                         s.events.size(), e.x, e.y, s.width, s.height));
}

// Lines that start with '#'; returns where the data begins.
std::size_t skip_header(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size() && bytes[at] == '#') {
    const auto end = bytes.find('\n', at);
    BT_REQUIRE(end != std::string_view::npos, "aedat: the header does not end");
    const bool last = bytes.substr(at, end - at).starts_with("#!END-HEADER");
    at = end + 1;
    if (last) break;
  }
  return at;
}

// Big-endian address and time, eight bytes per event.
EventStream parse_aedat2(ByteReader& r) {
  EventStream s{dvs_side, dvs_side, {}};
  BT_REQUIRE((r.size() - r.position()) % 8 == 0,
             "aedat: the data is not a whole number of events");
  while (!r.at_end()) {
    const auto address = static_cast<std::uint32_t>(r.big(4));
    const auto time = static_cast<std::int64_t>(r.big(4));
    if (address & 0x80000000U) continue;  // not a polarity event
    // The chip counts columns from the right.
    s.events.push_back(
        {time, dvs_side - 1 - static_cast<std::int32_t>(address >> 1 & 127),
         static_cast<std::int32_t>(address >> 8 & 127), (address & 1) != 0});
  }
  return s;
}

struct PacketHeader {
  std::uint16_t type;
  std::uint32_t event_size, time_overflow, count;
};

PacketHeader read_packet_header(ByteReader& r) {
  PacketHeader h{};
  h.type = r.u16();
  r.u16();  // source
  h.event_size = r.u32();
  r.u32();  // offset of the time in an event
  h.time_overflow = r.u32();
  r.u32();  // capacity
  h.count = r.u32();
  r.u32();  // valid events
  return h;
}

EventStream parse_aedat3(ByteReader& r) {
  constexpr std::uint16_t polarity_type = 1;
  EventStream s{dvs_side, dvs_side, {}};
  while (!r.at_end()) {
    const PacketHeader h = read_packet_header(r);
    const std::uint64_t bytes = std::uint64_t{h.event_size} * h.count;
    if (h.type != polarity_type) {
      r.take(bytes);
      continue;
    }
    BT_REQUIRE(h.event_size == 8,
               fmt::format("aedat: a polarity event has 8 bytes, got {}", h.event_size));
    ByteReader packet(r.take(bytes), "aedat");
    for (std::uint32_t i = 0; i < h.count; ++i) {
      const std::uint32_t data = packet.u32(), time = packet.u32();
      if ((data & 1) == 0) continue;  // invalid
      const Event e{static_cast<std::int64_t>(h.time_overflow) << 31 | time,
                    static_cast<std::int32_t>(data >> 17 & 0x7fff),
                    static_cast<std::int32_t>(data >> 2 & 0x7fff), (data >> 1 & 1) != 0};
      require_inside(s, e, "aedat");
      s.events.push_back(e);
    }
  }
  return s;
}

}  // namespace

EventStream parse_nmnist(std::string_view bytes) {
  BT_REQUIRE(
      bytes.size() % 5 == 0,
      fmt::format("nmnist: {} bytes are not a whole number of events", bytes.size()));
  EventStream s{nmnist_side, nmnist_side, {}};
  ByteReader r(bytes, "nmnist");
  while (!r.at_end()) {
    const auto x = static_cast<std::int32_t>(r.big(1));
    const auto y = static_cast<std::int32_t>(r.big(1));
    const auto word = static_cast<std::int64_t>(r.big(3));
    const Event e{word & 0x7fffff, x, y, word >> 23 != 0};
    require_inside(s, e, "nmnist");
    s.events.push_back(e);
  }
  return s;
}

EventStream parse_aedat(std::string_view bytes) {
  ByteReader r(bytes, "aedat");
  const bool two = bytes.starts_with("#!AER-DAT2.0"),
             three = bytes.starts_with("#!AER-DAT3.1");
  BT_REQUIRE_KIND(two || three, ErrorKind::not_supported,
                  "aedat: the file must start with #!AER-DAT2.0 or #!AER-DAT3.1");
  r.seek(skip_header(bytes));
  return two ? parse_aedat2(r) : parse_aedat3(r);
}

EventStream read_nmnist(const std::string& path) { return parse_nmnist(read_file(path)); }
EventStream read_aedat(const std::string& path) { return parse_aedat(read_file(path)); }

Array count_frames(const EventStream& s, const FrameOptions& o) {
  BT_REQUIRE(
      o.steps > 0 && o.step_us > 0 && o.shrink > 0,
      fmt::format("count_frames: steps, step_us and shrink must be positive, got {}, "
                  "{}, {}",
                  o.steps, o.step_us, o.shrink));
  const std::int64_t w = (s.width + o.shrink - 1) / o.shrink,
                     h = (s.height + o.shrink - 1) / o.shrink;
  const Shape shape = {o.steps, h, w, 2};
  check_shape("count_frames", shape);
  Array frames(DType::f32, shape);
  float* p = frames.mutable_data<float>();
  for (const Event& e : s.events) {
    require_inside(s, e, "count_frames");
    if (e.time < o.start_us) continue;
    const std::int64_t t = (e.time - o.start_us) / o.step_us;
    if (t >= o.steps) continue;
    p[((t * h + e.y / o.shrink) * w + e.x / o.shrink) * 2 + (e.on ? 1 : 0)] += 1;
  }
  return frames;
}

}  // namespace braintrace
