// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers out of bytes, with a check at every step.
#include <cstdint>
#include <string>
#include <string_view>

#include "braintrace/base/error.h"

namespace braintrace::internal {

class ByteReader {
 public:
  ByteReader(std::string_view bytes, std::string who)
      : bytes_(bytes), who_(std::move(who)) {}

  std::size_t size() const { return bytes_.size(); }
  std::size_t position() const { return at_; }
  bool at_end() const { return at_ == bytes_.size(); }

  // UserError when the text is shorter.
  std::string_view take(std::size_t n) {
    BT_REQUIRE(n <= bytes_.size() - at_, who_ + ": the file ends too early");
    at_ += n;
    return bytes_.substr(at_ - n, n);
  }
  void seek(std::size_t position) {
    BT_REQUIRE(position <= bytes_.size(), who_ + ": points behind the end of the file");
    at_ = position;
  }

  std::uint64_t little(std::size_t width) {
    const std::string_view b = take(width);
    std::uint64_t v = 0;
    for (std::size_t i = width; i-- > 0;) v = v << 8 | static_cast<unsigned char>(b[i]);
    return v;
  }
  std::uint64_t big(std::size_t width) {
    const std::string_view b = take(width);
    std::uint64_t v = 0;
    for (const char c : b) v = v << 8 | static_cast<unsigned char>(c);
    return v;
  }
  std::uint16_t u16() { return static_cast<std::uint16_t>(little(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(little(4)); }

 private:
  std::string_view bytes_;
  std::string who_;
  std::size_t at_ = 0;
};

}  // namespace braintrace::internal
