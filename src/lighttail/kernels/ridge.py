"""Ridge regression one observation at a time, compiled: V = ridge * I + sum a a', theta-hat = V^-1 sum a r.

There are two forms of the same state. The *inverse* P = V^-1 is updated by a rank-one step (Sherman and
Morrison) in O(d^2), for the widths a' P a. A step subtracts and so loses digits: a quadratic form x' P x
shrinks at most by the factor by which det V grows, and at most the digits of this factor are lost. P is
therefore computed anew from V whenever det V has grown by the factor LOSS since the last time, and at the
latest after PERIOD rounds. The *root* R, upper triangular with R' R = V, is updated by Givens rotations,
which lose no digits, for the draws R^-1 (w + scale * xi), where R theta-hat = w.

Arrays over the actions run along the last axis (columns[k, i] is entry k of action i), so that inner loops
are independent additions, which the compiler turns into vector instructions without reordering any sum.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lighttail.kernels.build import inner

LOSS = 1e4
PERIOD = 512


@inner
def factor(v: Any, lower: Any, ridge: Any) -> Any:
    """Cholesky: lower * lower' = V, of which only the lower triangle is read; returns ln det V.

    No pivot of V = ridge * I + ... is below the ridge; a pivot that is below it by rounding is set to the
    ridge, so that a V of any condition has a factor.
    """
    d = v.shape[0]
    log_det = 0.0
    for j in range(d):
        pivot = v[j, j]
        for k in range(j):
            pivot -= lower[j, k] * lower[j, k]
        root = math.sqrt(max(pivot, ridge))
        lower[j, j] = root
        log_det += 2.0 * math.log(root)
        for i in range(j + 1, d):
            rest = v[i, j]
            for k in range(j):
                rest -= lower[i, k] * lower[j, k]
            lower[i, j] = rest / root
    return log_det


@inner
def invert(lower: Any, inverse: Any, p: Any) -> None:
    """P = (lower * lower')^-1; `inverse` becomes the inverse of `lower`."""
    d = lower.shape[0]
    for j in range(d):
        inverse[j, j] = 1.0 / lower[j, j]
        for i in range(j + 1, d):
            total = 0.0
            for k in range(j, i):
                total -= lower[i, k] * inverse[k, j]
            inverse[i, j] = total / lower[i, i]
    for i in range(d):
        for j in range(i + 1):
            total = 0.0
            for k in range(i, d):
                total += inverse[k, i] * inverse[k, j]
            p[i, j] = total
            p[j, i] = total


@inner
def renew(v: Any, b: Any, ridge: Any, lower: Any, inverse: Any, p: Any, theta: Any) -> Any:
    """P and theta-hat from V and b = sum a r, by a direct solve; returns ln det V - ln det V0."""
    d = v.shape[0]
    log_det = factor(v, lower, ridge)
    invert(lower, inverse, p)
    for j in range(d):  # lower' theta = lower^-1 b
        theta[j] = 0.0
    for k in range(d):
        total = 0.0
        for j in range(k + 1):
            total += inverse[k, j] * b[j]
        for j in range(k + 1):
            theta[j] += inverse[k, j] * total
    return log_det - d * math.log(ridge)


@inner
def shrink(p: Any, u: Any, z: Any) -> None:
    """P -= u u' / (1 + z), u = P a and z = a' u: Sherman and Morrison's step."""
    d = u.size
    for k in range(d):
        part = u[k] / (1.0 + z)
        for j in range(d):
            p[k, j] -= part * u[j]


@inner
def spread_out(matrix: Any, value: Any) -> None:
    """matrix = value * I."""
    for j in range(matrix.shape[0]):
        for k in range(matrix.shape[0]):
            matrix[j, k] = 0.0
        matrix[j, j] = value


@inner
def blank(d: Any) -> Any:
    """Room for a state: P, theta-hat, the pace, V, b, and three arrays to work in.

    The pace is ln det V - ln det V0 when P was last computed anew, the factor by which det V has grown since
    then, and the rounds since then.
    """
    square = (np.empty((d, d)), np.empty((d, d)), np.empty((d, d)), np.empty((d, d)))
    return square[0], np.empty(d), np.empty(3), square[1], np.empty(d), square[2], square[3], np.empty(d)


@inner
def restart(state: Any, ridge: Any) -> None:
    """The state before the first round."""
    p, theta, pace, v, b, _, _, _ = state
    spread_out(p, 1.0 / ridge)
    spread_out(v, ridge)
    for k in range(b.size):
        b[k] = theta[k] = 0.0
    pace[0], pace[1], pace[2] = 0.0, 1.0, 0.0


@inner
def absorb(state: Any, a: Any, reward: Any, estimate: Any, z: Any, ridge: Any) -> None:
    """Add (a, reward) to the state, given estimate = a' theta-hat and z = a' P a."""
    p, theta, pace, v, b, lower, inverse, u = state
    products(p, a, u)
    gain = (reward - estimate) / (1.0 + z)
    for k in range(a.size):
        theta[k] += u[k] * gain
    shrink(p, u, z)
    for k in range(a.size):
        b[k] += a[k] * reward
        for j in range(k + 1):  # of V, the lower triangle is kept
            v[k, j] += a[k] * a[j]
    pace[1] *= 1.0 + z
    pace[2] += 1.0
    if pace[1] > LOSS or pace[2] >= PERIOD:
        pace[0], pace[1], pace[2] = renew(v, b, ridge, lower, inverse, p, theta), 1.0, 0.0


@inner
def products(columns: Any, x: Any, out: Any) -> None:
    """out[i] = a_i' x for every action; P x if the columns are those of the symmetric P."""
    count = out.size
    for i in range(count):
        out[i] = columns[0, i] * x[0]
    for k in range(1, x.size):
        factor = x[k]
        for i in range(count):
            out[i] += columns[k, i] * factor


@inner
def widths(columns: Any, p: Any, part: Any, out: Any) -> None:
    """out[i] = a_i' P a_i for every action; each off-diagonal entry of P is used once and doubled."""
    count = out.size
    for i in range(count):
        out[i] = 0.0
    for j in range(p.shape[0]):
        half = 0.5 * p[j, j]
        for i in range(count):
            part[i] = columns[j, i] * half
        for k in range(j):
            factor = p[j, k]
            for i in range(count):
                part[i] += columns[k, i] * factor
        for i in range(count):
            out[i] += columns[j, i] * part[i]
    for i in range(count):
        out[i] = max(0.0, out[i] + out[i])


@inner
def rotate(root: Any, w: Any, a: Any, reward: Any) -> None:
    """Add (a, reward) to R and w by Givens rotations of [R | w] with the row [a' | reward]; overwrites a."""
    d = a.size
    for k in range(d):
        old, new = root[k, k], a[k]
        if new == 0.0:
            continue
        length = math.sqrt(old * old + new * new)
        c, s = old / length, new / length
        root[k, k] = length
        for j in range(k + 1, d):
            x, y = root[k, j], a[j]
            root[k, j] = c * x + s * y
            a[j] = c * y - s * x
        x = w[k]
        w[k] = c * x + s * reward
        reward = c * reward - s * x


@inner
def solve_root(root: Any, x: Any) -> None:
    """x = R^-1 x, in place."""
    for k in range(x.size - 1, -1, -1):
        total = x[k]
        for j in range(k + 1, x.size):
            total -= root[k, j] * x[j]
        x[k] = total / root[k, k]
