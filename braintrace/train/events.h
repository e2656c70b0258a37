// SPDX-License-Identifier: Apache-2.0
#pragma once
// Event cameras: address-event files and the frames made of them.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braintrace/array/array.h"

namespace braintrace {

struct Event {
  std::int64_t time = 0;  // us
  std::int32_t x = 0, y = 0;
  bool on = false;  // brighter
  friend bool operator==(const Event&, const Event&) = default;
};

struct EventStream {
  std::int32_t width = 0, height = 0;
  std::vector<Event> events;  // in the order of the file
};

// N-MNIST / N-Caltech101 `.bin`: five bytes per event (x, y, polarity and 23-bit time).
EventStream parse_nmnist(std::string_view bytes);  // 34 x 34
// AEDAT 2.0 (DVS128) and 3.1 (DVS gesture); invalid and other events are left out.
EventStream parse_aedat(std::string_view bytes);  // 128 x 128
EventStream read_nmnist(const std::string& path);
EventStream read_aedat(const std::string& path);

struct FrameOptions {
  std::int64_t steps = 100;
  std::int64_t step_us = 1000;
  std::int64_t start_us = 0;
  std::int32_t shrink = 1;  // pixels per output pixel, on both axes
};
// Events per step, pixel and polarity: f32 [steps, height, width, 2], off then on.
// Events outside the time are left out.
Array count_frames(const EventStream& stream, const FrameOptions& options = {});

}  // namespace braintrace
