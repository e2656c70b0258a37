// SPDX-License-Identifier: Apache-2.0
#include "braintrace/array/index_list.h"

#include <doctest/doctest.h>

namespace braintrace::index_list_test {
namespace {

TEST_CASE("copies of an index list share its memory") {
  const IndexList a = {2, 0, 1};
  const IndexList b = a;  // NOLINT: the copy is what is tested
  CHECK(b.begin() == a.begin());
  CHECK(a.array().raw() == a.begin());
  CHECK(a.array() == Array::from<std::int32_t>({3}, {2, 0, 1}));
}

TEST_CASE("an index list over an array shares it and never changes with it") {
  Array values = Array::from<std::int32_t>({2}, {4, 5});
  const IndexList list(values);
  CHECK(values.raw() == list.begin());
  values.mutable_data<std::int32_t>()[0] = 9;
  CHECK(list == IndexList{4, 5});
}

TEST_CASE("index lists compare and hash by content") {
  const IndexList a = {1, 2}, b = Ints{1, 2}, c = {2, 1}, d = {1, 2, 0};
  CHECK(a == b);
  CHECK(a.hash() == b.hash());
  CHECK_FALSE(a == c);
  CHECK(a.hash() != c.hash());
  CHECK_FALSE(a == d);
  CHECK(a.ints() == Ints{1, 2});
  CHECK(to_string(a) == "[1, 2]");
}

TEST_CASE("an index list knows its range and order") {
  const IndexList a = {3, -1, 7};
  CHECK(a.smallest() == -1);
  CHECK(a.largest() == 7);
  CHECK_FALSE(a.is_sorted());
  CHECK(IndexList{1, 1, 4}.is_sorted());
  const IndexList none;
  CHECK(none.empty());
  CHECK(none.is_sorted());
  CHECK(none.smallest() > none.largest());
  CHECK(to_string(none) == "[]");
}

TEST_CASE("index lists refuse what is no index") {
  CHECK_THROWS_WITH_AS(IndexList(Ints{0, std::int64_t{1} << 31}),
                       "IndexList: an index must fit 32 bits, got 2147483648", UserError);
  CHECK_THROWS_WITH_AS(IndexList(zeros({2})),
                       "IndexList: indices must be i32[n], got f32[2]", UserError);
  CHECK_THROWS_AS(IndexList(zeros({2, 2}, DType::i32)), UserError);
}

}  // namespace
}  // namespace braintrace::index_list_test
