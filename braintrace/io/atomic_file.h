// SPDX-License-Identifier: Apache-2.0
#pragma once
// Replaces a file as a whole: a reader, or a machine that stops at any moment, meets the
// old file or the new one, never a part of either.
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace braintrace {

// What happens, in this order. `write` comes once per piece.
enum class FileStage { create, write, sync_file, rename, sync_directory };
std::string_view to_string(FileStage stage);

struct AtomicFileOptions {
  // Asked before each stage; a number other than 0 is taken for the stage's errno. For
  // tests of what a full disk or a crash leaves behind.
  std::function<int(FileStage)> fault = {};
};

// Writes the pieces to a new file beside `path`, syncs it, renames it to `path`, syncs
// the folder. An existing file keeps its permissions; a link is followed. When a stage
// fails: UserError (runtime) naming path, stage and reason; the new file is removed, and
// `path` is as before (after a failed sync_directory: already the new one).
// UserError when `path` is a folder, a device or anything else but a regular file.
void write_file_atomically(const std::string& path,
                           std::span<const std::string_view> pieces,
                           const AtomicFileOptions& options = {});
void write_file_atomically(const std::string& path, std::string_view content,
                           const AtomicFileOptions& options = {});

}  // namespace braintrace
