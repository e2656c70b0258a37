// SPDX-License-Identifier: Apache-2.0
#include "braintrace/base/certificate.h"

#include <algorithm>

namespace braintrace {

bool CertificateData::holds(double tolerance) const {
  return std::all_of(rows.begin(), rows.end(), [&](const CertificateRow& r) {
    return r.verdict != "refused" && (r.verdict != "exact" || r.error <= tolerance);
  });
}

}  // namespace braintrace
