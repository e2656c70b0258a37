// SPDX-License-Identifier: Apache-2.0
#include "braintrace/view/chart.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "braintrace/view/html_impl.h"

namespace braintrace {
namespace {

using internal::html_escape;

constexpr std::size_t kColours = 8;
constexpr const char* kStyle =
    "<style>.chart{font:12px system-ui,\"DejaVu Sans\",sans-serif}"
    ".chart text{fill:#59636e}.chart .title{fill:#1f2328;font-size:13px;font-weight:600}"
    ".chart .grid{stroke:#d1d9e0;stroke-width:1}.chart .level{stroke:#cf222e;"
    "stroke-width:1.3;stroke-dasharray:5 4}.chart .level-name{fill:#cf222e}"
    ".chart polyline{fill:none;stroke-width:1.8;stroke-linejoin:round}"
    ".chart .spikes{fill:#0969da}.chart .paper{fill:#ffffff}"
    ".chart .s0{stroke:#0969da}.chart .s1{stroke:#bc4c00}.chart .s2{stroke:#1a7f37}"
    ".chart .s3{stroke:#8250df}.chart .s4{stroke:#bf3989}.chart .s5{stroke:#9a6700}"
    ".chart .s6{stroke:#1b7c83}.chart .s7{stroke:#59636e}"
    "@media (prefers-color-scheme:dark){.chart text{fill:#9198a1}"
    ".chart .title{fill:#f0f6fc}.chart .grid{stroke:#3d444d}.chart .paper{fill:#151b23}"
    ".chart .level{stroke:#ff7b72}.chart .level-name{fill:#ff7b72}"
    ".chart .spikes{fill:#58a6ff}.chart .s0{stroke:#58a6ff}.chart .s1{stroke:#f0883e}"
    ".chart .s2{stroke:#56d364}.chart .s3{stroke:#d2a8ff}.chart .s4{stroke:#f778ba}"
    ".chart .s5{stroke:#e3b341}.chart .s6{stroke:#39c5cf}.chart .s7{stroke:#9198a1}}"
    "</style>";

struct Span {
  double low = 0, high = 1;
  double share(double v) const { return (v - low) / (high - low); }
};

struct Frame {
  double left = 62, right = 14, top = 30, bottom = 40;
  double width, height;
  Span x, y;
  double px(double v) const { return left + x.share(v) * (width - left - right); }
  double py(double v) const {
    return height - bottom - y.share(v) * (height - top - bottom);
  }
};

Span widened(Span s) {
  if (s.high > s.low) return s;
  const double pad = s.low == 0 ? 1 : std::abs(s.low) * 0.1;
  return {s.low - pad, s.high + pad};
}

// A round step that gives about five marks.
std::vector<double> marks(const Span& s) {
  const double rough = (s.high - s.low) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double m : {1.0, 2.0, 5.0})
    if (m * power >= rough) {
      step = m * power;
      break;
    }
  std::vector<double> out;
  for (double v = std::ceil(s.low / step - 1e-9) * step; v <= s.high + 1e-9 * step;
       v += step)
    out.push_back(std::abs(v) < 1e-9 * step ? 0 : v);
  return out;
}

// Of an axis of powers of ten: 1, 2, 5, 10, ...; round values where it is short, some of
// the powers where it is long.
std::vector<double> log_marks(const Span& s) {
  std::vector<double> out;
  const double decades = s.high - s.low;
  if (decades < 0.7) {
    for (const double v : marks({std::pow(10, s.low), std::pow(10, s.high)}))
      out.push_back(std::log10(v));
    return out;
  }
  const std::vector<double> digits =
      decades <= 2.5 ? std::vector<double>{1, 2, 5} : std::vector<double>{1};
  const double stride = std::max(std::ceil(decades / 6), 1.0);
  for (double power = std::floor(s.low); power <= s.high; power += stride)
    for (const double d : digits) {
      const double v = power + std::log10(d);
      if (v >= s.low - 1e-9 && v <= s.high + 1e-9) out.push_back(v);
    }
  return out;
}

std::vector<std::pair<double, double>> thinned(
    const std::vector<std::pair<double, double>>& points, const ChartOptions& o) {
  std::vector<std::pair<double, double>> kept;
  for (const auto& [x, y] : points) {
    if (!std::isfinite(x) || !std::isfinite(y) || (o.log_y && y <= 0)) continue;
    kept.emplace_back(x, o.log_y ? std::log10(y) : y);
  }
  const std::size_t n = std::min(kept.size(), std::max<std::size_t>(o.max_points, 2));
  std::vector<std::pair<double, double>> out;
  for (std::size_t c = 0; c < n; ++c) {
    const std::size_t from = c * kept.size() / n, to = (c + 1) * kept.size() / n;
    double x = 0, y = 0;
    for (std::size_t i = from; i < to; ++i) {
      x += kept[i].first;
      y += kept[i].second;
    }
    out.emplace_back(x / static_cast<double>(to - from),
                     y / static_cast<double>(to - from));
  }
  return out;
}

std::string y_text(double v, const ChartOptions& o) {
  if (o.log_y) return fmt::format("{:.3g}", std::pow(10, v));
  return o.percent ? fmt::format("{:.3g} %", 100 * v) : fmt::format("{:.4g}", v);
}

std::string opening(double width, double height, const std::string& title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {0} {1}\" "
      "width=\"{0}\" height=\"{1}\" role=\"img\" aria-label=\"{2}\">{3}<rect "
      "class=\"paper\" width=\"{0}\" height=\"{1}\" rx=\"6\"/><text class=\"title\" "
      "x=\"14\" y=\"19\">{2}</text>\n",
      width, height, html_escape(title), kStyle);
}

