"""Curves of policies: one policy over a grid of its tuning, from too little exploration to too much."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lighttail.bonuses import AnyTime, ArmOptimal, LightTailed, Standard
from lighttail.checks import refuse, size_of
from lighttail.families import Family
from lighttail.policies import (
    UCB,
    BetaThompson,
    EvenSplit,
    ExploreThenCommit,
    KlUcb,
    Policy,
    SuccessiveElimination,
    ThompsonSampling,
)

STEP = 2.0  # ratio of two neighbouring scales of a grid
FINEST = 2.0**0.125  # ratio at which a grid is no longer refined
EACH, CLOSEST = 64, 2.0**0.03125  # whole numbers that are all tried, and the ratio of those beyond
DIGITS = 3  # significant digits of a tuned number, so that people can type it

MOST_OWN = 200  # policies that a user may name in one plan: each of them is searched


@dataclass(frozen=True)
class Candidate:
    """A policy of a curve. scale: its place on the curve, or nan if the curve is a single policy."""

    curve: int
    scale: float
    policy: Policy


@dataclass(frozen=True)
class OfCandidate:
    """What is known of a candidate."""

    candidate: Candidate

    @property
    def curve(self) -> int:
        return self.candidate.curve

    @property
    def scale(self) -> float:
        return self.candidate.scale

    @property
    def policy(self) -> Policy:
        return self.candidate.policy


@dataclass(frozen=True)
class Curve:
    """A policy as a function of its tuning.

    make: the policy at a scale. scales: the grid at which the search begins; empty for a single policy.
    unit: what the scale is measured in, for tables and figures. least, most: the ends of the scale.
    dear: the search plays this number of times fewer paths, because a pull takes so much longer.
    whole: whether the scale is a number of pulls. The chance of a loss then jumps from one number to another,
    and the numbers that keep a limit may be few.
    """

    name: str
    make: Callable[[float], Policy]
    scales: tuple[float, ...] = ()
    unit: str = "kappa / sigma"
    least: float = 0.0
    most: float = math.inf
    dear: int = 1
    whole: bool = False

    def every(self) -> list[float]:
        """All scales of a curve of whole numbers: one by one at first, then in steps of 2 %."""
        each = [float(m) for m in range(1, 1 + int(min(self.most, EACH)))]
        steps = math.floor(math.log(self.most / EACH, CLOSEST)) if self.most > EACH else 0
        return each + [EACH * CLOSEST**k for k in range(1, 1 + steps)]

    def candidates(self, turn: int, scales: Iterable[float] | None = None) -> list[Candidate]:
        """The policies at these scales; those of the grid by default."""
        if not self.scales:
            return [Candidate(turn, math.nan, self.make(math.nan))]
        asked = self.scales if scales is None else [x for x in scales if self.least <= x <= self.most]
        found = {self.make(scale): scale for scale in asked}
        return [Candidate(turn, scale, policy) for policy, scale in found.items()]


def grid(first: float, last: float) -> tuple[float, ...]:
    """The scales from `first` to `last` in steps of `STEP`."""
    return tuple(first * STEP**k for k in range(1 + round(math.log(last / first, STEP))))


def rounded(value: float) -> float:
    """A number that people can type."""
    return float(f"{value:.{DIGITS}g}")


def tuned(policy: Policy, sigma: float) -> Callable[[float], Policy]:
    """scale -> the policy tuned for the noise scale * sigma, if `policy` is tuned for the noise 1."""
    return lambda scale: policy.for_noise(rounded(scale * sigma))


def shipped_curves(family: Family, horizon: int) -> list[Curve]:
    """The policies that a plan chooses from unless others are named.

    The paper's policies and the classic ones, each over its kappa; Thompson sampling with a prior as wide as
    the noise around the middle of the family; KL-UCB and Thompson sampling with a Beta prior for rewards of 0
    or 1; and what people do today: an even split, and to explore for a while and then commit.
    """
    sigma = family.sigma
    count = family.arms * len(family.members)
    middle = rounded(math.fsum(sum(member.means) for member in family.members) / count)
    width = rounded(sigma)
    curves = [
        Curve("UCB + LightTailed", tuned(UCB(LightTailed(1.0)), sigma), grid(0.0125, 0.8)),
        Curve("UCB + AnyTime", tuned(UCB(AnyTime(1.0)), sigma), grid(0.025, 0.8)),
        Curve("UCB + ArmOptimal", tuned(UCB(ArmOptimal(1.0, 1.0)), sigma), grid(0.05, 0.8)),
        Curve("UCB + Standard", tuned(UCB(Standard(1.0)), sigma), grid(0.2, 3.2)),
        Curve("SE + LightTailed", tuned(SuccessiveElimination(LightTailed(1.0)), sigma), grid(0.0125, 0.8)),
        Curve("SE + Standard", tuned(SuccessiveElimination(Standard(1.0)), sigma), grid(0.2, 3.2)),
        Curve("TS", lambda scale: ThompsonSampling(rounded(scale * sigma), middle, width), grid(0.25, 4.0)),
    ]
    if all(member.noise.is_coin for member in family.members):
        curves.append(Curve("BetaTS", lambda _: BetaThompson(), dear=4))
        curves.append(Curve("KL-UCB", lambda c: KlUcb(rounded(c)), (0.125, 0.5), "c", 0.01, 4.0, 8))
    most = horizon // family.arms
    if most >= 4:

        def explore(m: float) -> Policy:
            return ExploreThenCommit(min(most, max(1, int(rounded(m)))))

        first = max(1.0, most / 2.0 ** math.floor(math.log2(most) / 2.0 + 2.0))
        curves.append(Curve("ETC", explore, grid(first, most / 2.0), "pulls per arm", 1.0, most, whole=True))
    curves.append(Curve("EvenSplit", lambda _: EvenSplit()))
    return curves


def own_curves(policies: Any, field: str = "policies", least: int = 1) -> list[Curve]:
    """The curves of policies that a user names: each over its tuning if it has one that follows the noise.

    field: the name of the argument. least: how many policies it must name.
    """
    if not isinstance(policies, (Mapping, Sequence)) or isinstance(policies, (str, bytes)):
        raise refuse(field, policies, "a list of policies, or a mapping from names to policies")
    if size_of(policies) > MOST_OWN:
        raise refuse(f"the number of {field}", size_of(policies), f"at most {MOST_OWN} in one plan")
    listed = not isinstance(policies, Mapping)
    named = {str(policy): policy for policy in policies} if listed else dict(policies)
    if len(named) < least:
        raise refuse(field, policies, "at least one policy")
    found = []
    for name, policy in named.items():
        if not isinstance(policy, Policy) or policy.linear:
            raise refuse(f"{field}[{name!r}]", policy, "a policy for arms, such as UCB(LightTailed(0.2))")
        found.append(_own_curve(str(name), policy))
    return found


def _own_curve(name: str, policy: Policy) -> Curve:
    """A policy that follows the noise is swept around the tuning that it comes with."""
    if policy.for_noise(2.0) == policy:
        return Curve(name, lambda _: policy)
    return Curve(name, policy.for_noise, grid(0.125, 8.0), f"kappa / that of {policy}")
