"""A Gaussian random walk against a boundary: the chance that it stays above, and that it has crossed.

The density of the walk's height above the boundary is carried from step to step on a uniform grid.
The step is a convolution with the normal density, exact to rounding for a smooth density; at the
boundary, where the density is cut off, Gregory's end corrections keep the quadrature accurate.
All terms are positive, so tiny probabilities keep their relative accuracy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from lighttail.kernels.build import compiler

SPACING = 0.25  # of the grid, in standard deviations of a step
REACH = 8.0  # standard deviations that a single step is followed, beyond its drift
GREGORY = (1 / 12, 1 / 24, 19 / 720, 3 / 160, 863 / 60480, 275 / 24192, 33953 / 3628800)
NOTHING = 1e-120  # densities below this share of the highest are dropped
SAFE = 1e-10  # share of the crossings so far that dropped walks may still add
REST = 8  # steps between two looks for walks that will never cross


def end_weights() -> npt.NDArray[np.float64]:
    """Weights of the first points in a sum that begins at the end of the range."""
    weights = np.ones(len(GREGORY) + 1)
    weights[0] = 0.5
    difference = np.array([1.0])
    for order, coefficient in enumerate(GREGORY, start=1):
        difference = np.convolve(difference, [-1.0, 1.0])
        weights[: order + 1] += (-1) ** (order + 1) * coefficient * difference
    return weights


@compiler()
def walk(boundary: Any, drift: Any, reach: Any, spacing: Any, ends: Any, above: Any, crossed: Any) -> None:
    """Fill above[j], the chance to be above the boundary at steps 1..j+1, and crossed[j] = 1 - above[j].

    boundary: heights at steps 1, 2, ..., in standard deviations of a step. drift[j]: the least fall
    of the boundary in any later step; a walk at height y crosses with chance exp(-2 drift y) at most.
    reach: standard deviations that a single step is followed.
    """
    steps = boundary.size
    room = int((12.0 * math.sqrt(steps) + 40.0 + max(0.0, -boundary.min())) / spacing)
    density = np.zeros(room)
    weighted = np.zeros(room)
    following = np.zeros(room)
    width = int(reach / spacing) + 1
    low = max(0, int((-boundary[0] - reach - 4.0) / spacing))
    high = min(room, max(low + 2, int((-boundary[0] + reach + 4.0) / spacing)))
    root = math.sqrt(2.0 * math.pi)
    for i in range(low, high):
        y = i * spacing + boundary[0]
        density[i] = math.exp(-0.5 * y * y) / root
    lost = 0.5 * math.erfc(-boundary[0] / math.sqrt(2.0))
    safe = 0.0
    crossed[0] = lost
    above[0] = 0.5 * math.erfc(boundary[0] / math.sqrt(2.0))
    for step in range(1, steps):
        fall = boundary[step - 1] - boundary[step]
        for i in range(low, high):
            weighted[i] = density[i] * spacing
        if low == 0:
            for i in range(min(ends.size, high)):
                weighted[i] *= ends[i]
        for i in range(low, min(high, int((reach + 2.0 - fall) / spacing) + 2)):
            lost += weighted[i] * 0.5 * math.erfc((i * spacing + fall) / math.sqrt(2.0))
        centre = math.floor(fall / spacing)
        first = max(0, low + centre - width)
        last = min(room, high + centre + width + 1)
        for i in range(first, last):
            following[i] = 0.0
        for shift in range(centre - width, centre + width + 2):
            z = shift * spacing - fall
            share = math.exp(-0.5 * z * z) / root
            begin, end = max(first, low + shift), min(last, high + shift)
            for i in range(begin, end):
                following[i] += share * weighted[i - shift]
        density, following = following, density
        low, high = first, last
        most = 0.0
        for i in range(low, high):
            most = max(most, density[i])
        while high > low + 1 and density[high - 1] <= NOTHING * most:
            high -= 1
        while low < high - 1 and density[low] <= NOTHING * most:
            low += 1
        if drift[step] > 0.0 and step % REST == 0:
            mass = 0.0
            while high > max(low, ends.size) + 1:
                mass += density[high - 1] * spacing
                y = (high - 1) * spacing
                if mass * math.exp(-2.0 * drift[step] * y) > SAFE * lost:
                    break
                safe += density[high - 1] * spacing
                high -= 1
        left = safe
        for i in range(low, high):
            left += density[i] * spacing * (ends[i] if low == 0 and i < ends.size else 1.0)
        above[step] = left
        crossed[step] = lost
