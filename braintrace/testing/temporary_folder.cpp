// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/temporary_folder.h"

#include <filesystem>
#include <system_error>

#include <stdlib.h>

#include "braintrace/base/error.h"

namespace braintrace::testing {

TemporaryFolder::TemporaryFolder() {
  path_ = (std::filesystem::temp_directory_path() / "braintrace-XXXXXX").string();
  BT_REQUIRE_KIND(::mkdtemp(path_.data()) != nullptr, ErrorKind::runtime,
                  "TemporaryFolder: cannot create " + path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace braintrace::testing
