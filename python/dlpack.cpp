// SPDX-License-Identifier: Apache-2.0
#include "dlpack.h"

#include "convert.h"
#include <fmt/format.h>

namespace braintrace::python {
namespace {

// The structures of the DLPack ABI, version 0.
struct DLDevice {
  std::int32_t type, id;
};
struct DLDataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
constexpr std::uint8_t kInt = 0, kFloat = 2, kBool = 6;
constexpr std::int32_t kCpu = 1;

struct Lent {
  Array array;
  Shape shape;
  Ints strides;
  DLManagedTensor managed;
};

DLDataType type_code(DType d) {
  switch (d) {
    case DType::boolean:
      return {kBool, 8, 1};
    case DType::i32:
      return {kInt, 32, 1};
    case DType::f32:
      return {kFloat, 32, 1};
    case DType::f64:
      return {kFloat, 64, 1};
    default:
      throw UserError(ErrorKind::type, "to_dlpack: bf16 arrays are not exported");
  }
}

DType dtype_from(const DLDataType& t) {
  for (const DType d : {DType::boolean, DType::i32, DType::f32, DType::f64}) {
    const DLDataType c = type_code(d);
    if (c.code == t.code && c.bits == t.bits && c.lanes == t.lanes) return d;
  }
  throw UserError(
      ErrorKind::type,
      fmt::format("from_dlpack: element type code {} with {} bits is not one of "
                  "bool, i32, f32, f64",
                  t.code, t.bits));
}

// Packs row by row; the shape has an axis.
Array strided_copy(DType dtype, const Shape& shape, const Ints& strides,
                   const std::byte* data) {
  Array out = Array::uninitialized(dtype, shape);
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  const std::size_t width = size_of(dtype);
  const std::size_t last = shape.size() - 1;
  const std::int64_t n = shape[last], rows = n == 0 ? 0 : out.size() / n;
  const std::int64_t step = strides[last] * static_cast<std::int64_t>(width);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t left = row, offset = 0;
    for (std::size_t k = last; k-- > 0;) {
      offset += left % shape[k] * strides[k];
      left /= shape[k];
    }
    const std::byte* from = data + offset * static_cast<std::int64_t>(width);
    for (std::int64_t i = 0; i < n; ++i, to += width)
      std::memcpy(to, from + i * step, width);
  }
  return out;
}

void drop_unused(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor") == 0) return;  // taken over
  auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  m->deleter(m);
}

}  // namespace

py::capsule to_dlpack(const Array& a) {
  auto e = std::make_unique<Lent>();
  e->array = a;
  e->shape = a.shape();
  e->strides = a.strides();
  e->managed.tensor = {const_cast<void*>(a.raw()),
                       {kCpu, 0},
                       static_cast<std::int32_t>(a.rank()),
                       type_code(a.dtype()),
                       e->shape.data(),
                       e->strides.data(),
                       0};
  e->managed.context = e.get();
  e->managed.deleter = [](DLManagedTensor* m) { delete static_cast<Lent*>(m->context); };
  PyObject* capsule = PyCapsule_New(&e->managed, "dltensor", drop_unused);
  if (capsule == nullptr) throw py::error_already_set();
  e.release();
  return py::reinterpret_steal<py::capsule>(capsule);
}

Value from_dlpack(const py::object& x) {
  if (!PyCapsule_CheckExact(x.ptr()) && !py::hasattr(x, "__dlpack__"))
    throw UserError(ErrorKind::type,
                    fmt::format("from_dlpack: takes an object with __dlpack__, got {}",
                                py::repr(x).cast<std::string>()));
  const py::object capsule = PyCapsule_CheckExact(x.ptr()) ? x : x.attr("__dlpack__")();
  BT_REQUIRE(PyCapsule_IsValid(capsule.ptr(), "dltensor") != 0,
             "from_dlpack: the capsule is not an unused 'dltensor'");
  auto* m =
      static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  const DLTensor& t = m->tensor;
  BT_REQUIRE(t.device.type == kCpu,
             fmt::format("from_dlpack: the memory must be the CPU's, got device type {}",
                         t.device.type));
  const DType dtype = dtype_from(t.dtype);
  Shape shape(t.shape, t.shape + t.ndim);
  Ints strides = t.strides != nullptr ? Ints(t.strides, t.strides + t.ndim)
                                      : row_major_strides(shape);
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  const std::shared_ptr<DLManagedTensor> owner(m, [](DLManagedTensor* p) {
    py::gil_scoped_acquire gil;
    if (p->deleter != nullptr) p->deleter(p);
  });
  const auto* data = static_cast<const std::byte*>(t.data) + t.byte_offset;
  const Ints packed = row_major_strides(shape);
  if (strides == packed || num_elements(shape) <= 1)
    return foreign_array(dtype, std::move(shape), data, owner);
  return strided_copy(dtype, shape, strides, data);
}

}  // namespace braintrace::python
