// SPDX-License-Identifier: Apache-2.0
#pragma once
// NumPy's array files: .npy (one array) and .npz (a zip of them, stored or deflated).
#include <map>
#include <string>
#include <string_view>

#include "braintrace/array/array.h"

namespace braintrace {

// Versions 1 to 3, C or Fortran order, either byte order. Floats keep their width (f2
// becomes f32), integers become i32 (UserError when a value does not fit), booleans stay.
// UserError on anything malformed, naming `name`.
Array parse_npy(std::string_view bytes, const std::string& name = "npy");
std::map<std::string, Array> parse_npz(std::string_view bytes,
                                       const std::string& name = "npz");

Array read_npy(const std::string& path);
std::map<std::string, Array> read_npz(const std::string& path);

}  // namespace braintrace
