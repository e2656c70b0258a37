// SPDX-License-Identifier: Apache-2.0
// One NumPy array: a header that is a Python dictionary, then the numbers.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "braintrace/train/bytes_impl.h"
#include "braintrace/train/csv.h"
#include "braintrace/train/npz.h"

namespace braintrace {
namespace {

using internal::ByteReader;

struct Header {
  bool big_endian = false;
  char kind = 'f';        // f, i, u, b
  std::size_t width = 4;  // bytes
  bool fortran = false;
  Shape shape;
};

// What follows "'key':" up to the next comma outside brackets.
std::string_view entry(std::string_view dict, std::string_view key,
                       const std::string& name) {
  const std::string quoted = fmt::format("'{}'", key);
  const auto at = dict.find(quoted);
  BT_REQUIRE(at != std::string_view::npos,
             fmt::format("{}: the header has no {}", name, quoted));
  std::size_t from = dict.find(':', at);
  BT_REQUIRE(from != std::string_view::npos, name + ": the header is malformed");
  from = dict.find_first_not_of(" ", from + 1);
  BT_REQUIRE(from != std::string_view::npos, name + ": the header is malformed");
  const char close = dict[from] == '(' ? ')' : dict[from] == '\'' ? '\'' : ',';
  auto to = dict.find(close, from + 1);
  if (to == std::string_view::npos) to = dict.find('}', from);
  BT_REQUIRE(to != std::string_view::npos, name + ": the header is malformed");
  return close == ',' ? dict.substr(from, to - from)
                      : dict.substr(from + 1, to - from - 1);
}

Shape shape_of(std::string_view text, const std::string& name) {
  Shape shape;
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end) {
    if (*p == ' ' || *p == ',') {
      ++p;
      continue;
    }
    std::int64_t n = 0;
    const auto [next, error] = std::from_chars(p, end, n);
    BT_REQUIRE(error == std::errc(),
               fmt::format("{}: the shape is malformed: ({})", name, text));
    shape.push_back(n);
    p = next;
  }
  check_shape(name, shape);
  return shape;
}

Header parse_header(std::string_view dict, const std::string& name) {
  Header h;
  const std::string_view descr = entry(dict, "descr", name);
  const std::string refused =
      fmt::format("{}: element type '{}' is not supported", name, descr);
  BT_REQUIRE_KIND(descr.size() == 3, ErrorKind::not_supported, refused);
  BT_REQUIRE_KIND(descr[0] == '<' || descr[0] == '>' || descr[0] == '|',
                  ErrorKind::not_supported, refused);
  h.big_endian = descr[0] == '>';
  h.kind = descr[1];
  h.width = static_cast<std::size_t>(descr[2] - '0');
  const bool is_real = h.kind == 'f' && (h.width == 2 || h.width == 4 || h.width == 8);
  const bool is_integer = (h.kind == 'i' || h.kind == 'u') &&
                          (h.width == 1 || h.width == 2 || h.width == 4 || h.width == 8);
  BT_REQUIRE_KIND(is_real || is_integer || (h.kind == 'b' && h.width == 1),
                  ErrorKind::not_supported, refused);
  h.fortran = entry(dict, "fortran_order", name).starts_with("True");
  h.shape = shape_of(entry(dict, "shape", name), name);
  return h;
}

double half_to_double(std::uint16_t h) {
  const int exponent = h >> 10 & 31, fraction = h & 1023;
  const double sign = h >> 15 ? -1 : 1;
  if (exponent == 31)
    return fraction ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

double real(const Header& h, std::uint64_t bits) {
  if (h.width == 8) return std::bit_cast<double>(bits);
  if (h.width == 4) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  return half_to_double(static_cast<std::uint16_t>(bits));
}

std::int32_t whole(const Header& h, std::uint64_t bits, const std::string& name) {
  const auto shift = static_cast<int>(64 - 8 * h.width);
  const auto value = h.kind == 'u' ? bits : bits << shift;
  const std::int64_t v =
      h.kind == 'u' && value > INT64_MAX
          ? INT64_MAX
          : (h.kind == 'u' ? static_cast<std::int64_t>(value)
                           : static_cast<std::int64_t>(value) >> shift);
  BT_REQUIRE(v >= INT32_MIN && v <= INT32_MAX,
             fmt::format("{}: the integer {} does not fit in 32 bits", name, v));
  return static_cast<std::int32_t>(v);
}

DType dtype_of_header(const Header& h) {
  if (h.kind == 'b') return DType::boolean;
  if (h.kind != 'f') return DType::i32;
  return h.width == 8 ? DType::f64 : DType::f32;
}

Array read_elements(const Header& h, ByteReader& r, const std::string& name) {
  // Fortran order is C order of the reversed shape.
  Shape stored = h.shape;
  if (h.fortran) stored = Shape(h.shape.rbegin(), h.shape.rend());
  const auto n = static_cast<std::size_t>(num_elements(stored));
  BT_REQUIRE(n * h.width <= r.size() - r.position(),
             fmt::format("{}: {} elements of {} bytes do not fit in the file", name, n,
                         h.width));
  Array a = Array::uninitialized(dtype_of_header(h), stored);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t bits = h.big_endian ? r.big(h.width) : r.little(h.width);
    switch (a.dtype()) {
      case DType::f64:
        a.mutable_data<double>()[i] = real(h, bits);
        break;
      case DType::f32:
        a.mutable_data<float>()[i] = static_cast<float>(real(h, bits));
        break;
      case DType::i32:
        a.mutable_data<std::int32_t>()[i] = whole(h, bits, name);
        break;
      default:
        a.mutable_data<bool>()[i] = bits != 0;
    }
  }
  if (!h.fortran) return a;
  Ints reverse = iota_ints(a.rank());
  std::reverse(reverse.begin(), reverse.end());
  return a.transposed(reverse).contiguous();
}

}  // namespace

Array parse_npy(std::string_view bytes, const std::string& name) {
  ByteReader r(bytes, name);
  BT_REQUIRE(bytes.starts_with("\x93NUMPY"), name + ": not a NumPy array file");
  r.take(6);
  const auto version = r.little(1);
  r.take(1);
  BT_REQUIRE(version >= 1 && version <= 3,
             fmt::format("{}: version {} is not supported", name, version));
  const std::size_t length = version == 1 ? r.u16() : r.u32();
  const Header h = parse_header(r.take(length), name);
  return read_elements(h, r, name);
}

Array read_npy(const std::string& path) { return parse_npy(read_file(path), path); }

}  // namespace braintrace
