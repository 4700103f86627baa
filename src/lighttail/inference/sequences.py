"""Confidence sequences for all arms and differences of an experiment, and what they are checked against: the
shares of the traffic, and what is believed about the means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from lighttail.checks import BadInput, fraction, number, refuse, whole
from lighttail.inference.evidence import Evidence, Heard
from lighttail.outcomes.estimates import finite

LEVEL = 0.95
MOST_PAIRED = 20  # arms up to which differences have intervals of their own, each of which takes milliseconds
TOO_HIGH = "conversions were told without the zeros: the reward of every trial must be told, zeros too"
TOO_LOW = "rewards are told in another unit, or a window that is too short closes trials before their rewards"


class Limits(NamedTuple):
    """A value and the ends of its interval. The value is nan if nothing was heard."""

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which has no infinity: a number that is not finite becomes None."""
        return {name: finite(value) for name, value in self._asdict().items()}


@dataclass(frozen=True)
class Sequences:
    """The intervals of all means and of all differences at this moment of an experiment.

    All intervals of `means` together hold at all moments with a chance of at least `level`, and so do all
    intervals of `differences`. means: by arm. differences: by (a, b), the mean of b minus the mean of a.
    """

    means: dict[Any, Limits]
    differences: dict[tuple[Any, Any], Limits]
    level: float

    def better(self, arm: Any, than: Any) -> bool:
        """Whether it is shown that the mean of `arm` is above the mean of `than`."""
        if arm not in self.means or than not in self.means or arm == than:
            known = ", ".join(map(repr, self.means))
            raise refuse("arm", (arm, than), f"two different arms out of {known}")
        if (than, arm) in self.differences:
            return self.differences[than, arm].low > 0.0
        return self.differences[arm, than].high < 0.0

    def leader(self) -> Any:
        """The arm that is shown to be better than every other arm; None if no arm is."""
        for arm in self.means:
            if all(self.better(arm, other) for other in self.means if other != arm):
                return arm
        return None

    def beaten(self) -> list[Any]:
        """The arms to which some other arm is shown to be better."""
        return [arm for arm in self.means if any(self.better(one, arm) for one in self.means if one != arm)]


def confidence_sequences(
    heard: Mapping[Any, tuple[int, float]],
    evidence: Evidence,
    level: float = LEVEL,
    first: int | None = None,
) -> Sequences:
    """The intervals that follow from the rewards of an experiment so far.

    heard: the number and the sum of the rewards of each arm. evidence: what is known about rewards.
    level: the chance with which all intervals of one kind hold at all times. With K arms each interval of a
        mean gets the K-th part of the error, and each interval of a difference its share among all pairs.
    first: how many arms, the first ones of `heard`, the experiment had at its beginning, if others were added
        (`parts_of_error`).

    The intervals allow for any rule that chooses arms by what is known, and for any number of looks. They
    assume that the mean of an arm does not change, and that whether a reward arrives does not depend on the
    reward: a conversion that is told at once and a failure that is told after a week are not such rewards
    before the week is over.

    >>> from lighttail.inference import BoundedRewards
    >>> now = confidence_sequences({"A": (5000, 150.0), "B": (5000, 250.0)}, BoundedRewards(0, 1))
    >>> {arm: f"{low:.4f} to {high:.4f}" for arm, (_, low, high) in now.means.items()}
    {'A': '0.0212 to 0.0408', 'B': '0.0385 to 0.0635'}
    >>> now.better("B", "A")
    True
    """
    arms, means, error = _means(heard, evidence, level, first)
    places = {arm: place for place, arm in enumerate(arms)}
    differences = {}
    for one, other in combinations(arms, 2):
        part = part_of_pair(places[other], len(arms), first)
        differences[one, other] = _difference(evidence, arms[one], arms[other], error * part)
    return Sequences(means, differences, 1.0 - error)


@dataclass(frozen=True)
class Lead:
    """The arm with the highest mean reward so far, against every other arm.

    means: by arm, as in `Sequences`. best: the arm; None if nothing was heard. ahead: by other arm, the mean
    of `best` minus the mean of the other arm.
    """

    means: dict[Any, Limits]
    best: Any
    ahead: dict[Any, Limits]
    level: float

    def shown(self, other: Any) -> bool:
        """Whether it is shown that `best` is better than this arm."""
        return self.ahead[other].low > 0.0


def lead(
    heard: Mapping[Any, tuple[int, float]],
    evidence: Evidence,
    level: float = LEVEL,
    first: int | None = None,
) -> Lead:
    """Every mean, and the best arm so far against the others: what people look at while arms are many.

    The intervals are those of `confidence_sequences`, which hold for all pairs together, so that the arm may
    be chosen because of its rewards. With more than 20 arms the intervals of the differences follow from
    those of the means, which hold together, too, and are wider. first: as in `confidence_sequences`.

    >>> from lighttail.inference import BoundedRewards
    >>> now = lead({"A": (9000, 270.0), "B": (9000, 450.0), "C": (0, 0.0)}, BoundedRewards(0, 1))
    >>> now.best, {arm: now.shown(arm) for arm in now.ahead}
    ('B', {'A': True, 'C': False})
    """
    arms, means, error = _means(heard, evidence, level, first)
    places = {arm: place for place, arm in enumerate(arms)}
    known = [arm for arm, heard_of in arms.items() if heard_of.times]
    best = max(known, key=lambda arm: means[arm].value, default=None)
    ahead: dict[Any, Limits] = {}
    for arm, (value, low, high) in means.items() if known else ():
        if arm == best:
            continue
        if len(arms) <= MOST_PAIRED:
            part = part_of_pair(max(places[arm], places[best]), len(arms), first)
            ahead[arm] = _difference(evidence, arms[arm], arms[best], error * part)
        else:
            top = means[best]
            ahead[arm] = Limits(top.value - value, top.low - high, top.high - low)
    return Lead(means, best, ahead, 1.0 - error)


