"""A Gaussian random walk against a boundary: when the walk first crosses it, and paths that touch it.

The density of the walk's height above the boundary is computed from step to step on a uniform grid. A step is
a convolution with the normal density. On such a grid the sum equals the integral up to rounding, except for
the effect of the cut at the boundary. The Euler-Maclaurin formula gives this effect from the derivatives of
the density at the boundary, which are computed from step to step, too. Only densities below an absolute
threshold are dropped.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from lighttail.kernels.build import compiler, inner

SPACING = 0.5  # distance of the grid's points, in standard deviations of a step
ORDERS = 12  # number of derivatives at the boundary: of the orders 0 to 11
EVEN_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730)  # Bernoulli's numbers B_2, ..., B_12
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
CLEAR = 4  # steps between two searches for walks that will never come back


@cache
def end_terms(spacing: float) -> npt.NDArray[np.float64]:
    """Euler-Maclaurin at the end of a range, for a product: terms[r, s] of derivatives r and s.

    Integral = trapezoidal sum + sum of terms[r, s] * first^(s)(0) * second^(r)(0).
    """
    terms = np.zeros((ORDERS, ORDERS))
    for j, bernoulli in enumerate(EVEN_BERNOULLI, start=1):
        factor = bernoulli * spacing ** (2 * j) / math.factorial(2 * j)
        for r in range(2 * j):
            terms[r, 2 * j - 1 - r] = factor * math.comb(2 * j - 1, r)
    terms.setflags(write=False)
    return terms


@inner
def normal(z: Any) -> Any:
    return math.exp(-0.5 * z * z) / ROOT_TWO_PI


@inner
def below(z: Any) -> Any:
    """The chance that a standard normal number is below z."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


@inner
def hermite(z: Any, values: Any) -> None:
    """He_0(z), He_1(z), ...: the r-th derivative of the normal density is (-1)^r He_r times the density."""
    values[0] = 1.0
    values[1] = z
    for r in range(1, values.size - 1):
        values[r + 1] = z * values[r] - r * values[r - 1]


@inner
def end_factors(terms: Any, derivatives: Any, factors: Any) -> None:
    """Fill factors[r] of the r-th derivative of the function that the density is multiplied by."""
    for r in range(factors.size):
        total = 0.0
        for s in range(factors.size):
            total += terms[r, s] * derivatives[s]
        factors[r] = total


@inner
def spread(taps: Any, source: Any, pad: Any, shift: Any, target: Any) -> None:
    """target[i] = sum over k of taps[k] * source[pad + shift + i - k], four taps at a time."""
    size = target.size
    target[:] = 0.0
    for k in range(0, taps.size, 4):
        a, b, c, d = taps[k], taps[k + 1], taps[k + 2], taps[k + 3]
        start = pad + shift - k - 3
        part = source[start : start + size + 3]
        for i in range(size):
            target[i] += a * part[i + 3] + b * part[i + 2] + c * part[i + 1] + d * part[i]


@inner
def send(density: Any, low: Any, spacing: Any, pad: Any, source: Any) -> Any:
    """Fill in the masses of the grid points, with zeros around them; returns the sum of the masses."""
    size = density.size
    source[:pad] = 0.0
    source[pad + size : pad + size + pad] = 0.0
    for i in range(size):
        source[pad + i] = density[i] * spacing
    if low == 0:
        source[pad] *= 0.5
    return source[pad : pad + size].sum()


@inner
def fill_taps(taps: Any, width: Any, centre: Any, spacing: Any, fall: Any) -> None:
    """taps[k]: the density of a step of (centre - width + k) * spacing - fall, from the middle out."""
    taps[:] = 0.0
    z = centre * spacing - fall
    factor = math.exp(-(spacing**2))
    value, ratio = normal(z), math.exp(-z * spacing - 0.5 * spacing**2)
    for k in range(width, 2 * width + 2):
        taps[k] = value
        value *= ratio
        ratio *= factor
    value, ratio = normal(z), math.exp(z * spacing - 0.5 * spacing**2)
    for k in range(width - 1, -1, -1):
        value *= ratio
        ratio *= factor
        taps[k] = value


@inner
def chance_to_cross(sent: Any, low: Any, spacing: Any, fall: Any, reach: Any, factors: Any, wide: Any) -> Any:
    """The chance to be below the boundary after the next step."""
    crossed = 0.0
    for i in range(min(sent.size, max(0, int((reach + 1.0 - fall) / spacing) + 2 - low))):
        crossed += sent[i] * below(-(low + i) * spacing - fall)
    if low == 0:
        crossed += factors[0] * below(-fall)
        for r in range(1, factors.size):
            crossed -= factors[r] * wide[r - 1] * normal(fall)
    return max(0.0, crossed)


@inner
def next_ends(
    sent: Any, low: Any, spacing: Any, fall: Any, taps: Any, lowest: Any, factors: Any, wide: Any, ends: Any
) -> None:
    """The derivatives, at the boundary, of the density after the next step."""
    polynomials = np.empty(ends.size)
    ends[:] = 0.0
    for i in range(max(0, 1 - taps.size - lowest - low), min(sent.size, 1 - lowest - low)):
        hermite(-(low + i) * spacing - fall, polynomials)
        share = taps[-(low + i) - lowest] * sent[i]
        for s in range(ends.size):
            ends[s] += polynomials[s] * share
    for s in range(ends.size):
        if low == 0:
            for r in range(ends.size):
                ends[s] += factors[r] * wide[s + r] * normal(fall)
        if s % 2 == 1:
            ends[s] = -ends[s]


