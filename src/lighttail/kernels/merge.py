"""All arms together at one level: the chance that pull number `total` is made there, by the regret.

Arms with the same mean are a group. qs[g, n] is the chance that group g has been pulled n times at the level,
fs[g, n] is the density of levels at which the group's n-th pull is made. One group makes the pull and the
other groups keep their pulls: the chance is the sum over groups k of fs[k, n_k] times the product of the
other qs[j, n_j], over all n that add up to `total`. Group 0 is the best group, whose gap is 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lighttail.kernels.build import compiler, inner


@inner
def convolved(a: Any, b: Any) -> Any:
    """c[n] = sum over i of a[i] b[n - i], as long as a and b."""
    size = a.size
    c = np.zeros(size)
    for i in range(size):
        if a[i] != 0.0:
            part = c[i:]
            for j in range(size - i):
                part[j] += a[i] * b[j]
    return c


@inner
def group_chances(q: Any, f: Any, arms: Any, group_q: Any, group_f: Any) -> None:
    """q and f of a group from q and f of one of its arms."""
    if arms == 1:
        for n in range(q.size):  # numba compiles a loop much sooner than an assignment of arrays
            group_q[n], group_f[n] = q[n], f[n]
        return
    rest, power, others = arms - 1, q.copy(), np.zeros(q.size)
    others[0] = 1.0
    while rest > 0:
        if rest % 2 == 1:
            others = convolved(others, power)
        rest //= 2
        if rest > 0:
            power = convolved(power, power)
    all_q, all_f = convolved(others, q), convolved(others, f)
    for n in range(q.size):
        group_q[n], group_f[n] = all_q[n], arms * all_f[n]


@inner
def last_of(q: Any, f: Any) -> Any:
    """The last place where q or f is not zero."""
    n = q.size - 1
    while n > 0 and q[n] == 0.0 and f[n] == 0.0:
        n -= 1
    return n


@inner
def least_pulls(missing: Any, gap: Any, most: Any) -> Any:
    """The smallest number of pulls with a regret of `missing` or more; at most `most`."""
    if missing <= 0.0:
        return 0
    return int(min(math.ceil(missing / gap), float(most)))


@inner
def _pairs(qs: Any, fs: Any, pulls: Any, still: Any, moved: Any) -> None:
    """The sums over groups 0 and 1 with `pulls` pulls together, m or more of them of group 1; for each m."""
    still[pulls + 1] = 0.0
    moved[pulls + 1] = 0.0
    for m in range(pulls, -1, -1):
        q, other = qs[1, m], qs[0, pulls - m]
        still[m] = still[m + 1] + q * other
        moved[m] = moved[m + 1] + q * fs[0, pulls - m] + fs[1, m] * other


@inner
def _tail_of_more(qs: Any, fs: Any, gaps: Any, regret: Any, total: Any) -> Any:
    """The tail of four groups or more: groups 0 and 1 have some pulls together, the others share the rest.

    The numbers of pulls of groups 2, 3, ..., G - 3 run like the digits of a counter. The last two groups
    together have the pulls that are left, and one loop divides these pulls.
    """
    groups = qs.shape[0]
    digits = groups - 4
    still, moved = np.zeros(total + 2), np.zeros(total + 2)
    last = np.zeros(groups, dtype=np.int64)
    for g in range(groups):
        last[g] = last_of(qs[g], fs[g])
    number, left = np.zeros(digits + 1, dtype=np.int64), np.zeros(digits + 1, dtype=np.int64)
    missing, both, one = np.zeros(digits + 1), np.zeros(digits + 1), np.zeros(digits + 1)
    both[0], missing[0] = 1.0, regret
    a, b = groups - 2, groups - 1
    per_gap = 1.0 / gaps[1]
    tail = 0.0
    for pulls in range(min(total, last[0] + last[1]) + 1):
        _pairs(qs, fs, pulls, still, moved)
        if moved[0] == 0.0 and still[0] == 0.0:
            continue
        left[0] = total - pulls
        number[0] = 0
        d = 0
        while d >= 0:
            if d == digits:
                rest = left[d]
                sum_still, sum_moved = 0.0, 0.0
                for n in range(max(0, rest - last[b]), min(rest, last[a]) + 1):
                    lack = (missing[d] - n * gaps[a] - (rest - n) * gaps[b]) * per_gap
                    m = int(min(math.ceil(max(lack, 0.0)), pulls + 1.0))
                    q, p = qs[a, n], qs[b, rest - n]
                    sum_still += q * p * moved[m]
                    sum_moved += (both[d] * (fs[a, n] * p + q * fs[b, rest - n]) + one[d] * q * p) * still[m]
                tail += both[d] * sum_still + sum_moved
                d -= 1
                if d >= 0:
                    number[d] += 1
                continue
            n, g = number[d], d + 2
            if n > min(left[d], last[g]):
                d -= 1
                if d >= 0:
                    number[d] += 1
                continue
            left[d + 1] = left[d] - n
            missing[d + 1] = missing[d] - n * gaps[g]
            both[d + 1] = both[d] * qs[g, n]
            one[d + 1] = one[d] * qs[g, n] + both[d] * fs[g, n]
            if both[d + 1] == 0.0 and one[d + 1] == 0.0:
                number[d] += 1
                continue
            d += 1
            number[d] = 0
    return tail


@inner
def tail_of(qs: Any, fs: Any, gaps: Any, regret: Any, total: Any) -> Any:
    """The density of levels at which pull `total` is made and the regret is `regret` or more."""
    groups = qs.shape[0]
    back_q, back_f = np.zeros(total + 1), np.zeros(total + 1)  # q and f of the best group, from the end
    for n in range(total + 1):
        back_q[n] = qs[0, total - n]
        back_f[n] = fs[0, total - n]
    if groups == 2:
        m = least_pulls(regret, gaps[1], total + 1)
        return np.dot(qs[1, m:], back_f[m:]) + np.dot(fs[1, m:], back_q[m:])
    if groups == 3:
        tail = 0.0
        last = last_of(qs[1], fs[1]) + 1
        for n in range(last_of(qs[2], fs[2]) + 1):
            m = least_pulls(regret - n * gaps[2], gaps[1], total + 1)
            end = min(last, total + 1 - n)
            if m < end and (qs[2, n] > 0.0 or fs[2, n] > 0.0):
                still = np.dot(qs[1, m:end], back_q[m + n : end + n])
                moved = np.dot(qs[1, m:end], back_f[m + n : end + n])
                moved += np.dot(fs[1, m:end], back_q[m + n : end + n])
                tail += qs[2, n] * moved + fs[2, n] * still
        return tail
    return _tail_of_more(qs, fs, gaps, regret, total)


@inner
def add_law(qs: Any, fs: Any, total: Any, weight: Any, law: Any) -> None:
    """Add, to each place of the law, `weight` times the density of its numbers of pulls.

    The places are the numbers of pulls of groups 1, 2, ... with a sum of at most `total`; the number of the
    last group changes first.
    """
    digits = qs.shape[0] - 1
    number = np.zeros(digits, dtype=np.int64)
    pulls = np.zeros(digits + 1, dtype=np.int64)
    both, one = np.zeros(digits + 1), np.zeros(digits + 1)
    both[0] = weight
    place, d = 0, 0
    while d >= 0:
        n = number[d]
        if n > total - pulls[d]:
            number[d] = 0
            d -= 1
            if d >= 0:
                number[d] += 1
            continue
        if d < digits - 1:
            pulls[d + 1] = pulls[d] + n
            both[d + 1] = both[d] * qs[d + 1, n]
            one[d + 1] = one[d] * qs[d + 1, n] + both[d] * fs[d + 1, n]
            d += 1
            continue
        left = total - pulls[d]
        if both[d] != 0.0 or one[d] != 0.0:
            for n in range(left + 1):
                still = both[d] * qs[d + 1, n]
                moved = one[d] * qs[d + 1, n] + both[d] * fs[d + 1, n]
                law[place + n] += still * fs[0, left - n] + moved * qs[0, left - n]
        place += left + 1
        number[d] = left + 1


def regrets_of(gaps: Any, total: int) -> Any:
    """The regret at each place of `add_law`."""
    pulls, lost = np.zeros(1, dtype=np.int64), np.zeros(1)
    for gap in gaps[1:]:
        choices = total - pulls + 1  # the numbers of pulls of the next group: 0, 1, ..., choices - 1
        first = np.repeat(np.cumsum(choices) - choices, choices)
        n = np.arange(first.size) - first
        pulls, lost = np.repeat(pulls, choices) + n, np.repeat(lost, choices) + n * gap
    return lost


@inner
def add_lattice(qs: Any, fs: Any, steps: Any, total: Any, weight: Any, law: Any) -> None:
    """Add, to law[r], `weight` times the density of a regret of r units (or more, in the last place).

    steps[g]: the gap of group g in units, a whole number. The groups are added one after the other to a table
    of pulls and units.
    """
    cap = law.size - 1
    still, moved = np.zeros((total + 1, cap + 1)), np.zeros((total + 1, cap + 1))
    still[0, 0] = weight
    used = 0
    for g in range(1, qs.shape[0]):
        last = last_of(qs[g], fs[g])
        next_still, next_moved = np.zeros((total + 1, cap + 1)), np.zeros((total + 1, cap + 1))
        for n in range(min(last, total) + 1):
            q, f = qs[g, n], fs[g, n]
            if q == 0.0 and f == 0.0:
                continue
            up = min(n * steps[g], cap)
            for s in range(min(used, total - n) + 1):
                a, b = still[s], moved[s]
                to_a, to_b = next_still[s + n], next_moved[s + n]
                for r in range(cap - up):
                    to_a[r + up] += q * a[r]
                    to_b[r + up] += q * b[r] + f * a[r]
                for r in range(cap - up, cap + 1):
                    to_a[cap] += q * a[r]
                    to_b[cap] += q * b[r] + f * a[r]
        still, moved = next_still, next_moved
        used = min(total, used + last)
    for s in range(total + 1):
        for r in range(cap + 1):
            law[r] += still[s, r] * fs[0, total - s] + moved[s, r] * qs[0, total - s]


TAIL, LAW, LATTICE = 0, 1, 2  # what `merge` adds up


@compiler()
def merge(
    kind: Any, below: Any, waiting: Any, gone: Any, running: Any, clocks: Any, weights: Any,
    arms: Any, gaps: Any, units: Any, regret: Any, total: Any, out: Any,
) -> None:  # fmt: skip
    """Add levels at which an arm of a group may wait, at most once, for its turn: a uniform clock decides.

    For group g at level v, below[g, v, n] is the chance that the index is below the level after n pulls,
    `waiting` that the index is at the level, `gone` that the arm waited and is then below the level for the
    first time after n pulls, and `running` that the arm waited and is then pulled an n-th time before its
    index is at or below the level.
    """
    groups, levels, size = below.shape
    q = np.empty(size)
    qs, fs = np.empty((groups, size)), np.empty((groups, size))
    for level in range(levels):
        some = 0.0
        for g in range(groups):
            some += running[g, level].sum()
        if some == 0.0:
            continue
        for node in range(clocks.size):
            u, weight = clocks[node], weights[node]
            for g in range(groups):
                for n in range(size):
                    q[n] = below[g, level, n] + u * gone[g, level, n] + (1.0 - u) * waiting[g, level, n]
                group_chances(q, running[g, level], arms[g], qs[g], fs[g])
            if kind == TAIL:
                out[0] += weight * tail_of(qs, fs, gaps, regret, total)
            elif kind == LAW:
                add_law(qs, fs, total, weight, out)
            else:
                add_lattice(qs, fs, units, total, weight, out)
