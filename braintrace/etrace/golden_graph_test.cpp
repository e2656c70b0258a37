// SPDX-License-Identifier: Apache-2.0
// The compiler's graph against recorded graphs of braintrace 0.2.6.
#include "braintrace/testing/golden_graph.h"

#include <filesystem>

#include <doctest/doctest.h>

#include "braintrace/train/csv.h"

using namespace braintrace;

TEST_CASE("compat compiles every recorded model to the recorded graph") {
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BT_TESTS_DIR "/goldens")) {
    if (entry.path().extension() != ".json") continue;
    ++seen;
    INFO(entry.path().filename().string());
    try {
      CHECK(testing::graph_difference(read_file(entry.path().string())) == "");
    } catch (const std::exception& e) {
      FAIL_CHECK(e.what());
    }
  }
  CHECK(seen >= 100);
}
