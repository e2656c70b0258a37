// SPDX-License-Identifier: Apache-2.0
// Drawn digits.
#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "braintrace/train/task_draws_impl.h"
#include "braintrace/train/tasks.h"

namespace braintrace {
namespace {

using internal::Draws;
using internal::mask_from;

constexpr int canvas = 8, glyph_rows = 7, glyph_columns = 5;

// Five columns, seven rows, top to bottom.
constexpr std::string_view glyphs[10] = {
    " ### #   ##  ### # ###  ##   # ### ", "  #   ##    #    #    #    #   ### ",
    " ### #   #    #   #   #   #   #####", " ### #   #    #  ##     ##   # ### ",
    "   #   ##  # # #  # #####   #    # ", "######    ####     #    ##   # ### ",
    "  ##  #   #    #### #   ##   # ### ", "#####    #   #   #   #    #    #   ",
    " ### #   ##   # ### #   ##   # ### ", " ### #   ##   # ####    #   #  ##  "};

std::vector<float> draw_digit(std::int64_t digit, double noise, Draws& draw) {
  const std::int64_t right = draw.below(canvas - glyph_columns + 1),
                     down = draw.below(canvas - glyph_rows + 1);
  const double ink = 0.7 + 0.3 * draw.uniform();
  std::vector<float> image(canvas * canvas);
  for (int r = 0; r < glyph_rows; ++r)
    for (int c = 0; c < glyph_columns; ++c)
      if (glyphs[digit][r * glyph_columns + c] == '#')
        image[(r + down) * canvas + c + right] = static_cast<float>(ink);
  for (float& pixel : image)
    pixel = std::clamp(pixel + static_cast<float>(noise * draw.normal()), 0.F, 1.F);
  return image;
}

}  // namespace

Task digits_task(const DigitsOptions& o) {
  BT_REQUIRE(std::isfinite(o.noise) && o.noise >= 0,
             fmt::format("digits: noise must not be negative, got {}", o.noise));
  const bool rows = o.scan == DigitsOptions::Scan::rows;
  const std::int64_t T = rows ? canvas : canvas * canvas, F = rows ? canvas : 1;
  const auto generate = [=](RngKey key, Split) {
    Draws draw(key);
    const std::int64_t digit = draw.below(10);
    return Task::Sample{draw_digit(digit, o.noise, draw),
                        std::vector<float>(T, static_cast<float>(digit))};
  };
  return {"digits", TaskLoss::softmax_xent, {T, F, 10}, mask_from(T, T - 1), generate,
          o.task};
}

}  // namespace braintrace