def parts_of_error(arms: int, first: int | None = None) -> list[float]:
    """The part of the error that the interval of each mean gets; the parts add up to at most 1.

    Without added arms each of K arms gets 1/K. If arms were added to the `first` ones, the first arms share
    one half, and the j-th added arm gets 3 / (pi j)^2, whatever is added later: the sum of 3 / (pi j)^2 over
    all j is one half.

    >>> parts_of_error(2), [round(part, 3) for part in parts_of_error(4, first=2)]
    ([0.5, 0.5], [0.25, 0.25, 0.304, 0.076])
    """
    first = _first(arms, first)
    if first == arms:
        return [1.0 / arms] * arms
    return [0.5 / first] * first + [_added(place, first) for place in range(first, arms)]


def part_of_pair(later: int, arms: int, first: int | None = None) -> float:
    """The part of the error that the interval of a difference gets. later: the place of the arm of the pair
    that is later in the order of all arms. The pairs of an added arm with the arms before it share what the
    arm gets."""
    first = _first(arms, first)
    if later < first:
        return (1.0 if first == arms else 0.5) / max(1, math.comb(first, 2))
    return _added(later, first) / later


def _first(arms: int, first: int | None) -> int:
    return arms if first is None else whole("first", first, 1, most=arms)


def _added(place: int, first: int) -> float:
    return 3.0 / (math.pi * (place - first + 1)) ** 2


def _means(
    heard: Mapping[Any, tuple[int, float]], evidence: Evidence, level: float, first: int | None
) -> tuple[dict[Any, Heard], dict[Any, Limits], float]:
    """The checked rewards of each arm, the interval of its mean, and the error of all intervals together."""
    if not isinstance(evidence, Evidence):
        raise refuse("evidence", evidence, "BoundedRewards(low, high) or SubGaussianRewards(sigma)")
    error = 1.0 - fraction("level", level)
    arms = {arm: _checked(arm, pair, evidence) for arm, pair in heard.items()}
    if len(arms) < 2:
        raise refuse("heard", heard, "the rewards of at least two arms")
    parts = parts_of_error(len(arms), first)
    means = {
        arm: Limits(one.mean, *evidence.limits(one, -math.log(error * part)))
        for (arm, one), part in zip(arms.items(), parts, strict=True)
    }
    return arms, means, error


def share_mismatch(counts: Sequence[int], shares: Sequence[float]) -> float:
    """How strongly counts speak against the shares that they should have: a p-value for all times.

    If every unit falls into group i with chance shares[i], the answer is ever at or below alpha with a chance
    of at most alpha, however often people look. It is the Dirichlet mixture of Lindon and Malek (NeurIPS
    2022) with the parameter 1/2 per group, as a ratio of likelihoods:

        e = [Gamma(G/2) prod Gamma(c_i + 1/2)] / [Gamma(n + G/2) Gamma(1/2)^G prod shares_i^c_i],

    with G groups and n units, and the answer is min(1, 1/e) for the counts at this moment.

    >>> share_mismatch([9030, 970], [0.9, 0.1]), f"{share_mismatch([9300, 700], [0.9, 0.1]):.1e}"
    (1.0, '1.2e-22')
    """
    counts = [whole("counts", count, 0) for count in counts]
    due = [number("shares", share) for share in shares]
    if len(counts) != len(due) or len(due) < 2:
        raise refuse("shares", list(shares), f"at least two shares, one for each of {len(counts)} counts")
    if min(due) < 0.0 or not math.isclose(sum(due), 1.0, abs_tol=1e-9):
        raise refuse("shares", list(shares), "numbers from 0 that add up to 1")
    if any(count and share == 0.0 for count, share in zip(counts, due, strict=True)):
        return 0.0
    groups, units = len(due), sum(counts)
    mixed = math.lgamma(groups / 2.0) - math.lgamma(units + groups / 2.0) - groups * math.lgamma(0.5)
    mixed += sum(math.lgamma(count + 0.5) for count in counts)
    expected = sum(count * math.log(share) for count, share in zip(counts, due, strict=True) if count)
    return min(1.0, math.exp(min(0.0, expected - mixed)))


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


def _checked(arm: Any, pair: Any, evidence: Evidence) -> Heard:
    """The number and the sum of an arm's rewards."""
    try:
        count, total = pair
    except (TypeError, ValueError):
        raise refuse(f"heard[{arm!r}]", pair, "the number and the sum of the rewards") from None
    heard = Heard(whole(f"the number of rewards of {arm!r}", count, 0), number(f"heard[{arm!r}]", total))
    evidence.check(f"the sum of the rewards of {arm!r}", heard)
    return heard


def _difference(evidence: Evidence, one: Heard, other: Heard, error: float) -> Limits:
    """mean(other) - mean(one) with its limits, which are the overlap of two intervals.

    Half of the error is for the bet on both means, which is narrower for arms with similar numbers of
    rewards; a quarter each is for the intervals of the two means, whose difference is narrower if one arm has
    far fewer rewards.
    """
    log_limit = -math.log(error)
    low, high = evidence.difference(one, other, log_limit + math.log(2.0))
    here, there = (evidence.limits(heard, log_limit + math.log(4.0)) for heard in (one, other))
    return Limits(other.mean - one.mean, max(low, there[0] - here[1]), min(high, there[1] - here[0]))
