// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/row_kernels.h"

#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "braintrace/testing/every_target.h"

namespace row_kernels_test {

using namespace braintrace;

namespace {

constexpr std::int64_t kGap = 3;  // elements behind every row and column

template <class T>
void check(std::int64_t rows, std::int64_t columns) {
  CAPTURE(rows);
  CAPTURE(columns);
  const std::int64_t far = std::max(rows, columns) + kGap;
  std::vector<T> from(static_cast<std::size_t>(far * far));
  std::iota(from.begin(), from.end(), T(1));
  const auto place = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const std::int64_t to_row = columns + kGap;
  std::vector<T> turned(place(rows * to_row), T(-1)), packed(place(rows * columns));
  std::vector<T> spread = packed, want_turned = turned, want_packed = packed,
                 want_spread = packed;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      want_turned[place(r * to_row + c)] = from[place(r + c * far)];
      want_packed[place(r * columns + c)] = from[place(r * far + c)];
      want_spread[place(r * columns + c)] = from[place(r * far)];
    }
  turn_matrix(sizeof(T), {rows, columns, far, to_row}, from.data(), turned.data());
  pack_rows(sizeof(T), {rows, columns, far}, from.data(), packed.data());
  spread_rows(sizeof(T), {rows, columns, far}, from.data(), spread.data());
  CHECK((turned == want_turned));  // and nothing in the gaps
  CHECK((packed == want_packed));
  CHECK((spread == want_spread));
}

}  // namespace

TEST_CASE("rows are turned, packed and spread at all sizes around whole vectors") {
  testing::on_every_target([](const std::string& target) {
    INFO(target);
    for (const std::int64_t rows : {1, 2, 3, 4, 5, 15, 16, 17, 33})
      for (const std::int64_t columns : {1, 2, 4, 7, 8, 9, 16, 31, 40}) {
        check<float>(rows, columns);
        check<double>(rows, columns);
      }
  });
}

}  // namespace row_kernels_test
