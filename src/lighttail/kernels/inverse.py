"""Indices of many means at once, and the means that have given indices."""

from __future__ import annotations

import math
from typing import Any

from lighttail.kernels.build import Formula, kernel_maker

HALVINGS = 40


@kernel_maker
def inverse_kernel(index: Formula) -> Any:
    """kernel(params, clock, at, pulls, low, high, least, out): out[i, j] for at[i] and pulls[j].

    If low == high, out is the index of the mean at[i]. Otherwise out is the largest mean between low and high
    whose index is at most at[i], or infinity if every mean there has such an index. With `least`, out is the
    smallest mean whose index is at least at[i], or minus infinity if every mean has such an index. If no mean
    has such an index, out lies high - low beyond the end.
    """

    def kernel(
        params: Any, clock: Any, at: Any, pulls: Any, low: Any, high: Any, least: Any, out: Any
    ) -> None:
        beyond = high - low
        for j in range(pulls.size):
            n = pulls[j]
            for i in range(at.size):
                level = at[i]
                if beyond == 0.0:
                    out[i, j] = index(n, level, clock, *params)
                    continue
                lowest, highest = index(n, low, clock, *params), index(n, high, clock, *params)
                if lowest >= level if least else highest <= level:
                    out[i, j] = -math.inf if least else math.inf
                    continue
                if highest < level if least else lowest > level:
                    out[i, j] = high + beyond if least else low - beyond
                    continue
                a, b = low, high
                for _ in range(HALVINGS):
                    middle = 0.5 * (a + b)
                    value = index(n, middle, clock, *params)
                    if value < level if least else value <= level:
                        a = middle
                    else:
                        b = middle
                out[i, j] = b if least else a

    return kernel
