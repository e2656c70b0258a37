// SPDX-License-Identifier: Apache-2.0
#pragma once
// Named arrays in the safetensors format (docs/checkpoints.md): 8 bytes with the length
// of a JSON header, the header, the packed elements. Other tools read and write the same.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "braintrace/array/array.h"
#include "braintrace/io/atomic_file.h"

namespace braintrace {

struct Safetensors {
  std::map<std::string, Array> arrays;
  std::map<std::string, std::string> metadata;
};

// F32, F64, I32, BOOL and BF16. Every other element type is refused by its name.
// UserError, naming `name` and what is wrong, on anything but a well-formed file: header
// longer than the file, bad JSON or UTF-8, a name twice, shape and length that disagree,
// elements that overlap, leave a gap or end elsewhere than the file, booleans that are
// neither 0 nor 1. Allocates for elements only what the file really holds.
Safetensors parse_safetensors(std::string_view bytes,
                              const std::string& name = "safetensors");
Safetensors read_safetensors(const std::string& path);

// Largest elements first, then by name, so that elements are aligned. UserError on a name
// or text that is not UTF-8, and on an array called "__metadata__".
std::string to_safetensors(const Safetensors& content);
void write_safetensors(const std::string& path, const Safetensors& content,
                       const AtomicFileOptions& options = {});

}  // namespace braintrace
