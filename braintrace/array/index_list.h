// SPDX-License-Identifier: Apache-2.0
#pragma once
// A long list of indices that never changes: copies share one block of 32-bit numbers, so
// programs, plans and executors can all hold it. What is asked again and again (hash,
// range, order) is computed once.
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "braintrace/array/array.h"

namespace braintrace {

class IndexList {
 public:
  IndexList();
  // UserError when an entry does not fit 32 bits.
  IndexList(const Ints& values);  // NOLINT: a short list is written as one
  IndexList(std::initializer_list<std::int64_t> values) : IndexList(Ints(values)) {}
  // i32[n]; shares its memory. UserError for another type or rank.
  explicit IndexList(const Array& values);

  std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
  bool empty() const { return size() == 0; }
  const std::int32_t* begin() const { return begin_; }
  const std::int32_t* end() const { return end_; }
  std::int32_t operator[](std::size_t i) const { return begin_[i]; }

  const Array& array() const;  // i32[n], the same memory
  Ints ints() const;
  // 0 and -1 when empty.
  std::int32_t smallest() const;
  std::int32_t largest() const;
  bool is_sorted() const;  // never falls
  std::uint64_t hash() const;

  friend bool operator==(const IndexList& a, const IndexList& b);

 private:
  struct Data;
  std::shared_ptr<const Data> data_;
  const std::int32_t* begin_ = nullptr;
  const std::int32_t* end_ = nullptr;
};

std::string to_string(const IndexList& v);  // "[0, 1]"

}  // namespace braintrace
