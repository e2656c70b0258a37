// SPDX-License-Identifier: Apache-2.0
#include "braintrace/array/array.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "braintrace/array/block.h"

namespace braintrace {
namespace {

std::shared_ptr<std::byte> allocate(std::size_t bytes) {
  return {new_block(bytes), [](std::byte* b) { std::free(b); }};
}

// Reads any element type, bf16 included.
double load(DType d, const std::byte* p) {
  switch (d) {
    case DType::boolean:
      return *reinterpret_cast<const bool*>(p) ? 1.0 : 0.0;
    case DType::i32:
      return *reinterpret_cast<const std::int32_t*>(p);
    case DType::bf16:
      return static_cast<float>(*reinterpret_cast<const BFloat16*>(p));
    case DType::f32:
      return *reinterpret_cast<const float*>(p);
    case DType::f64:
      return *reinterpret_cast<const double*>(p);
  }
  return 0;
}

// Truncates towards zero and saturates: a plain cast is undefined out of range.
std::int32_t to_int(double v) {
  if (std::isnan(v)) return 0;
  if (v >= 2147483647.0) return 2147483647;
  if (v <= -2147483648.0) return -2147483647 - 1;
  return static_cast<std::int32_t>(v);
}

void store(DType d, std::byte* p, double v) {
  switch (d) {
    case DType::boolean:
      *reinterpret_cast<bool*>(p) = v != 0;
      break;
    case DType::i32:
      *reinterpret_cast<std::int32_t*>(p) = to_int(v);
      break;
    case DType::bf16:
      *reinterpret_cast<BFloat16*>(p) = BFloat16(static_cast<float>(v));
      break;
    case DType::f32:
      *reinterpret_cast<float*>(p) = static_cast<float>(v);
      break;
    case DType::f64:
      *reinterpret_cast<double*>(p) = v;
      break;
  }
}

struct EvenRun {
  std::int64_t count = 1, stride = 1;
};

// How many of the last elements, axes taken together, lie at one distance.
EvenRun even_run(const Shape& shape, const Ints& strides) {
  EvenRun run;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (run.count == 1)
      run.stride = strides[i];
    else if (strides[i] != run.stride * run.count)
      break;
    run.count *= shape[i];
  }
  return run;
}

template <std::size_t Bytes>
void copy_elements(std::byte* out, const std::byte* in, const EvenRun& run) {
  const std::int64_t step = run.stride * static_cast<std::int64_t>(Bytes);
  for (std::int64_t i = 0; i < run.count; ++i, out += Bytes, in += step)
    std::memcpy(out, in, Bytes);
}

void copy_run(std::byte* out, const std::byte* in, std::size_t bytes,
              const EvenRun& run) {
  if (run.stride == 1)
    std::memcpy(out, in, bytes * static_cast<std::size_t>(run.count));
  else if (bytes == 4)
    copy_elements<4>(out, in, run);
  else if (bytes == 8)
    copy_elements<8>(out, in, run);
  else if (bytes == 2)
    copy_elements<2>(out, in, run);
  else
    copy_elements<1>(out, in, run);
}

std::string element_text(DType d, double v) {
  switch (d) {
    case DType::boolean:
      return v != 0 ? "true" : "false";
    case DType::i32:
      return fmt::format("{}", static_cast<std::int64_t>(v));
    case DType::f64:
      return std::isnan(v) ? "nan" : fmt::format("{}", v);
    default:
      return std::isnan(v) ? "nan" : fmt::format("{}", static_cast<float>(v));
  }
}

bool is_packed(const Shape& shape, const Ints& strides) {
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

}  // namespace

std::shared_ptr<const Array::Layout> Array::layout(Shape shape, Ints strides) {
  const bool contiguous = is_packed(shape, strides);
  return std::make_shared<const Layout>(
      Layout{std::move(shape), std::move(strides), contiguous});
}

const std::shared_ptr<const Array::Layout>& Array::scalar_layout() {
  static const auto* const layout =
      new std::shared_ptr<const Layout>(Array::layout({}, {}));
  return *layout;
}

Array::Array(DType dtype, Shape shape, std::shared_ptr<std::byte> buffer)
    : dtype_(dtype), buffer_(std::move(buffer)) {
  if (shape.empty()) {
    layout_ = scalar_layout();
    return;
  }
  Ints strides = row_major_strides(shape);
  layout_ = layout(std::move(shape), std::move(strides));
}

Array::Array(const Array&) = default;
Array::Array(Array&& other) noexcept
    : dtype_(other.dtype_),
      layout_(std::exchange(other.layout_, scalar_layout())),
      offset_(other.offset_),
      buffer_(std::move(other.buffer_)) {}
Array& Array::operator=(const Array&) = default;
Array& Array::operator=(Array&& other) noexcept {
  if (this == &other) return *this;
  dtype_ = other.dtype_;
  layout_ = std::exchange(other.layout_, scalar_layout());
  offset_ = other.offset_;
  buffer_ = std::move(other.buffer_);
  return *this;
}
Array::~Array() = default;

Array::Array() : Array(DType::f32, {}) {}

Array::Array(DType dtype, Shape shape) : Array(uninitialized(dtype, std::move(shape))) {
  std::memset(buffer_.get(), 0, num_bytes());
}

Array Array::uninitialized(DType dtype, Shape shape) {
  check_shape("Array", shape);
  const auto bytes = static_cast<std::size_t>(num_elements(shape)) * size_of(dtype);
  return Array(dtype, std::move(shape), allocate(bytes));
}

Array Array::borrowed(DType dtype, Shape shape, void* memory,
                      std::shared_ptr<void> owner) {
  BT_INVARIANT(owner);
  return Array(dtype, std::move(shape),
               {std::move(owner), static_cast<std::byte*>(memory)});
}

void Array::point_to(void* memory) {
  offset_ = 0;
  buffer_ = {std::move(buffer_), static_cast<std::byte*>(memory)};
}

Array Array::transposed(const Ints& permutation) const {
  BT_REQUIRE(normalize_axes("transposed", permutation, rank()) == iota_ints(rank()),
             fmt::format("transposed: [{}] is not a permutation of the {} axes",
                         fmt::join(permutation, ","), rank()));
  Shape sizes = shape();
  Ints steps = strides();
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    const auto from =
        static_cast<std::size_t>(normalize_axis("transposed", permutation[i], rank()));
    sizes[i] = shape()[from];
    steps[i] = strides()[from];
  }
  Array view = *this;
  view.layout_ = layout(std::move(sizes), std::move(steps));
  return view;
}

