// SPDX-License-Identifier: Apache-2.0
// What is left of a file when writing it fails or the process is killed.
#include "braintrace/io/atomic_file.h"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "braintrace/base/error.h"
#include "braintrace/testing/temporary_folder.h"

namespace atomic_file_test {

using namespace braintrace;
using braintrace::testing::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

constexpr FileStage kStages[] = {FileStage::create, FileStage::write,
                                 FileStage::sync_file, FileStage::rename,
                                 FileStage::sync_directory};

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::size_t num_files(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator{}));
}

bool done_at(FileStage stage) { return stage == FileStage::sync_directory; }

}  // namespace

TEST_CASE("a file is written and replaced as a whole") {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  write_file_atomically(path, "old");
  CHECK(content_of(path) == "old");
  const std::string_view pieces[] = {"n", "", "ew"};
  write_file_atomically(path, pieces);
  CHECK(content_of(path) == "new");
  CHECK(num_files(folder.path()) == 1);
}

TEST_CASE("a failure at any stage keeps the old file and leaves nothing else") {
  for (const FileStage stage : kStages) {
    CAPTURE(to_string(stage));
    const TemporaryFolder folder;
    const std::string path = folder / "file";
    write_file_atomically(path, "old");
    const AtomicFileOptions full = {
        .fault = [&](FileStage s) { return s == stage ? ENOSPC : 0; }};
    std::string message;
    try {
      write_file_atomically(path, "new", full);
    } catch (const UserError& e) {
      message = e.what();
      CHECK(e.kind() == ErrorKind::runtime);
    }
    CHECK(message.find(path) != std::string::npos);
    CHECK(message.find(to_string(stage)) != std::string::npos);
    CHECK(message.find("No space left") != std::string::npos);
    CHECK(content_of(path) == (done_at(stage) ? "new" : "old"));
    CHECK(num_files(folder.path()) == 1);
  }
}

TEST_CASE("a process killed at any stage leaves the old file or the new one") {
  for (const FileStage stage : kStages) {
    CAPTURE(to_string(stage));
    const TemporaryFolder folder;
    const std::string path = folder / "file";
    write_file_atomically(path, "old");
    const pid_t child = ::fork();
    if (child == 0) {
      write_file_atomically(path, "new", {.fault = [&](FileStage s) {
                              if (s == stage) ::kill(::getpid(), SIGKILL);
                              return 0;
                            }});
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(content_of(path) == (done_at(stage) ? "new" : "old"));
    // What the killed process left behind does not stop the next one.
    write_file_atomically(path, "next");
    CHECK(content_of(path) == "next");
  }
}

TEST_CASE("a replaced file keeps its permissions and a link stays a link") {
  const TemporaryFolder folder;
  const std::string path = folder / "file", link = folder / "link";
  write_file_atomically(path, "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("file", link);
  write_file_atomically(link, "new");
  CHECK(fs::is_symlink(link));
  CHECK(content_of(path) == "new");
  CHECK(fs::status(path).permissions() ==
        (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("only regular files are replaced") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(write_file_atomically(folder.path(), "x"), UserError);
  CHECK_THROWS_AS(write_file_atomically("/dev/null", "x"), UserError);
  CHECK_THROWS_AS(write_file_atomically("", "x"), UserError);
  CHECK_THROWS_AS(write_file_atomically(folder / "none/file", "x"), UserError);
  CHECK(fs::is_character_file("/dev/null"));
}

}  // namespace atomic_file_test
