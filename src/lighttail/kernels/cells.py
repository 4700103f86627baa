"""Bernoulli arms: the pulls of an arm while the level falls from one value of the index to the next.

A cell is (n pulls, s successes); every arm has the same index in a cell. When the level falls past a value of
the index, the cells with this value change from "at or below the level" to "above the level", and the paths
that ended in these cells continue. Only positive numbers are added.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lighttail.kernels.build import compiler

NOTHING = 1e-290  # smaller chances are dropped


@compiler()
def lower(
    p: Any, pulls: Any, successes: Any, starts: Any, rounds: Any, arrived: Any, least: Any,
    below: Any, waiting: Any, gone: Any, running: Any,
) -> None:  # fmt: skip
    """Lower the level past some values of the index.

    pulls, successes: the cells, by falling value, then pulls, then successes. starts[v]: the first cell of
    value v. rounds[v]: the first row of value v in `waiting`, `gone` and `running`, which have one row for
    each time that an arm may come to this value. arrived[n, s]: for a cell at or below the level, the chance
    to come to the cell from cells above. least[n]: the fewest successes above the level. The function fills
    in below[v, n] and the rows of `waiting`, `gone` and `running`, which `merge` explains.
    """
    size = arrived.shape[0]  # rows 0 to the most pulls
    alive, next_alive = np.zeros(size + 1), np.zeros(size + 1)
    new_least = least.copy()
    first_cell = np.full(size, -1)
    standing = np.zeros(size)
    for n in range(1, size):
        for s in range(least[n]):
            standing[n] += arrived[n, s]
    for v in range(starts.size - 1):
        begin, end = starts[v], starts[v + 1]
        for c in range(end - 1, begin - 1, -1):  # the fewest successes of a row come last
            new_least[pulls[c]] = successes[c]
            first_cell[pulls[c]] = c
        mass, next_mass = np.zeros(end - begin), np.zeros(end - begin)
        for c in range(begin, end):
            n = pulls[c]
            mass[c - begin] = arrived[n, successes[c]]
            if c == first_cell[n]:
                standing[n] = 0.0
                for s in range(new_least[n]):
                    standing[n] += arrived[n, s]
        for n in range(size):
            below[v, n] = standing[n]
        for row in range(rounds[v], rounds[v + 1]):
            c = begin
            while c < end and mass[c - begin] <= NOTHING:
                c += 1
            if c == end:
                break
            next_mass[:] = 0.0
            low, high = size, -1  # the range of `alive`, in successes
            for n in range(pulls[c], size - 1):
                while c < end and pulls[c] == n:
                    if mass[c - begin] > NOTHING:
                        s = successes[c]
                        if high < low:
                            low, high = s, s
                        while s < low:
                            low -= 1
                            alive[low] = 0.0
                        while s > high:
                            high += 1
                            alive[high] = 0.0
                        alive[s] = mass[c - begin]
                        waiting[row, n] += mass[c - begin]
                    c += 1
                if high < low:
                    if c == end:
                        break
                    continue
                total = 0.0
                for s in range(low, high + 1):
                    total += alive[s]
                running[row, n + 1] = total
                next_alive[low] = (1.0 - p) * alive[low]
                for s in range(low + 1, high + 1):
                    next_alive[s] = (1.0 - p) * alive[s] + p * alive[s - 1]
                next_alive[high + 1] = p * alive[high]
                high += 1
                for s in range(low, min(high + 1, new_least[n + 1])):
                    arrived[n + 1, s] += next_alive[s]
                    gone[row, n + 1] += next_alive[s]
                for s in range(max(low, new_least[n + 1]), min(high + 1, least[n + 1])):
                    next_mass[first_cell[n + 1] + s - new_least[n + 1] - begin] += next_alive[s]
                low = max(low, least[n + 1])
                while high >= low and next_alive[high] <= NOTHING:
                    high -= 1
                while high >= low and next_alive[low] <= NOTHING:
                    low += 1
                alive, next_alive = next_alive, alive
            while c < end:  # cells of the last row have no next pull
                waiting[row, pulls[c]] += mass[c - begin]
                c += 1
            for n in range(size):
                standing[n] += gone[row, n]
            mass, next_mass = next_mass, mass
        for c in range(begin, end):
            least[pulls[c]] = new_least[pulls[c]]
            first_cell[pulls[c]] = -1
