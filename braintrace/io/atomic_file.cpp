// SPDX-License-Identifier: Apache-2.0
#include "braintrace/io/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "braintrace/base/error.h"

namespace braintrace {
namespace {

namespace fs = std::filesystem;

// One replacement under way: owns the new file until it has its final name.
class Replacement {
 public:
  Replacement(std::string path, const AtomicFileOptions& options)
      : path_(std::move(path)), options_(options) {}
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  ~Replacement() {
    if (fd_ >= 0) ::close(fd_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }

  // Needs: `mode` of the file to replace, if there is one.
  void create(std::optional<mode_t> mode) {
    begin(FileStage::create);
    // Names of other writers, and of writers that were killed, are passed over.
    for (int n = 0; n < 10000 && fd_ < 0; ++n) {
      std::string name = fmt::format("{}.tmp-{}-{}", path_, ::getpid(), n);
      fd_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (fd_ >= 0) temporary_ = std::move(name);
      if (fd_ < 0 && errno != EEXIST) break;
    }
    if (fd_ < 0) fail(FileStage::create, errno);
    if (mode && ::fchmod(fd_, *mode) != 0) fail(FileStage::create, errno);
  }

  void write(std::string_view bytes) {
    begin(FileStage::write);
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(FileStage::write, errno);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  void sync() {
    begin(FileStage::sync_file);
    if (::fsync(fd_) != 0) fail(FileStage::sync_file, errno);
    if (::close(std::exchange(fd_, -1)) != 0) fail(FileStage::sync_file, errno);
  }

  void rename() {
    begin(FileStage::rename);
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
      fail(FileStage::rename, errno);
    temporary_.clear();
  }

  // Some file systems cannot sync a folder and say EINVAL: they have nothing to sync.
  void sync_directory() {
    begin(FileStage::sync_directory);
    const fs::path folder = fs::path(path_).parent_path();
    fd_ =
        ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd_ < 0) fail(FileStage::sync_directory, errno);
    if (::fsync(fd_) != 0 && errno != EINVAL) fail(FileStage::sync_directory, errno);
  }

 private:
  void begin(FileStage stage) const {
    const int error = options_.fault ? options_.fault(stage) : 0;
    if (error != 0) fail(stage, error);
  }
  [[noreturn]] void fail(FileStage stage, int error) const {
    throw UserError(
        ErrorKind::runtime,
        fmt::format("write_file_atomically: {}: stage {} failed: {}", path_,
                    to_string(stage), std::generic_category().message(error)));
  }

  std::string path_;
  const AtomicFileOptions& options_;
  std::string temporary_;
  int fd_ = -1;
};

// The path with links followed, so that the file a link names is replaced, not the link.
std::string followed(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error ? path : real.string();
}

// Permissions of the file that is there, or nullopt.
std::optional<mode_t> existing_mode(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  BT_REQUIRE(
      S_ISREG(info.st_mode),
      fmt::format("write_file_atomically: {} exists and is not a regular file", path));
  return info.st_mode & 07777;
}

}  // namespace

std::string_view to_string(FileStage stage) {
  switch (stage) {
    case FileStage::create:
      return "create";
    case FileStage::write:
      return "write";
    case FileStage::sync_file:
      return "sync_file";
    case FileStage::rename:
      return "rename";
    case FileStage::sync_directory:
      return "sync_directory";
  }
  return "?";
}

void write_file_atomically(const std::string& path,
                           std::span<const std::string_view> pieces,
                           const AtomicFileOptions& options) {
  BT_REQUIRE(!path.empty(), "write_file_atomically: the path is empty");
  const std::string target = followed(path);
  const std::optional<mode_t> mode = existing_mode(target);
  Replacement file(target, options);
  file.create(mode);
  for (const std::string_view piece : pieces) file.write(piece);
  file.sync();
  file.rename();
  file.sync_directory();
}

void write_file_atomically(const std::string& path, std::string_view content,
                           const AtomicFileOptions& options) {
  write_file_atomically(path, std::span(&content, 1), options);
}

}  // namespace braintrace
