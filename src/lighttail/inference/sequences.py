"""Confidence sequences for all arms and differences of an experiment, and the check of shares of traffic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lighttail.checks import fraction, number, refuse, whole
from lighttail.inference.evidence import Evidence, Heard

LEVEL = 0.95
MOST_PAIRED = 20  # arms up to which differences have intervals of their own, each of which takes milliseconds


class Limits(NamedTuple):
    """A value and the ends of its interval. The value is nan if nothing was heard."""

    value: float
    low: float
    high: float


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
    heard: Mapping[Any, tuple[int, float]], evidence: Evidence, level: float = LEVEL
) -> Sequences:
    """The intervals that follow from the rewards of an experiment so far.

    heard: the number and the sum of the rewards of each arm. evidence: what is known about rewards.
    level: the chance with which all intervals of one kind hold at all times. With K arms each interval of a
        mean gets the K-th part of the error, and each interval of a difference its share among all pairs.

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
    if not isinstance(evidence, Evidence):
        raise refuse("evidence", evidence, "BoundedRewards(low, high) or SubGaussianRewards(sigma)")
    error = 1.0 - fraction("level", level)
    arms = {arm: _checked(arm, pair, evidence) for arm, pair in heard.items()}
    if len(arms) < 2:
        raise refuse("heard", heard, "the rewards of at least two arms")
    names = list(arms)
    pairs = [(one, other) for place, one in enumerate(names) for other in names[place + 1 :]]
    for_mean, for_pair = math.log(len(arms) / error), math.log(len(pairs) / error)
    means = {arm: Limits(_mean(one), *evidence.limits(one, for_mean)) for arm, one in arms.items()}
    differences = {
        (one, other): Limits(
            _mean(arms[other]) - _mean(arms[one]), *_difference(evidence, arms[one], arms[other], for_pair)
        )
        for one, other in pairs
    }
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


def lead(heard: Mapping[Any, tuple[int, float]], evidence: Evidence, level: float = LEVEL) -> Lead:
    """Every mean, and the best arm so far against the others: what people look at while arms are many.

    The intervals are those of `confidence_sequences`, which hold for all pairs together, so that the arm may
    be chosen because of its rewards. With more than 20 arms the intervals of the differences follow from
    those of the means, which hold together, too, and are wider.

    >>> from lighttail.inference import BoundedRewards
    >>> now = lead({"A": (9000, 270.0), "B": (9000, 450.0), "C": (0, 0.0)}, BoundedRewards(0, 1))
    >>> now.best, {arm: now.shown(arm) for arm in now.ahead}
    ('B', {'A': True, 'C': False})
    """
    if not isinstance(evidence, Evidence):
        raise refuse("evidence", evidence, "BoundedRewards(low, high) or SubGaussianRewards(sigma)")
    error = 1.0 - fraction("level", level)
    arms = {arm: _checked(arm, pair, evidence) for arm, pair in heard.items()}
    if len(arms) < 2:
        raise refuse("heard", heard, "the rewards of at least two arms")
    for_mean, for_pair = math.log(len(arms) / error), math.log(math.comb(len(arms), 2) / error)
    means = {arm: Limits(_mean(one), *evidence.limits(one, for_mean)) for arm, one in arms.items()}
    known = [arm for arm, one in arms.items() if one.times]
    best = max(known, key=lambda arm: means[arm].value, default=None)
    ahead: dict[Any, Limits] = {}
    for arm, one in arms.items() if best is not None else ():
        if arm == best:
            continue
        if len(arms) <= MOST_PAIRED:
            limits = _difference(evidence, one, arms[best], for_pair)
        else:
            limits = (means[best].low - means[arm].high, means[best].high - means[arm].low)
        ahead[arm] = Limits(means[best].value - means[arm].value, *limits)
    return Lead(means, best, ahead, 1.0 - error)


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
    found = [whole("counts", count, 0) for count in counts]
    due = [number("shares", share) for share in shares]
    if len(found) != len(due) or len(due) < 2:
        raise refuse("shares", list(shares), f"at least two shares, one for each of {len(found)} counts")
    if min(due) < 0.0 or not math.isclose(sum(due), 1.0, abs_tol=1e-9):
        raise refuse("shares", list(shares), "numbers from 0 that add up to 1")
    if any(count and share == 0.0 for count, share in zip(found, due, strict=True)):
        return 0.0
    groups, units = len(due), sum(found)
    mixed = math.lgamma(groups / 2.0) - math.lgamma(units + groups / 2.0) - groups * math.lgamma(0.5)
    mixed += sum(math.lgamma(count + 0.5) for count in found)
    expected = sum(count * math.log(share) for count, share in zip(found, due, strict=True) if count)
    return min(1.0, math.exp(min(0.0, expected - mixed)))


def _checked(arm: Any, pair: Any, evidence: Evidence) -> Heard:
    """The number and the sum of an arm's rewards."""
    try:
        count, total = pair
    except (TypeError, ValueError):
        raise refuse(f"heard[{arm!r}]", pair, "the number and the sum of the rewards") from None
    heard = Heard(whole(f"the number of rewards of {arm!r}", count, 0), number(f"heard[{arm!r}]", total))
    evidence.check(f"the sum of the rewards of {arm!r}", heard)
    return heard


def _difference(evidence: Evidence, one: Heard, other: Heard, log_limit: float) -> tuple[float, float]:
    """The limits of mean(other) - mean(one), as the overlap of two intervals.

    Half of the error is for the bet on both means, which is narrower for arms with similar numbers of
    rewards; a quarter each is for the intervals of the two means, whose difference is narrower if one arm has
    far fewer rewards.
    """
    low, high = evidence.difference(one, other, log_limit + math.log(2.0))
    here, there = (evidence.limits(heard, log_limit + math.log(4.0)) for heard in (one, other))
    return max(low, there[0] - here[1]), min(high, there[1] - here[0])


def _mean(heard: Heard) -> float:
    return heard.total / heard.times if heard.times else math.nan
