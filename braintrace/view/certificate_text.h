// SPDX-License-Identifier: Apache-2.0
#pragma once
// A certificate as a table for people.
#include <string>

#include "braintrace/base/certificate.h"

namespace braintrace {

std::string to_text(const CertificateData& c);

}  // namespace braintrace
