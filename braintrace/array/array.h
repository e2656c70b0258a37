// SPDX-License-Identifier: Apache-2.0
#pragma once
// A typed n-dimensional value: a strided window on a shared, 64-byte aligned buffer.
// Arrays behave as values: writing through mutable_data() never changes another Array.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braintrace/array/dtype.h"
#include "braintrace/array/shape.h"
#include "braintrace/base/error.h"

namespace braintrace {

class Array {
 public:
  Array();                          // f32 scalar 0
  Array(DType dtype, Shape shape);  // contiguous, zero-filled
  // Copies are made everywhere: one definition, not one in every file that makes them.
  Array(const Array&);
  Array(Array&&) noexcept;
  Array& operator=(const Array&);
  Array& operator=(Array&&) noexcept;
  ~Array();
  // Counts no holders: streams swap arrays at every step.
  friend void swap(Array& a, Array& b) noexcept {
    std::swap(a.dtype_, b.dtype_);
    a.layout_.swap(b.layout_);
    std::swap(a.offset_, b.offset_);
    a.buffer_.swap(b.buffer_);
  }
  static Array uninitialized(DType dtype, Shape shape);
  // A packed window on memory that belongs to `owner`: for executors, which write values
  // where they are wanted. It counts as unique while nobody else holds `owner`.
  static Array borrowed(DType dtype, Shape shape, void* memory,
                        std::shared_ptr<void> owner);
  void point_to(void* memory);  // of the same owner; allocates nothing
  template <class T>
  static Array from(Shape shape, const std::vector<T>& values);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return layout_->shape; }
  const Ints& strides() const { return layout_->strides; }  // in elements
  std::int64_t rank() const { return static_cast<std::int64_t>(shape().size()); }
  std::int64_t size() const { return num_elements(shape()); }
  std::size_t num_bytes() const {
    return static_cast<std::size_t>(size()) * size_of(dtype_);
  }
  bool is_contiguous() const { return layout_->contiguous; }
  // How many Arrays share the buffer.
  long use_count() const { return buffer_.use_count(); }
  bool is_unique() const { return use_count() == 1; }

  // Views share the buffer.
  Array transposed(const Ints& permutation) const;
  Array sliced(const Ints& start, const Shape& size, const Ints& step) const;
  Array broadcast_to(const Shape& shape) const;  // stride 0 on stretched axes
  Array contiguous() const;                      // this, or a packed copy
  Array reshaped(Shape shape) const;             // packs first if needed

  Array astype(DType dtype) const;

  // Packed element access. Needs: is_contiguous() and the exact element type.
  template <class T>
  const T* data() const {
    BT_INVARIANT(dtype_of<T> == dtype_ && is_contiguous());
    return static_cast<const T*>(raw());
  }
  // Takes a private copy first when the buffer is shared.
  template <class T>
  T* mutable_data() {
    BT_INVARIANT(dtype_of<T> == dtype_);
    make_unique();
    return static_cast<T*>(mutable_raw());
  }
  const void* raw() const;
  void* mutable_raw();

  double at(std::int64_t flat_row_major_index) const;
  double item() const;                     // the one element of a size-1 array
  std::vector<double> to_doubles() const;  // row-major

  // Same dtype, shape and bits; all NaNs are equal.
  friend bool operator==(const Array& a, const Array& b);

 private:
  // Never changes: copies of an array share it, so that they allocate nothing.
  struct Layout {
    Shape shape;
    Ints strides;
    bool contiguous;
  };
  static std::shared_ptr<const Layout> layout(Shape shape, Ints strides);
  static const std::shared_ptr<const Layout>& scalar_layout();

  Array(DType dtype, Shape shape, std::shared_ptr<std::byte> buffer);
  void make_unique();
  std::int64_t element_offset(std::int64_t flat_row_major_index) const;

  DType dtype_;
  std::shared_ptr<const Layout> layout_;  // never null
  std::int64_t offset_ = 0;               // in elements
  std::shared_ptr<std::byte> buffer_;
};

Array zeros(Shape shape, DType dtype = DType::f32);
Array ones(Shape shape, DType dtype = DType::f32);
Array full(Shape shape, double value, DType dtype = DType::f32);
Array scalar(double value, DType dtype = DType::f32);
Array array(std::initializer_list<double> values, DType dtype = DType::f32);
Array array(Shape shape, const std::vector<double>& values, DType dtype = DType::f32);

std::string to_string(const Array& a);  // "f32[2](1, 2)"; every element, exact

template <class T>
Array Array::from(Shape shape, const std::vector<T>& values) {
  check_shape("Array::from", shape);
  BT_REQUIRE(num_elements(shape) == static_cast<std::int64_t>(values.size()),
             "Array::from: shape " + to_string(shape) + " does not hold " +
                 std::to_string(values.size()) + " values");
  Array a = uninitialized(dtype_of<T>, std::move(shape));
  T* p = a.mutable_data<T>();
  for (std::size_t i = 0; i < values.size(); ++i) p[i] = values[i];
  return a;
}

}  // namespace braintrace
