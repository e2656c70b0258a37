// SPDX-License-Identifier: Apache-2.0
#include "braintrace/array/index_list.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace braintrace {

struct IndexList::Data {
  Array array;
  std::int32_t smallest = 0, largest = -1;
  bool sorted = true;
  std::uint64_t hash = 0;

  explicit Data(const Array& a) : array(a) {
    const std::int32_t* p = array.data<std::int32_t>();
    const std::int64_t n = array.size();
    hash = static_cast<std::uint64_t>(n);
    for (std::int64_t i = 0; i < n; ++i) {
      smallest = i == 0 ? p[i] : std::min(smallest, p[i]);
      largest = i == 0 ? p[i] : std::max(largest, p[i]);
      sorted = sorted && (i == 0 || p[i - 1] <= p[i]);
      hash = (hash ^ static_cast<std::uint32_t>(p[i])) * 0x9e3779b97f4a7c15ull;
      hash ^= hash >> 32;
    }
  }
};

namespace {

Array narrowed(const Ints& values) {
  using Limits = std::numeric_limits<std::int32_t>;
  Array a =
      Array::uninitialized(DType::i32, Shape{static_cast<std::int64_t>(values.size())});
  auto* p = a.mutable_data<std::int32_t>();
  for (std::int64_t v : values) {
    BT_REQUIRE(v >= Limits::min() && v <= Limits::max(),
               fmt::format("IndexList: an index must fit 32 bits, got {}", v));
    *p++ = static_cast<std::int32_t>(v);
  }
  return a;
}

const Array& checked(const Array& a) {
  BT_REQUIRE_KIND(a.dtype() == DType::i32 && a.rank() == 1, ErrorKind::type,
                  fmt::format("IndexList: indices must be i32[n], got {}{}",
                              to_string(a.dtype()), to_string(a.shape())));
  return a;
}

}  // namespace

IndexList::IndexList() {
  static const IndexList none(Ints{});
  *this = none;
}

IndexList::IndexList(const Ints& values) : IndexList(narrowed(values)) {}

IndexList::IndexList(const Array& values)
    : data_(std::make_shared<const Data>(checked(values).contiguous())),
      begin_(data_->array.data<std::int32_t>()),
      end_(begin_ + data_->array.size()) {}

const Array& IndexList::array() const { return data_->array; }
Ints IndexList::ints() const { return {begin_, end_}; }
std::int32_t IndexList::smallest() const { return data_->smallest; }
std::int32_t IndexList::largest() const { return data_->largest; }
bool IndexList::is_sorted() const { return data_->sorted; }
std::uint64_t IndexList::hash() const { return data_->hash; }

bool operator==(const IndexList& a, const IndexList& b) {
  return a.data_ == b.data_ ||
         (a.hash() == b.hash() && std::equal(a.begin_, a.end_, b.begin_, b.end_));
}

std::string to_string(const IndexList& v) {
  return fmt::format("[{}]", fmt::join(v.begin(), v.end(), ", "));
}

}  // namespace braintrace
