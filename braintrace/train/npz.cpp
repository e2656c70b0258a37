// SPDX-License-Identifier: Apache-2.0
// The zip around NumPy arrays: the central directory is believed, and checked.
#include "braintrace/train/npz.h"

#include <fmt/core.h>
#include <zlib.h>

#include "braintrace/train/bytes_impl.h"
#include "braintrace/train/csv.h"

namespace braintrace {
namespace {

using internal::ByteReader;

constexpr std::uint32_t end_mark = 0x06054b50, entry_mark = 0x02014b50,
                        local_mark = 0x04034b50, zip64_value = 0xffffffff;
constexpr std::size_t end_size = 22, max_comment = 65535;
constexpr std::uint64_t max_unpacked = std::uint64_t{1} << 32;

struct ZipEntry {
  std::string name;
  std::uint16_t flags = 0, method = 0;
  std::uint32_t crc = 0;
  std::uint64_t packed = 0, unpacked = 0, offset = 0;
};

std::size_t find_end(std::string_view bytes, const std::string& name) {
  const std::size_t lowest =
      bytes.size() > end_size + max_comment ? bytes.size() - end_size - max_comment : 0;
  for (std::size_t at = bytes.size() >= end_size ? bytes.size() - end_size + 1 : 0;
       at-- > lowest;) {
    ByteReader r(bytes.substr(at), name);
    if (r.u32() == end_mark) return at;
  }
  throw UserError(name + ": not a zip file");
}

// Sizes that do not fit 32 bits stand in the extra field with id 1, in this order.
void read_zip64(ZipEntry& e, std::string_view extra, const std::string& name) {
  ByteReader r(extra, name);
  while (r.size() - r.position() >= 4) {
    const std::uint16_t id = r.u16(), size = r.u16();
    if (id != 1) {
      r.take(size);
      continue;
    }
    for (std::uint64_t* field : {&e.unpacked, &e.packed, &e.offset})
      if (*field == zip64_value) *field = r.little(8);
    return;
  }
}

ZipEntry read_entry(ByteReader& r, const std::string& name) {
  BT_REQUIRE(r.u32() == entry_mark, name + ": the directory of the zip is malformed");
  ZipEntry e;
  r.take(4);  // versions
  e.flags = r.u16();
  e.method = r.u16();
  r.take(4);  // time and date
  e.crc = r.u32();
  e.packed = r.u32();
  e.unpacked = r.u32();
  const std::uint16_t name_length = r.u16(), extra_length = r.u16(), comment = r.u16();
  r.take(8);  // disk, attributes
  e.offset = r.u32();
  e.name = std::string(r.take(name_length));
  read_zip64(e, r.take(extra_length), name);
  r.take(comment);
  return e;
}

std::string inflate_raw(std::string_view packed, std::size_t size,
                        const std::string& name) {
  std::string out(size, '\0');
  z_stream z{};
  BT_REQUIRE_KIND(inflateInit2(&z, -MAX_WBITS) == Z_OK, ErrorKind::runtime,
                  name + ": zlib cannot start");
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  z.avail_in = static_cast<uInt>(packed.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(size);
  const int status = inflate(&z, Z_FINISH);
  const bool complete = status == Z_STREAM_END && z.total_out == size;
  inflateEnd(&z);
  BT_REQUIRE(complete, name + ": the compressed data is damaged");
  return out;
}

std::string unpack(std::string_view bytes, const ZipEntry& e, const std::string& name) {
  BT_REQUIRE_KIND((e.flags & 1) == 0, ErrorKind::not_supported, name + ": is encrypted");
  BT_REQUIRE_KIND(
      e.method == 0 || e.method == 8, ErrorKind::not_supported,
      fmt::format("{}: compression method {} is not supported", name, e.method));
  BT_REQUIRE(e.packed < max_unpacked && e.unpacked < max_unpacked,
             name + ": is larger than 4 GiB");
  ByteReader r(bytes, name);
  r.seek(e.offset);
  BT_REQUIRE(r.u32() == local_mark, name + ": the zip entry is malformed");
  r.take(22);
  const std::uint16_t name_length = r.u16(), extra_length = r.u16();
  r.take(std::size_t{name_length} + extra_length);
  const std::string_view packed = r.take(e.packed);
  BT_REQUIRE(e.method == 8 || e.packed == e.unpacked,
             name + ": a stored entry has two sizes");
  // Deflate shrinks at most about 1000 times; more is a trap.
  constexpr std::uint64_t max_ratio = 1100;
  BT_REQUIRE(e.unpacked <= max_ratio * (e.packed + 1),
             name + ": claims to unpack too far");
  std::string data =
      e.method == 0 ? std::string(packed) : inflate_raw(packed, e.unpacked, name);
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(data.data()),
                         static_cast<uInt>(data.size()));
  BT_REQUIRE(crc == e.crc, name + ": the checksum is wrong, the file is damaged");
  return data;
}

}  // namespace

std::map<std::string, Array> parse_npz(std::string_view bytes, const std::string& name) {
  ByteReader end(bytes, name);
  end.seek(find_end(bytes, name) + 10);
  const std::uint16_t count = end.u16();
  end.take(4);
  const std::uint32_t directory = end.u32();
  BT_REQUIRE_KIND(directory != zip64_value, ErrorKind::not_supported,
                  name + ": zip files above 4 GiB are not supported");
  ByteReader r(bytes, name);
  r.seek(directory);
  std::map<std::string, Array> arrays;
  for (std::uint16_t i = 0; i < count; ++i) {
    const ZipEntry e = read_entry(r, name);
    const std::string where = fmt::format("{}: '{}'", name, e.name.substr(0, 80));
    BT_REQUIRE(e.name.ends_with(".npy"), where + ": not a NumPy array file");
    const std::string key = e.name.substr(0, e.name.size() - 4);
    BT_REQUIRE(!arrays.contains(key), where + ": stands in the file twice");
    arrays.emplace(key, parse_npy(unpack(bytes, e, where), where));
  }
  return arrays;
}

std::map<std::string, Array> read_npz(const std::string& path) {
  return parse_npz(read_file(path), path);
}

}  // namespace braintrace