Array Array::sliced(const Ints& start, const Shape& size, const Ints& step) const {
  BT_REQUIRE(start.size() == shape().size() && size.size() == shape().size() &&
                 step.size() == shape().size(),
             fmt::format("sliced: start, size and step need {} entries each", rank()));
  Array view = *this;
  Ints steps = strides();
  for (std::size_t i = 0; i < size.size(); ++i) {
    const std::int64_t last = start[i] + (size[i] - 1) * step[i];
    const bool inside = size[i] >= 0 && start[i] >= 0 && start[i] <= shape()[i] &&
                        (size[i] == 0 || (last >= 0 && last < shape()[i]));
    BT_REQUIRE(inside,
               fmt::format("sliced: axis {} of {} does not hold start {}, size {}, "
                           "step {}",
                           i, to_string(shape()), start[i], size[i], step[i]));
    view.offset_ += size[i] == 0 ? 0 : start[i] * strides()[i];
    steps[i] *= step[i];
  }
  view.layout_ = layout(size, std::move(steps));
  return view;
}

Array Array::broadcast_to(const Shape& shape) const {
  check_shape("broadcast_to", shape);
  BT_REQUIRE(broadcasts_to(this->shape(), shape),
             fmt::format("broadcast_to: {} does not broadcast to {}",
                         to_string(this->shape()), to_string(shape)));
  Ints steps(shape.size(), 0);
  const std::size_t lead = shape.size() - this->shape().size();
  for (std::size_t i = 0; i < strides().size(); ++i)
    if (this->shape()[i] == shape[lead + i]) steps[lead + i] = strides()[i];
  Array view = *this;
  view.layout_ = layout(shape, std::move(steps));
  return view;
}

Array Array::contiguous() const {
  if (is_contiguous()) return *this;
  Array packed = uninitialized(dtype_, shape());
  const std::size_t bytes = size_of(dtype_);
  auto* out = static_cast<std::byte*>(packed.mutable_raw());
  const std::byte* in = buffer_.get();
  const EvenRun run = even_run(shape(), strides());
  for (std::int64_t i = 0, n = size(); i < n; i += run.count)
    copy_run(out + static_cast<std::size_t>(i) * bytes,
             in + static_cast<std::size_t>(element_offset(i)) * bytes, bytes, run);
  return packed;
}

