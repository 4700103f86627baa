"""Indices of many means at once, and the means that have given indices."""

from __future__ import annotations

import math
from typing import Any

from lighttail.kernels.build import Formula, compiler, prepare

HALVINGS = 40


def inverse_kernel(index: Formula) -> Any:
    """kernel(params, clock, at, pulls, low, high, least, out): out[i, j] for at[i] and pulls[j].

    low == high: the index of the mean at[i]. Otherwise the largest mean between them whose index is at most
    at[i], infinite if that is so of all; or with `least` the smallest whose index is at least at[i], minus
    infinite if that is so of all. Where there is none it is one unit beyond the end.
    """
    index = prepare(index)

    @compiler(index)
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
                if least:
                    if index(n, low, clock, *params) >= level:
                        out[i, j] = -math.inf
                        continue
                    if index(n, high, clock, *params) < level:
                        out[i, j] = high + beyond
                        continue
                else:
                    if index(n, high, clock, *params) <= level:
                        out[i, j] = math.inf
                        continue
                    if index(n, low, clock, *params) > level:
                        out[i, j] = low - beyond
                        continue
                a, b = low, high
                for _ in range(HALVINGS):
                    middle = 0.5 * (a + b)
                    value = index(n, middle, clock, *params)
                    up = value < level if least else value <= level
                    if up:
                        a = middle
                    else:
                        b = middle
                out[i, j] = b if least else a

    return kernel
