#include "runs/curve_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "core/harmless_text.h"
#include "core/number_format.h"

namespace millrace {
namespace {

constexpr double kWidth = 640;
constexpr double kHeight = 300;
constexpr double kLeft = 72;
constexpr double kRight = 14;
constexpr double kTop = 12;
constexpr double kBottom = 34;

/// The smallest and the largest of what was added.
struct Span {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  /// With room for a line where all values are one.
  void Widen() {
    if (low < high) return;
    const double room = low == 0 ? 1 : std::abs(low) * 0.05;
    low -= room;
    high += room;
  }
};

std::string Coordinate(double value) { return FixedNumber(value, 1); }

std::string TickText(double value, double step) {
  const double size = std::max(std::abs(value), step);
  if (size >= 1e15 || step < 1e-9) return GeneralNumber(value, 3);
  const int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  std::string shown = FixedNumber(value, digits);
  // Groups of three digits: "120 000".
  const size_t point = std::min(shown.find('.'), shown.size());
  for (size_t place = point; place > 3 + (shown[0] == '-' ? 1 : 0); place -= 3) shown.insert(place - 3, "&#8239;");
  return shown;
}

/// Those of the points that a chart of `most` columns tells apart: of each column the lowest and the highest, in their
/// order.
std::vector<CurvePoint> Thinned(const std::vector<CurvePoint>& points, size_t most) {
  if (points.size() <= 2 * most) return points;
  std::vector<CurvePoint> thin;
  for (size_t column = 0; column < most; ++column) {
    const size_t begin = column * points.size() / most;
    const size_t end = (column + 1) * points.size() / most;
    size_t low = begin;
    size_t high = begin;
    bool has_gap = false;
    for (size_t i = begin; i < end; ++i) {
      has_gap |= !std::isfinite(points[i].value);
      if (!(points[i].value >= points[low].value)) low = i;
      if (!(points[i].value <= points[high].value)) high = i;
    }
    thin.push_back(points[std::min(low, high)]);
    if (low != high) thin.push_back(points[std::max(low, high)]);
    if (has_gap) thin.push_back({points[end - 1].step, std::numeric_limits<double>::quiet_NaN()});
  }
  return thin;
}

class Chart {
 public:
  Chart(const Span& steps, const Span& values) : steps_(steps), values_(values) {}

  std::string Axes() const {
    std::string svg;
    constexpr size_t kMostTicks = 6;
    const std::vector<double> across = AxisTicks(steps_.low, steps_.high, kMostTicks);
    const std::vector<double> up = AxisTicks(values_.low, values_.high, kMostTicks);
    for (const double tick : up) {
      const std::string y = Coordinate(Y(tick));
      svg += "<line class=\"grid\" x1=\"" + Coordinate(kLeft) + "\" x2=\"" + Coordinate(kWidth - kRight) + "\" y1=\"" +
             y + "\" y2=\"" + y + "\"/><text class=\"up\" x=\"" + Coordinate(kLeft - 6) + "\" y=\"" + y + "\">" +
             TickText(tick, up.size() > 1 ? up[1] - up[0] : 1) + "</text>\n";
    }
    for (const double tick : across) {
      svg += "<text class=\"across\" x=\"" + Coordinate(X(tick)) + "\" y=\"" + Coordinate(kHeight - kBottom + 16) +
             "\">" + TickText(tick, across.size() > 1 ? across[1] - across[0] : 1) + "</text>\n";
    }
    return svg + "<text class=\"across\" x=\"" + Coordinate((kLeft + kWidth - kRight) / 2) + "\" y=\"" +
           Coordinate(kHeight - 3) + "\">steps</text>\n";
  }

  std::string Line(const ChartLine& line) const {
    std::string path;
    std::string dots;
    bool is_open = false;
    for (const CurvePoint& point : Thinned(*line.points, static_cast<size_t>(kWidth))) {
      if (!std::isfinite(point.value)) {
        is_open = false;
        continue;
      }
      const std::string x = Coordinate(X(static_cast<double>(point.step)));
      const std::string y = Coordinate(Y(point.value));
      path += (is_open ? "L" : "M") + x + " " + y;
      is_open = true;
      if (line.is_evaluation) dots += "<circle cx=\"" + x + "\" cy=\"" + y + "\" r=\"2.6\"/>";
    }
    // A point without neighbours is drawn by the round ends of a line of no length.
    return "<g class=\"" + std::string(line.is_evaluation ? "evaluation" : "training") +
           "\" style=\"color:" + line.color + "\"><title>" + EscapedForHtml(line.name) + "</title><path d=\"" + path +
           "\"/>" + dots + "</g>\n";
  }

 private:
  double X(double step) const {
    return kLeft + (step - steps_.low) / (steps_.high - steps_.low) * (kWidth - kLeft - kRight);
  }
  double Y(double value) const {
    return kHeight - kBottom - (value - values_.low) / (values_.high - values_.low) * (kHeight - kTop - kBottom);
  }

  Span steps_;
  Span values_;
};

}  // namespace

std::string EscapedForHtml(const std::string& text) {
  std::string out;
  for (const char c : Harmless(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::vector<double> AxisTicks(double low, double high, size_t most) {
  const double rough = (high - low) / static_cast<double>(most);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  // Multiples, so that rounding does not add up; the small part takes what is a hair outside.
  const double first = std::ceil(low / step - 1e-9);
  for (double n = first; n * step <= high + step * 1e-9 && ticks.size() <= most; ++n) ticks.push_back(n * step + 0.0);
  return ticks;
}

std::string CurveChart(const std::vector<ChartLine>& lines) {
  Span steps;
  Span values;
  for (const ChartLine& line : lines) {
    for (const CurvePoint& point : *line.points) {
      if (!std::isfinite(point.value)) continue;
      steps.Add(static_cast<double>(point.step));
      values.Add(point.value);
    }
  }
  if (steps.low > steps.high) return "";
  steps.Widen();
  values.Widen();
  const Chart chart(steps, values);
  std::string svg =
      "<svg viewBox=\"0 0 " + Coordinate(kWidth) + " " + Coordinate(kHeight) + "\" role=\"img\">\n" + chart.Axes();
  // Evaluations lie above training.
  for (const bool is_evaluation : {false, true}) {
    for (const ChartLine& line : lines) {
      if (line.is_evaluation == is_evaluation) svg += chart.Line(line);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace millrace
