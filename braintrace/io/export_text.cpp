// SPDX-License-Identifier: Apache-2.0
// Numbers, places and loops as text of C and C++.
#include <cmath>

#include <fmt/format.h>

#include "braintrace/io/export_impl.h"

namespace braintrace::internal {

void CodeWriter::line(std::string_view text) {
  if (!text.empty()) text_.append(static_cast<std::size_t>(2 * depth_), ' ');
  text_ += text;
  text_ += '\n';
}

void CodeWriter::open(std::string_view text) {
  line(text);
  ++depth_;
}

void CodeWriter::close(std::string_view text) {
  --depth_;
  line(text);
}

std::string_view c_type(DType d) {
  switch (d) {
    case DType::boolean:
      return "unsigned char";
    case DType::i32:
      return "int32_t";
    case DType::f32:
      return "float";
    default:
      return "double";
  }
}

std::string literal_text(double value, DType d) {
  if (d == DType::boolean) return value != 0 ? "1" : "0";
  if (d == DType::i32) {
    // The smallest int has no literal of its own.
    if (value <= -2147483648.0) return "(-2147483647 - 1)";
    const std::string text = fmt::format("{}", static_cast<std::int64_t>(value));
    return value < 0 ? "(" + text + ")" : text;
  }
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value < 0 ? "(-INFINITY)" : "INFINITY";
  const bool single = d == DType::f32;
  std::string text =
      single ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (single) text += "f";
  return std::signbit(value) ? "(" + text + ")" : text;
}

bool is_splat(const Array& a) {
  for (std::int64_t i = 1; i < a.size(); ++i) {
    const bool same =
        a.at(i) == a.at(0) && std::signbit(a.at(i)) == std::signbit(a.at(0));
    if (!same) return false;
  }
  return a.size() > 0;
}

std::string linear_text(std::span<const std::string> variables, const Ints& strides,
                        std::int64_t offset) {
  std::string text;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (strides[i] == 0 || variables[i] == "0") continue;
    text += text.empty() ? "" : " + ";
    text +=
        strides[i] == 1 ? variables[i] : fmt::format("{} * {}", variables[i], strides[i]);
  }
  if (text.empty()) return fmt::format("{}", offset);
  return offset == 0 ? text : fmt::format("{} + {}", text, offset);
}

Place apply(const StretchMap& map, const Place& place) {
  if (place.flat == "0") return {"0"};
  if (place.shape == map.shape && !place.coordinates.empty())
    return {linear_text(place.coordinates, map.strides, 0)};
  const Ints strides = row_major_strides(map.shape);
  std::vector<std::string> coordinates;
  for (std::size_t i = 0; i < map.shape.size(); ++i) {
    std::string text = "(" + place.flat + ")";
    if (strides[i] != 1) text = fmt::format("({} / {})", text, strides[i]);
    if (i > 0) text = fmt::format("({} % {})", text, map.shape[i]);
    coordinates.push_back(std::move(text));
  }
  return {linear_text(coordinates, map.strides, 0)};
}

std::vector<std::string> open_loops(CodeWriter& w, const Shape& shape,
                                    std::string_view prefix) {
  std::vector<std::string> variables;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) {
      variables.push_back("0");
      continue;
    }
    const std::string v = fmt::format("{}{}", prefix, i);
    w.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {{", v, shape[i]));
    variables.push_back(v);
  }
  return variables;
}

void close_loops(CodeWriter& w, const Shape& shape) {
  for (const std::int64_t d : shape)
    if (d != 1) w.close();
}

}  // namespace braintrace::internal