Array Array::reshaped(Shape shape) const {
  check_shape("reshaped", shape);
  BT_REQUIRE(
      num_elements(shape) == size(),
      fmt::format("reshaped: {} has {} elements, {} has {}", to_string(this->shape()),
                  size(), to_string(shape), num_elements(shape)));
  Array packed = contiguous();
  Ints steps = row_major_strides(shape);
  packed.layout_ = layout(std::move(shape), std::move(steps));
  return packed;
}

Array Array::astype(DType dtype) const {
  if (dtype == dtype_) return *this;
  Array out = uninitialized(dtype, shape());
  auto* p = static_cast<std::byte*>(out.mutable_raw());
  for (std::int64_t i = 0, n = size(); i < n; ++i)
    store(dtype, p + static_cast<std::size_t>(i) * size_of(dtype), at(i));
  return out;
}

const void* Array::raw() const {
  return buffer_.get() + static_cast<std::size_t>(offset_) * size_of(dtype_);
}

void* Array::mutable_raw() {
  return buffer_.get() + static_cast<std::size_t>(offset_) * size_of(dtype_);
}

void Array::make_unique() {
  if (buffer_.use_count() == 1 && is_contiguous()) return;
  Array copy = uninitialized(dtype_, shape());
  const Array packed = contiguous();
  std::memcpy(copy.buffer_.get(), packed.raw(), num_bytes());
  *this = std::move(copy);
}

std::int64_t Array::element_offset(std::int64_t flat) const {
  std::int64_t offset = offset_;
  for (std::size_t i = shape().size(); i-- > 0;) {
    offset += flat % shape()[i] * strides()[i];
    flat /= shape()[i];
  }
  return offset;
}

double Array::at(std::int64_t flat) const {
  BT_REQUIRE(flat >= 0 && flat < size(),
             fmt::format("Array::at: index {} is outside {} elements", flat, size()));
  return load(dtype_, buffer_.get() + static_cast<std::size_t>(element_offset(flat)) *
                                          size_of(dtype_));
}

double Array::item() const {
  BT_REQUIRE(size() == 1,
             fmt::format("Array::item: needs exactly one element, got shape {}",
                         to_string(shape())));
  return at(0);
}

std::vector<double> Array::to_doubles() const {
  std::vector<double> out(static_cast<std::size_t>(size()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = at(static_cast<std::int64_t>(i));
  return out;
}

bool operator==(const Array& a, const Array& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.is_contiguous() && b.is_contiguous() &&
      (a.raw() == b.raw() || std::memcmp(a.raw(), b.raw(), a.num_bytes()) == 0))
    return true;
  for (std::int64_t i = 0, n = a.size(); i < n; ++i) {
    const double x = a.at(i), y = b.at(i);
    const bool same =
        std::isnan(x) ? std::isnan(y) : x == y && std::signbit(x) == std::signbit(y);
    if (!same) return false;
  }
  return true;
}

Array zeros(Shape shape, DType dtype) { return Array(dtype, std::move(shape)); }

Array ones(Shape shape, DType dtype) { return full(std::move(shape), 1.0, dtype); }

Array full(Shape shape, double value, DType dtype) {
  Array a = Array::uninitialized(dtype, std::move(shape));
  auto* p = static_cast<std::byte*>(a.mutable_raw());
  for (std::int64_t i = 0, n = a.size(); i < n; ++i)
    store(dtype, p + static_cast<std::size_t>(i) * size_of(dtype), value);
  return a;
}

Array scalar(double value, DType dtype) { return full({}, value, dtype); }

Array array(std::initializer_list<double> values, DType dtype) {
  return array({static_cast<std::int64_t>(values.size())}, std::vector<double>(values),
               dtype);
}

Array array(Shape shape, const std::vector<double>& values, DType dtype) {
  return Array::from(std::move(shape), values).astype(dtype);
}

std::string to_string(const Array& a) {
  std::string text = fmt::format("{}{}(", to_string(a.dtype()), to_string(a.shape()));
  for (std::int64_t i = 0, n = a.size(); i < n; ++i)
    text += (i ? ", " : "") + element_text(a.dtype(), a.at(i));
  return text + ")";
}

}  // namespace braintrace
