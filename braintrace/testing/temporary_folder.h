// SPDX-License-Identifier: Apache-2.0
#pragma once
// A new, empty folder that goes away with its object.
#include <string>

namespace braintrace::testing {

class TemporaryFolder {
 public:
  TemporaryFolder();  // UserError (runtime) when the system refuses
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace braintrace::testing
