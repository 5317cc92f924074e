#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runs/run_folder.h"

namespace millrace {

/// A curve of a chart.
struct ChartLine {
  std::string name;                                 ///< is shown where the pointer rests on it
  std::string color;                                ///< of CSS
  bool is_evaluation = false;                       ///< thick, with its points; else thin
  const std::vector<CurvePoint>* points = nullptr;  ///< outlive the chart
};

/// Draws curves over steps as SVG for an HTML page. A value that is not finite is a gap. Long curves are drawn by as
/// many points as the chart is wide. Empty when no curve has a value.
std::string CurveChart(const std::vector<ChartLine>& lines);

/// A text as HTML shows it, in an element or in quotes.
std::string EscapedForHtml(const std::string& text);

/// Round values from about `low` to about `high`, at most `most` of them, in rising order; `low` < `high`.
std::vector<double> AxisTicks(double low, double high, size_t most);

}  // namespace millrace
