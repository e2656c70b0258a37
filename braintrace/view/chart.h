// SPDX-License-Identifier: Apache-2.0
#pragma once
// Curves and rasters as SVG. The pictures carry their own colours, light and dark, and
// may stand in a file of their own or inside a page.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "braintrace/base/run_log.h"

namespace braintrace {

struct ChartSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x ascending; not finite: left out
};

struct ChartLevel {
  std::string name;
  double value = 0;
};

struct ChartOptions {
  std::string title, x_name, y_name;
  bool log_y = false;                    // only points above 0 are drawn
  bool percent = false;                  // 0.5 is written 50 %
  std::optional<ChartLevel> level = {};  // a dashed line
  double width = 760, height = 300;
  std::size_t max_points = 400;  // of a series; more are averaged
};

std::string line_chart(const std::vector<ChartSeries>& series,
                       const ChartOptions& options = {});
// A dot per spike: time to the right, units downward.
std::string raster_chart(const SpikeRaster& raster, double width = 760);

}  // namespace braintrace
