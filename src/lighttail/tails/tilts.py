"""Which noises are tilted for importance sampling; the families of tilts are in `lighttail.noises.tilts`."""

from __future__ import annotations

import functools

import numpy as np

from lighttail.checks import refuse
from lighttail.noises.noise import PILOT_ARMS, Noise, rewards_drawn
from lighttail.noises.tilts import Tilts

SMALLEST = 1e-100  # the smallest unit of rewards: squares of rewards and of their sums are floats
TRIED, NEAR = 1e-3, 1e-2  # a tilt that is tried, in units of the rewards, and the allowed relative error
ROUNDED = 1e-14  # the relative error that rounding causes in a difference of means
LOST = 1e12  # means, in units of the rewards, beyond which rounding hides the noise


def tilts_of(noise: Noise) -> Tilts | None:
    """The tilts that a noise states, or None if it states none."""
    return noise.tilt() if noise.moves else None


def why_not_tilted(noise: Noise, means: tuple[float, ...]) -> str | None:
    """What the noise would need for tilts, as part of a message; None if its rewards can be tilted."""
    family = tilts_of(noise)
    if family is None:
        return "Gaussian or Bernoulli, or of a class that states its tilt and moves = True,"
    if not SMALLEST <= family.unit <= 1.0 / SMALLEST:
        return f"of a sigma between {SMALLEST:g} and {1.0 / SMALLEST:g}"
    if max(map(abs, means)) > LOST * family.unit:
        return f"of a sigma that is at least {1.0 / LOST:g} of every mean"
    return None


@functools.lru_cache(maxsize=16)
def check_tilt(noise: Noise, means: tuple[float, ...]) -> None:
    """Raise BadInput if the stated tilts visibly do not fit the rewards that the noise draws.

    psi'(0) is the mean and psi''(0) the variance of a reward; psi' is the mean of the tilted law, and `lam`
    is the tilt to a mean. The variance may differ from that of some draws by a factor of 2.
    """
    family = tilts_of(noise)
    if family is None:
        return
    arms = range(min(len(means), PILOT_ARMS))
    true = np.array([means[arm] for arm in arms])
    step = TRIED / family.unit
    with np.errstate(all="ignore"):
        low, high = (np.asarray(family.psi(true, lam), dtype=np.float64) for lam in (-step, step))
        moved = np.asarray(family.mean(true, step), dtype=np.float64)
        there = np.asarray(family.lam(true, moved), dtype=np.float64)
    spread = rewards_drawn(noise, means, arms).var(axis=1)
    variance = (high + low) / step**2
    slack = NEAR * (family.unit + np.abs(true))
    rounded = ROUNDED * np.abs(true) / np.where(variance > 0.0, variance, np.inf)
    wrong = {
        "psi": ~(np.abs((high - low) / (2.0 * step) - true) <= slack)
        | ~(variance <= 2.0 * spread + slack * family.unit)
        | ~(variance >= 0.5 * spread - slack * family.unit),
        "mean": ~(np.abs(moved - true - step * variance) <= slack),
        "lam": ~(np.abs(there - step) <= NEAR * step + rounded) & (spread > 0.0),
    }
    for name, arm in ((name, int(np.argmax(bad))) for name, bad in wrong.items() if bad.any()):
        found = f"its {name} at the mean {means[arm]:g} does not fit the rewards that the class draws"
        raise refuse(f"{type(noise).__name__}.tilt", None, "the tilts of its rewards", found=found)
