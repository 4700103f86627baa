"""Rewards that contradict what is believed about the means, such as conversions told without the zeros."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lighttail.checks import BadInput

TOO_HIGH = "conversions were told without the zeros: the reward of every trial must be told, zeros too"
TOO_LOW = "rewards are told in another unit, or a window that is too short closes trials before their rewards"


class Contradicted(BadInput):
    """The rewards contradict two numbers between which all means are said to lie. detail: for which arm, with
    the numbers and the likely cause."""

    def __init__(self, field: str, between: tuple[float, float], detail: str) -> None:
        self.detail = detail
        said = f"the rewards contradict {field}: {detail}"
        super().__init__(said, field=field, value=between, allowed="two numbers that agree with the rewards")


def contradiction(
    limits: Mapping[Any, tuple[float, float]], between: tuple[float, float] | None
) -> str | None:
    """Why the limits of some mean, which hold at all times, lie outside two numbers; None if those of no mean
    do. If the numbers are right, this ever happens with a chance of at most the error of the limits.

    limits: by arm. If several means are outside, the one that is farthest away is named.

    >>> print(contradiction({"A": (0.01, 0.09), "B": (0.9, 1.0)}, (0.02, 0.08)).partition(";")[0])
    the mean of B lies from 0.9 to 1 (limits that hold at all times), and not from 0.02 to 0.08
    >>> contradiction({"A": (0.01, 0.09), "B": (0.07, 1.0)}, (0.02, 0.08)) is None
    True
    """
    if between is None or not limits:
        return None
    least, most = between
    away = {arm: max(low - most, least - high) for arm, (low, high) in limits.items()}
    arm = max(away, key=lambda one: away[one])
    if not away[arm] > 0.0:
        return None
    low, high = limits[arm]
    found = f"the mean of {arm} lies from {low:.4g} to {high:.4g} (limits that hold at all times)"
    cause = TOO_HIGH if low > most else TOO_LOW
    return f"{found}, and not from {least:g} to {most:g}; the likely cause is that {cause}"
