"""Curves over steps as SVG."""

import html
import math
from dataclasses import dataclass

from console import harmless
from run_folder import Curve

_WIDTH = 640
_HEIGHT = 300
_LEFT = 72
_RIGHT = 14
_TOP = 12
_BOTTOM = 34
_MOST_TICKS = 6


@dataclass
class Line:
    """A curve of a chart: an evaluation is thick and shows its points, training is thin."""

    name: str  #: shown where the pointer rests on it
    color: str  #: of CSS
    is_evaluation: bool
    points: Curve


def escaped(text):
    """The text for an element or an attribute of HTML."""
    return html.escape(harmless(text)).replace("&#x27;", "&#39;")


def axis_ticks(low, high, most=_MOST_TICKS):
    """At most `most` round values from about `low` to about `high`, rising."""
    rough = (high - low) / most
    if not 0 < rough < math.inf:
        return []
    power = math.pow(10, math.floor(math.log10(rough)))
    if power == 0:
        return []
    step = next((factor * power for factor in (1, 2, 5) if factor * power >= rough), 10 * power)
    # Multiples, because sums round; values that are a hair outside still count.
    first = math.ceil(low / step - 1e-9)
    ticks = []
    while len(ticks) <= most and (first + len(ticks)) * step <= high + step * 1e-9:
        ticks.append((first + len(ticks)) * step + 0.0)
    return ticks


def _tick_text(value, ticks):
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1
    if max(abs(value), step) >= 1e15 or step < 1e-9:
        return f"{value:.3g}"
    return f"{value:,.{max(0, math.ceil(-math.log10(step) - 1e-9))}f}".replace(",", "&#8239;")


def _thinned(points, most):
    """The points that a chart of `most` columns can show: the lowest and the highest of each column."""
    if len(points) <= 2 * most:
        return points
    thin = []
    for column in range(most):
        begin = column * len(points) // most
        end = (column + 1) * len(points) // most
        finite = [i for i in range(begin, end) if math.isfinite(points[i][1])]
        if finite:
            extremes = {min(finite, key=lambda i: points[i][1]), max(finite, key=lambda i: points[i][1])}
            thin += [points[i] for i in sorted(extremes)]
        if len(finite) < end - begin:
            thin.append((points[end - 1][0], math.nan))
    return thin


class _Axis:
    """Maps values to places between `begin` and `end`."""

    def __init__(self, values, begin, end):
        self.low, self.high = min(values), max(values)
        if self.low == self.high:
            room = abs(self.low) * 0.05 or 1
            self.low -= room
            self.high += room
        self.begin, self.end = begin, end
        self.ticks = axis_ticks(self.low, self.high)

    def __call__(self, value):
        return f"{self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin):.1f}"


def _axes(x, y):
    svg = ""
    for tick in y.ticks:
        svg += (f'<line class="grid" x1="{_LEFT:.1f}" x2="{_WIDTH - _RIGHT:.1f}" y1="{y(tick)}" y2="{y(tick)}"/>'
                f'<text class="up" x="{_LEFT - 6:.1f}" y="{y(tick)}">{_tick_text(tick, y.ticks)}</text>\n')
    for tick in x.ticks:
        svg += f'<text class="across" x="{x(tick)}" y="{_HEIGHT - _BOTTOM + 16:.1f}">{_tick_text(tick, x.ticks)}</text>\n'
    return svg + f'<text class="across" x="{(_LEFT + _WIDTH - _RIGHT) / 2:.1f}" y="{_HEIGHT - 3:.1f}">steps</text>\n'


def _curve(line, x, y):
    path = dots = ""
    is_open = False
    for step, value in _thinned(line.points, _WIDTH):
        if not math.isfinite(value):
            is_open = False
            continue
        path += f"{'L' if is_open else 'M'}{x(step)} {y(value)}"
        is_open = True
        if line.is_evaluation:
            dots += f'<circle cx="{x(step)}" cy="{y(value)}" r="2.6"/>'
    # The round ends of a line without length draw a point without neighbors.
    return (f'<g class="{"evaluation" if line.is_evaluation else "training"}" style="color:{line.color}">'
            f'<title>{escaped(line.name)}</title><path d="{path}"/>{dots}</g>\n')


def curve_chart(lines):
    """The chart; a value that is not finite is a gap. Empty if no curve has a value."""
    points = [point for line in lines for point in line.points if math.isfinite(point[1])]
    if not points:
        return ""
    x = _Axis([step for step, _ in points], _LEFT, _WIDTH - _RIGHT)
    y = _Axis([value for _, value in points], _HEIGHT - _BOTTOM, _TOP)
    curves = [_curve(line, x, y) for line in sorted(lines, key=lambda line: line.is_evaluation)]  # evaluations on top
    return f'<svg viewBox="0 0 {_WIDTH:.1f} {_HEIGHT:.1f}" role="img">\n{_axes(x, y)}{"".join(curves)}</svg>\n'