std::string grid(const Frame& f, const ChartOptions& o) {
  std::string text;
  for (const double v : (o.log_y ? log_marks(f.y) : marks(f.y)))
    text += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        f.left, f.width - f.right, f.py(v), f.py(v), f.left - 6, f.py(v) + 4,
        y_text(v, o));
  for (const double v : marks(f.x))
    text += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.6g}</text>\n", f.px(v),
        f.height - f.bottom + 16, v);
  return text +
         fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                     (f.left + f.width - f.right) / 2, f.height - 6,
                     html_escape(o.x_name));
}

std::string level_line(const Frame& f, const ChartOptions& o) {
  if (!o.level || (o.log_y && o.level->value <= 0)) return "";
  const double y = f.py(o.log_y ? std::log10(o.level->value) : o.level->value);
  return fmt::format(
      "<line class=\"level\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
      "<text class=\"level-name\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}"
      "</text>\n",
      f.left, f.width - f.right, y, y, f.width - f.right - 4, y - 5,
      html_escape(o.level->name));
}

// Names with their colours, from the right end of the head line.
std::string legend(const std::vector<ChartSeries>& series, const Frame& f) {
  if (series.size() < 2) return "";
  std::string text;
  double x = f.width - f.right;
  for (std::size_t i = series.size(); i-- > 0;) {
    x -= 7.2 * static_cast<double>(series[i].name.size()) + 34;
    text += fmt::format(
        "<polyline class=\"s{}\" points=\"{:.1f},15 {:.1f},15\"/><text x=\"{:.1f}\" "
        "y=\"19\">{}</text>\n",
        i % kColours, x, x + 20, x + 25, html_escape(series[i].name));
  }
  return text;
}

}  // namespace

std::string line_chart(const std::vector<ChartSeries>& series, const ChartOptions& o) {
  Frame f{.width = o.width, .height = o.height, .x = {}, .y = {}};
  std::vector<std::vector<std::pair<double, double>>> lines;
  constexpr double far = 1e300;
  Span x{far, -far}, y{far, -far};
  const auto include = [](Span& s, double v) {
    s = {std::min(s.low, v), std::max(s.high, v)};
  };
  for (const ChartSeries& s : series) {
    lines.push_back(thinned(s.points, o));
    for (const auto& [px, py] : lines.back()) {
      include(x, px);
      include(y, py);
    }
  }
  const std::string head =
      opening(o.width, o.height, o.title.empty() ? o.y_name : o.title);
  if (x.low > x.high)
    return head + "<text x=\"14\" y=\"44\">nothing to draw</text></svg>\n";
  if (o.level && (!o.log_y || o.level->value > 0))
    include(y, o.log_y ? std::log10(o.level->value) : o.level->value);
  if (!o.log_y) include(y, 0);
  f.x = widened(x);
  f.y = widened(y);
  std::string text = head + grid(f, o) + level_line(f, o);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string points;
    for (const auto& [px, py] : lines[i])
      points += fmt::format("{:.1f},{:.1f} ", f.px(px), f.py(py));
    text += fmt::format(
        "<polyline class=\"s{}\" points=\"{}\"><title>{}</title>"
        "</polyline>\n",
        i % kColours, points, html_escape(series[i].name));
  }
  return text + legend(series, f) + "</svg>\n";
}

std::string raster_chart(const SpikeRaster& r, double width) {
  constexpr double left = 62, right = 14, top = 30, bottom = 40;
  const double units = static_cast<double>(std::max<std::int64_t>(r.units, 1));
  const double steps = static_cast<double>(std::max<std::int64_t>(r.steps, 1));
  const double row = std::clamp(320 / units, 2.0, 12.0);
  const double height = top + bottom + row * units;
  const double step = (width - left - right) / steps;
  std::string text = opening(width, height, "spikes of " + r.population + ", one sample");
  const double floor = top + row * units + 2;
  text += fmt::format(
      "<polyline class=\"grid\" points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\"/>"
      "<g class=\"spikes\">\n",
      left - 2, top - 2, left - 2, floor, width - right, floor);
  for (const auto& [t, u] : r.spikes)
    text += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.1f}\"/>\n",
        left + step * static_cast<double>(t), top + row * static_cast<double>(u),
        std::clamp(step - 0.5, 1.0, 6.0), std::max(row - 0.6, 1.2));
  return text + fmt::format(
                    "</g><text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">unit 0"
                    "</text><text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>"
                    "<text x=\"{:.1f}\" y=\"{:.1f}\">step 0</text><text x=\"{:.1f}\" "
                    "y=\"{:.1f}\" text-anchor=\"end\">{}</text></svg>\n",
                    left - 6, top + 10, left - 6, top + row * units, r.units - 1, left,
                    height - bottom + 18, width - right, height - bottom + 18,
                    r.steps - 1);
}

}  // namespace braintrace
