// SPDX-License-Identifier: Apache-2.0
#include "braintrace/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "braintrace/io/strict_json_impl.h"

namespace braintrace {
namespace {

using internal::in_quotes;
using nlohmann::json;

static_assert(std::endian::native == std::endian::little,
              "elements are stored in little-endian order");

constexpr const char* kMetadata = "__metadata__";
constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeader = 100'000'000;  // the format's own limit

struct TypeName {
  DType dtype;
  const char* name;
};
constexpr TypeName kTypes[] = {{DType::f32, "F32"},
                               {DType::f64, "F64"},
                               {DType::i32, "I32"},
                               {DType::boolean, "BOOL"},
                               {DType::bf16, "BF16"}};

const char* type_name(DType d) {
  for (const TypeName& t : kTypes)
    if (t.dtype == d) return t.name;
  BT_INVARIANT(false);
  return "";
}

struct Entry {
  std::string name;
  DType dtype;
  Shape shape;
  std::uint64_t begin, end;  // in the elements' part of the file
};

DType parse_dtype(const std::string& where, const json& j) {
  BT_REQUIRE(j.is_string(), where + ": 'dtype' must be a text");
  for (const TypeName& t : kTypes)
    if (j.get_ref<const std::string&>() == t.name) return t.dtype;
  throw UserError(ErrorKind::not_supported,
                  fmt::format("{}: 'dtype' must be F32, F64, I32, BOOL or BF16, got {}",
                              where, in_quotes(j.get_ref<const std::string&>())));
}

// Whole numbers below 2^62, so that sums and signed copies cannot overflow.
Ints parse_sizes(const std::string& where, const char* what, const json& j) {
  BT_REQUIRE(j.is_array(), fmt::format("{}: '{}' must be a list", where, what));
  Ints sizes;
  for (const json& n : j) {
    BT_REQUIRE(n.is_number_unsigned() && n.get<std::uint64_t>() >> 62 == 0,
               fmt::format("{}: '{}' must hold whole numbers from 0 to 2^62, got {}",
                           where, what, in_quotes(n.dump())));
    sizes.push_back(static_cast<std::int64_t>(n.get<std::uint64_t>()));
  }
  return sizes;
}

Entry parse_entry(const std::string& file, const std::string& name, const json& j) {
  const std::string where = fmt::format("{}: array {}", file, in_quotes(name));
  const bool complete = j.is_object() && j.size() == 3 && j.contains("dtype") &&
                        j.contains("shape") && j.contains("data_offsets");
  BT_REQUIRE(complete, where + ": needs exactly dtype, shape and data_offsets");
  Entry e = {name, parse_dtype(where, j["dtype"]),
             parse_sizes(where, "shape", j["shape"]), 0, 0};
  check_shape(where, e.shape);
  const Ints offsets = parse_sizes(where, "data_offsets", j["data_offsets"]);
  BT_REQUIRE(offsets.size() == 2 && offsets[0] <= offsets[1],
             fmt::format("{}: 'data_offsets' must be [begin, end], got [{}]", where,
                         fmt::join(offsets, ",")));
  e.begin = static_cast<std::uint64_t>(offsets[0]);
  e.end = static_cast<std::uint64_t>(offsets[1]);
  const auto bytes = static_cast<std::uint64_t>(num_elements(e.shape)) * size_of(e.dtype);
  BT_REQUIRE(e.end - e.begin == bytes,
             fmt::format("{}: {}{} takes {} bytes, 'data_offsets' give {}", where,
                         type_name(e.dtype), to_string(e.shape), bytes, e.end - e.begin));
  return e;
}

// Sorts by place in the file; every byte must belong to exactly one array.
void check_cover(const std::string& file, std::vector<Entry>& entries,
                 std::uint64_t data_bytes) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t covered = 0;
  for (const Entry& e : entries) {
    BT_REQUIRE(
        e.begin == covered,
        fmt::format("{}: array {} begins at byte {}, {} the array before it ends "
                    "({})",
                    file, in_quotes(e.name), e.begin,
                    e.begin < covered ? "before" : "behind the byte where", covered));
    covered = e.end;
  }
  BT_REQUIRE(covered == data_bytes,
             fmt::format("{}: the header describes {} bytes of elements, the file has {}",
                         file, covered, data_bytes));
}

std::map<std::string, std::string> parse_metadata(const std::string& file,
                                                  const json& j) {
  BT_REQUIRE(j.is_object(), file + ": '__metadata__' must be an object");
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : j.items()) {
    BT_REQUIRE(value.is_string(),
               fmt::format("{}: '__metadata__' must hold texts, {} is none", file,
                           in_quotes(key)));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

// Copies n bytes that start at an offset of the file. Asked only for what is there.
using ReadAt = std::function<void(std::uint64_t offset, void* to, std::size_t n)>;

// Any other byte in a bool is undefined behaviour.
void check_booleans(const std::string& file, const Entry& e, const Array& a) {
  if (e.dtype != DType::boolean) return;
  const auto* bytes = static_cast<const unsigned char*>(a.raw());
  for (std::size_t i = 0; i < a.num_bytes(); ++i)
    BT_REQUIRE(bytes[i] <= 1, fmt::format("{}: array {}: booleans must be 0 or 1, got {}",
                                          file, in_quotes(e.name), bytes[i]));
}

Safetensors load(const std::string& file, std::uint64_t file_bytes, const ReadAt& read) {
  BT_REQUIRE(file_bytes >= kLengthBytes,
             fmt::format("{}: a safetensors file has at least 8 bytes, got {}", file,
                         file_bytes));
  std::uint64_t length = 0;
  read(0, &length, kLengthBytes);
  char first = '{';
  if (file_bytes > kLengthBytes) read(kLengthBytes, &first, 1);
  BT_REQUIRE(first == '{', file +
                               ": no safetensors file, as checkpoints are: its header "
                               "must start with '{' after 8 bytes");
  BT_REQUIRE(length <= kMaxHeader && length <= file_bytes - kLengthBytes,
             fmt::format("{}: a header of {} bytes does not fit a file of {} (limit {})",
                         file, length, file_bytes, kMaxHeader));
  std::string text(length, '\0');
  read(kLengthBytes, text.data(), text.size());
  BT_REQUIRE(!text.empty() && text[0] == '{', file + ": the header must start with '{'");

  Safetensors content;
  std::vector<Entry> entries;
  const json header = internal::parse_strict_json(file + ": header", text);
  for (const auto& [key, value] : header.items()) {
    if (key == kMetadata)
      content.metadata = parse_metadata(file, value);
    else
      entries.push_back(parse_entry(file, key, value));
  }
  const std::uint64_t data = kLengthBytes + length;
  check_cover(file, entries, file_bytes - data);
  for (const Entry& e : entries) {
    Array a = Array::uninitialized(e.dtype, e.shape);
    read(data + e.begin, a.mutable_raw(), a.num_bytes());
    check_booleans(file, e, a);
    content.arrays.emplace(e.name, std::move(a));
  }
  return content;
}

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : path_(path) {
    // Without O_NONBLOCK a pipe would wait for a writer.
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd_ < 0) fail(errno);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { ::close(fd_); }

  std::uint64_t size() const {
    struct stat info;
    if (::fstat(fd_, &info) != 0) fail(errno);
    BT_REQUIRE(S_ISREG(info.st_mode), path_ + ": not a regular file");
    return static_cast<std::uint64_t>(info.st_size);
  }
  void read(std::uint64_t offset, void* to, std::size_t n) const {
    auto* at = static_cast<std::byte*>(to);
    while (n > 0) {
      const ssize_t got = ::pread(fd_, at, n, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(errno);
      BT_REQUIRE(got > 0, path_ + ": became shorter while it was read");
      at += got;
      offset += static_cast<std::uint64_t>(got);
      n -= static_cast<std::size_t>(got);
    }
  }

 private:
  [[noreturn]] void fail(int error) const {
    throw UserError(ErrorKind::runtime,
                    fmt::format("{}: cannot be read: {}", path_,
                                std::generic_category().message(error)));
  }

  std::string path_;
  int fd_ = -1;
};

// A file in pieces: head (length and header), then one piece per array.
struct Pieces {
  std::string head;
  std::vector<Array> packed;
  std::vector<std::string_view> views() const {
    std::vector<std::string_view> v = {head};
    for (const Array& a : packed)
      v.emplace_back(static_cast<const char*>(a.raw()), a.num_bytes());
    return v;
  }
};

Pieces pieces_of(const Safetensors& content) {
  std::vector<std::pair<std::string, Array>> ordered(content.arrays.begin(),
                                                     content.arrays.end());
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return size_of(a.second.dtype()) > size_of(b.second.dtype());
  });
  Pieces p;
  json header = json::object();
  if (!content.metadata.empty()) header[kMetadata] = content.metadata;
  std::uint64_t at = 0;
  for (const auto& [name, a] : ordered) {
    BT_REQUIRE(name != kMetadata, "to_safetensors: '__metadata__' cannot name an array");
    const std::uint64_t end = at + a.num_bytes();
    header[name] = {{"dtype", type_name(a.dtype())},
                    {"shape", a.shape()},
                    {"data_offsets", {at, end}}};
    at = end;
    p.packed.push_back(a.contiguous());
  }
  std::string text = internal::dump_json("to_safetensors", header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  BT_REQUIRE(text.size() <= kMaxHeader,
             fmt::format("to_safetensors: a header of {} bytes is over the limit of {}",
                         text.size(), kMaxHeader));
  const std::uint64_t length = text.size();
  p.head.assign(reinterpret_cast<const char*>(&length), kLengthBytes);
  p.head += text;
  return p;
}

}  // namespace

Safetensors parse_safetensors(std::string_view bytes, const std::string& name) {
  return load(name, bytes.size(), [&](std::uint64_t offset, void* to, std::size_t n) {
    BT_INVARIANT(offset <= bytes.size() && n <= bytes.size() - offset);
    if (n > 0) std::memcpy(to, bytes.data() + offset, n);
  });
}

Safetensors read_safetensors(const std::string& path) {
  const OpenFile file(path);
  return load(path, file.size(), [&](std::uint64_t offset, void* to, std::size_t n) {
    file.read(offset, to, n);
  });
}

std::string to_safetensors(const Safetensors& content) {
  const Pieces p = pieces_of(content);
  std::string bytes;
  for (const std::string_view piece : p.views()) bytes += piece;
  return bytes;
}

void write_safetensors(const std::string& path, const Safetensors& content,
                       const AtomicFileOptions& options) {
  const Pieces p = pieces_of(content);
  write_file_atomically(path, p.views(), options);
}

}  // namespace braintrace