@inner
def add_cut(density: Any, begin: Any, spacing: Any, fall: Any, taps: Any, lowest: Any, factors: Any) -> None:
    """Add the effect of the cut at the boundary to the density after the next step."""
    polynomials = np.empty(factors.size)
    for k in range(max(0, begin - lowest), min(taps.size, begin + density.size - lowest)):
        hermite((lowest + k) * spacing - fall, polynomials)
        more = 0.0
        for r in range(factors.size):
            more += factors[r] * polynomials[r]
        density[lowest + k - begin] += taps[k] * more


@inner
def never_back(
    density: Any, touched: Any, low: Any, top: Any, spacing: Any, up: Any, steps: Any, least: Any
) -> Any:
    """The top of the grid without the walks that come back with a chance below `least`, and the mass of the
    walks that are left out and have touched the boundary.

    If the boundary falls by `up` or more per step, a walk at height y above it comes back with a chance of at
    most exp(-2 up y).
    """
    mass, touched_mass, safe = 0.0, 0.0, 0.0
    while top > 0:
        mass += density[top - 1] * spacing
        touched_mass += touched[top - 1] * spacing
        if (steps * mass + touched_mass) * math.exp(-2.0 * up * (low + top - 1) * spacing) > least:
            break
        safe += touched[top - 1] * spacing
        top -= 1
    return top, safe


@compiler()
def walk(
    drift: Any, first: Any, bends: Any, later: Any, spacing: Any, least: Any, terms: Any, q: Any, f: Any
) -> None:
    """Fill q[n], the chance that the walk is first below the boundary at step n, and f[n].

    The boundary is b_1 = -drift - first, and it falls by drift + bends[n - 1] from step n to step n + 1.
    later[n - 1]: the smallest of bends[n - 1], bends[n], ... f[n]: the derivative, with respect to the drift,
    of the chance to be above the boundary at steps 1 to n - 1, which is the density of the level that the
    walk's index just touches. Densities below `least` are dropped. q and f must be zero before the call;
    place n belongs to step n.
    """
    steps = q.size - 1
    start = -drift - first
    reach = math.sqrt(-2.0 * math.log(least))
    q[1] = below(start)
    if steps == 1 or start > reach:
        return
    half = int(reach / spacing) + 2
    room = int((2.0 * reach + 4.0) * math.sqrt(steps) / spacing) + 4 * half + 64
    pad = 2 * half + 8
    density, touched = np.zeros(room), np.zeros(room)  # at low, low + 1, ... times the spacing
    source, touched_source = np.zeros(room + 2 * pad), np.zeros(room + 2 * pad)
    taps = np.zeros(2 * half + 8)
    orders = terms.shape[0]
    ends, touched_ends = np.zeros(orders), np.zeros(orders)  # derivatives at the boundary
    factors, touched_factors = np.zeros(orders), np.zeros(orders)
    wide = np.zeros(2 * orders)
    low = max(0, math.ceil((-start - reach) / spacing))
    high = math.floor((-start + reach) / spacing) + 1
    for i in range(low, high):
        density[i - low] = normal(i * spacing + start)
    if low == 0:
        hermite(start, wide)
        for s in range(orders):
            ends[s] = (1.0 - 2.0 * (s % 2)) * wide[s] * normal(start)
    safe = 0.0  # the mass of walks that touched the boundary and will never come back
    for n in range(1, steps):
        size, fall = high - low, drift + bends[n - 1]
        at = n * ends[0] if low == 0 else 0.0
        send(density[:size], low, spacing, pad, source)
        left = send(touched[:size], low, spacing, pad, touched_source)
        hermite(-fall, wide)
        if low == 0:
            end_factors(terms, ends, factors)
            end_factors(terms, touched_ends, touched_factors)
            left += touched_factors[0]
            touched_factors[0] += at
        f[n + 1] = at + left + safe
        sent, touched_sent = source[pad : pad + size], touched_source[pad : pad + size]
        q[n + 1] = chance_to_cross(sent, low, spacing, fall, reach, factors, wide)
        most = max(density[:size].max(), touched[:size].max(), at, 2.0 * least)
        width = min(half, int(math.sqrt(2.0 * math.log(most / least)) / spacing) + 2)
        centre = math.floor(fall / spacing)
        lowest = centre - width
        begin, end = max(0, low + lowest), high + centre + width + 1
        if end <= begin:
            f[n + 2 :] = safe
            return
        some = taps[: 4 * ((2 * width + 5) // 4)]
        fill_taps(some, width, centre, spacing, fall)
        if begin == 0:
            next_ends(sent, low, spacing, fall, some, lowest, factors, wide, ends)
            next_ends(touched_sent, low, spacing, fall, some, lowest, touched_factors, wide, touched_ends)
        top = min(end - begin, room)
        spread(some, source, pad, begin - low - lowest, density[:top])
        spread(some, touched_source, pad, begin - low - lowest, touched[:top])
        if low == 0:
            add_cut(density[:top], begin, spacing, fall, some, lowest, factors)
            add_cut(touched[:top], begin, spacing, fall, some, lowest, touched_factors)
        bottom = 0
        while top > 0 and density[top - 1] + touched[top - 1] < least:
            top -= 1
        up = drift + later[min(n, later.size - 1)]
        if up > 0.0 and n % CLEAR == 0:
            top, more = never_back(density, touched, begin, top, spacing, up, steps, least)
            safe += more
        while bottom < top and density[bottom] + touched[bottom] < least:
            bottom += 1
        for i in range(bottom, top if bottom > 0 else 0):
            density[i - bottom] = density[i]
            touched[i - bottom] = touched[i]
        low, high = begin + bottom, begin + top
        if low >= high:
            f[n + 2 :] = safe
            return
