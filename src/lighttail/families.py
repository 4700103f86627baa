"""Families of problems: what is known before an experiment, when the means of the arms are not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lighttail.checks import number, refuse, whole
from lighttail.noises import Bernoulli, Gaussian, Noise
from lighttail.problems import Bandit
from lighttail.records import Floats

MEMBERS = 24  # problems that stand for a family, unless given
MOST_MEMBERS = 10_000
MOST_ARMS = 1_000  # of a family that is described by its limits
GAPS = (1.01, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 300.0)  # of an edge, in units of the least gap
ALIKE = 1e-9  # relative: gaps that differ by less are alike
FEWEST = 2  # observations per arm from which a law of its mean can be made


@dataclass(frozen=True, eq=False, repr=False)
class Family:
    """A set of problems with the same number of arms, one of which is the true one.

    members: problems that are equally likely and stand for the whole family; averages are over them.
    low, high: the limits of each arm's mean if the family holds every problem between the limits, or None if
        it holds its members alone. The worst problem is then sought between the limits and not only among
        the members.
    about: the family in words.

    >>> Family.rates(0.03, 0.05, arms=3)
    Family of 3 arms with rates between 0.03 and 0.05
    """

    members: tuple[Bandit, ...]
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    about: str = ""

    def __post_init__(self) -> None:
        members = self.members
        if isinstance(members, Bandit):
            members = (members,)
        if not isinstance(members, Sequence) or not members or len(members) > MOST_MEMBERS:
            raise refuse("members", members, f"a list of 1 to {MOST_MEMBERS:,} problems")
        for place, member in enumerate(members):
            if not isinstance(member, Bandit):
                raise refuse(f"members[{place}]", member, "a problem such as Bandit([0.2, 0.8])")
            if member.arms != members[0].arms:
                raise refuse(f"members[{place}]", member, f"a problem with {members[0].arms} arms")
        object.__setattr__(self, "members", tuple(members))
        for name in ("low", "high"):
            limits = getattr(self, name)
            if (limits is None) != (self.low is None) or (limits is not None and len(limits) != self.arms):
                raise refuse(name, limits, f"left out, or {self.arms} means, with low and high together")
        if not self.about:
            object.__setattr__(self, "about", _about(members))

    @classmethod
    def rates(
        cls, low: float, high: float, arms: int = 2, *, members: int = MEMBERS, labels: Sequence[str] = ()
    ) -> Family:
        """Arms that convert or not, each with a rate somewhere between `low` and `high`.

        The rewards are 0 or 1. The members are spread evenly over all combinations of rates.
        """
        low, high = _limits(low, high)
        for name, rate in (("low", low), ("high", high)):
            if not 0.0 <= rate <= 1.0:
                raise refuse(name, rate, "a rate from 0 to 1")
        arms = whole("arms", arms, 2, most=MOST_ARMS)
        about = f"{arms} arms with rates between {low:g} and {high:g}"
        return _filled([low] * arms, [high] * arms, Bernoulli(), members, labels, about)

    @classmethod
    def gaps(
        cls,
        low: float,
        high: float,
        arms: int = 2,
        *,
        noise: Noise | None = None,
        best: float = 0.0,
        members: int = MEMBERS,
    ) -> Family:
        """A best arm whose mean is `best`; each other arm is worse by a gap between `low` and `high`.

        noise: Gaussian(1.0) by default, so that gaps are in units of the noise.

        >>> Family.gaps(0.1, 0.5, arms=3).members[0].means
        (0.0, -0.3, -0.3666666666666667)
        """
        low, high = _limits(low, high)
        if low < 0.0:
            raise refuse("low", low, "a gap of 0 or more")
        arms, best = whole("arms", arms, 2, most=MOST_ARMS), number("best", best)
        noise = Gaussian(1.0) if noise is None else noise
        about = f"{arms} arms, of which the best is better than each other by {low:g} to {high:g}"
        rest = arms - 1
        return _filled([best] + [best - high] * rest, [best] + [best - low] * rest, noise, members, (), about)

    @classmethod
    def from_samples(
        cls, samples: Mapping[str, Sequence[float] | Floats], *, members: int = MEMBERS, seed: int = 1
    ) -> Family:
        """The problems that fit observations of each arm; the observed means are not taken for the truth.

        samples: the observations of each arm by the arm's name, at least two per arm. If all are 0 or 1, the
        rate of an arm with s ones among n observations is drawn from Beta(s + 1/2, n - s + 1/2), its
        posterior law under Jeffreys' prior. Otherwise a member resamples the observations of each arm (the
        bootstrap): its rewards are drawn from n observations that were drawn with replacement.

        >>> family = Family.from_samples({"A": [0, 1, 0, 0, 1], "B": [1, 1, 1, 0, 1]}, members=2)
        >>> [round(mean, 3) for mean in family.members[0].means]
        [0.417, 0.903]
        """
        observed = Bandit.from_samples(samples)
        arrays = [np.asarray(values, dtype=np.float64) for values in samples.values()]
        for label, values in zip(observed.labels, arrays, strict=True):
            if values.size < FEWEST:
                raise refuse(f"the number of observations of {label}", values.size, f"at least {FEWEST}")
        count = whole("members", members, 1, most=MOST_MEMBERS)
        rng = np.random.default_rng(whole("seed", seed, 0))
        coins = all(bool(np.isin(values, (0.0, 1.0)).all()) for values in arrays)
        draw = _posterior if coins else _resampled
        found = tuple(draw(arrays, observed.labels, rng) for _ in range(count))
        kind = "rates" if coins else "means"
        size = sum(values.size for values in arrays)
        return cls(
            found, about=f"{count} sets of {kind} that fit {size:,} observations of {len(arrays)} arms"
        )

    @property
    def single(self) -> bool:
        """Whether the family is one problem."""
        return len(self.members) == 1 and self.low is None

    @property
    def arms(self) -> int:
        """The number of arms."""
        return self.members[0].arms

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the arms."""
        return self.members[0].labels

    @property
    def sigma(self) -> float:
        """The standard deviation of one reward: of the noisiest arm, averaged over the members."""
        return math.fsum(member.sigma for member in self.members) / len(self.members)

    @property
    def limits(self) -> tuple[float, float] | None:
        """The two numbers between which the mean of every arm may lie; None if the arms do not share them.

        >>> Family.rates(0.03, 0.05).limits, Family.gaps(0.1, 0.5).limits
        ((0.03, 0.05), None)
        """
        if self.low is None or self.high is None:
            return None
        found = set(zip(self.low, self.high, strict=True))
        return found.pop() if len(found) == 1 else None

    def most_lost(self, horizon: int) -> float:
        """The largest loss that is possible in any problem of the family."""
        corner = [] if self.high is None else [self.placed(max(self.high), math.nan, 0)]
        return float(max(member.most_lost(horizon) for member in (*self.members, *corner)))

    def at(self, *means: float) -> Bandit:
        """A problem of the family with these means."""
        first = self.members[0]
        return Bandit(means, first.noise, first.labels)

    def placed(self, top: float, second: float, near: int, rest: float = -math.inf) -> Bandit:
        """The problem of a box whose best arm has the mean `top`, `near` arms `second` and the others `rest`,
        as far as the limits allow."""
        low, high = self._box()
        best = int(np.argmax(high))
        means = np.full(self.arms, rest)
        means[[arm for arm in range(self.arms) if arm != best][:near]] = second
        means[best] = top
        return self.at(*np.clip(means, low, np.minimum(high, top)).tolist())

    def edges(self, least_gap: float) -> tuple[Bandit, ...]:
        """Problems of a box among which the worst are likely to be found; none for a family of members alone.

        A loss of x in T pulls needs a gap of at least x/T = least_gap. For gaps from there to the largest
        one, close to each other where they just suffice, and for a best arm at the upper end, in the middle
        and, for rewards of 0 or 1, where they scatter most, either all other arms have this gap, or one has
        it and the rest is as bad as can be.
        """
        if self.low is None:
            return ()
        low, high = self._box()
        widest = float(high.max() - low.min())
        if not widest > 0.0 or least_gap >= widest:
            return ()
        first = least_gap if least_gap > 0.0 else widest / 1000.0
        gaps = sorted({*(first * step for step in GAPS if first * step < widest), widest})
        found: dict[tuple[float, ...], Bandit] = {}  # by the means: a noise need not have a hash
        for gap in gaps:
            for top in self._tops(low, high, gap):
                for near in {1, self.arms - 1}:
                    problem = self.placed(top, top - gap, near)
                    found[problem.means] = problem
        return tuple(found.values())

    def _tops(self, low: Floats, high: Floats, gap: float) -> set[float]:
        """Means of the best arm: the highest, the middle one and, for coins, the one where they scatter most;
        none so low that the gap does not fit below."""
        bottom, best = float(low[high.argmax()]), float(high.max())
        tops = {best, 0.5 * (bottom + best)}
        if self.members[0].noise.is_coin:
            tops.add(0.5 + 0.5 * gap)
        least = min(best, max(bottom, float(low.min()) + gap))
        return {min(best, max(least, top)) for top in tops}

    def near(self, problem: Bandit, step: float = 0.25) -> tuple[Bandit, ...]:
        """Problems of a box beside one of its problems: every gap smaller or larger by the share `step`, the
        same problem moved up or down by this share of the box, and the problems with more or fewer arms like
        the second-best one (`like`). What does not fit into the box is cut off at its limits or, in further
        problems, moved: the best arm up if the gaps do not fit below it, and all arms no further than to the
        first limit."""
        if self.low is None:
            return ()
        (low, high), means = self._box(), np.array(problem.means)
        top, shift = means.max(), step * (high - low)
        smaller, larger = (top - (1.0 + change) * (top - means) for change in (-step, step))
        lifted = larger + min(max(0.0, np.max(low - larger)), max(0.0, np.min(high - larger)))
        up, down = (np.minimum(shift, room) for room in (np.min(high - means), np.min(means - low)))
        moved = [smaller, larger, lifted, means + shift, means + up, means - shift, means - down]
        return self._others(problem, [*moved, *(one.means for one in self.like(problem))])

    def like(self, problem: Bandit) -> tuple[Bandit, ...]:
        """The problems of a box with the best and the second-best arm of this one, and one arm more, one
        arm fewer, all or none of the others like the second-best; the rest is as bad as can be."""
        if self.low is None:
            return ()
        (low, _), means = self._box(), np.array(problem.means)
        best, *others = np.argsort(-means, kind="stable").tolist()
        now, most = runners_up(problem), len(others)
        counts = {1, now - 1, now + 1, most} & set(range(1, most + 1))
        changed = np.tile(low, (len(counts), 1))
        changed[:, best] = means[best]
        for row, count in zip(changed, counts, strict=True):
            row[others[:count]] = means[others[0]]
        return self._others(problem, changed)

    def _others(self, problem: Bandit, points: Iterable[npt.ArrayLike]) -> tuple[Bandit, ...]:
        """The problems with these means, cut off at the limits, but for this problem; each once, sorted."""
        inside = {tuple(np.clip(means, *self._box()).tolist()) for means in points} - {problem.means}
        return tuple(self.at(*means) for means in sorted(inside))

    def _box(self) -> tuple[Floats, Floats]:
        return np.array(self.low, dtype=float), np.array(self.high, dtype=float)

    def __repr__(self) -> str:
        return f"Family of {self.about}"


def family_of(problems: Any) -> Family:
    """A family, made from a problem or a list of problems if it is not one already."""
    if isinstance(problems, Family):
        return problems
    if isinstance(problems, Bandit) or (isinstance(problems, Sequence) and not isinstance(problems, str)):
        return Family(problems)  # type: ignore[arg-type]
    raise refuse("family", problems, "a Family, a Bandit or a list of Bandits")


def runners_up(problem: Bandit) -> int:
    """The number of arms that are as good as the second-best arm, which is one of them.

    >>> runners_up(Bandit([0.9, 0.5, 0.5, 0.1])), runners_up(Bandit([0.9, 0.5, 0.4, 0.1]))
    (2, 1)
    """
    top, second, *rest = sorted(problem.means, reverse=True)
    return 1 + sum(second - mean <= ALIKE * (top - mean) for mean in rest)


def _limits(low: Any, high: Any) -> tuple[float, float]:
    low, high = number("low", low), number("high", high)
    if low > high:
        raise refuse("low", low, f"at most high, which is {high:g}")
    return low, high


def _filled(
    low: list[float], high: list[float], noise: Noise, members: Any, labels: Sequence[str], about: str
) -> Family:
    """The family of all means between the limits. Its members are the first points of a Halton sequence
    (Halton 1960), which fill the box evenly however many there are; the first is the middle of the box in
    its first dimension."""
    from scipy.stats.qmc import Halton

    free = [arm for arm in range(len(low)) if high[arm] > low[arm]]
    count = whole("members", members, 1, most=MOST_MEMBERS) if free else 1
    points = np.tile(np.array(low), (count, 1))
    if free:
        shares = Halton(len(free), scramble=False).random(count + 1)[1:]  # the first point is a corner
        points[:, free] += shares * (np.array(high) - np.array(low))[free]
    found = tuple(Bandit(point.tolist(), noise, labels) for point in points)
    return Family(found, tuple(low), tuple(high), about)


def _posterior(arrays: list[Floats], labels: tuple[str, ...], rng: np.random.Generator) -> Bandit:
    """Rates drawn from their posterior laws under Jeffreys' prior, Beta(1/2, 1/2)."""
    rates = [rng.beta(0.5 + values.sum(), 0.5 + values.size - values.sum()) for values in arrays]
    return Bandit(rates, Bernoulli(), labels)


def _resampled(arrays: list[Floats], labels: tuple[str, ...], rng: np.random.Generator) -> Bandit:
    """Observations drawn anew from those of each arm."""
    drawn = [rng.choice(values, values.size) for values in arrays]
    return Bandit.from_samples(dict(zip(labels, drawn, strict=True)))


def _about(members: Sequence[Bandit]) -> str:
    if len(members) == 1:
        means = ", ".join(f"{mean:g}" for mean in members[0].means)
        return f"one problem with the means {means}"
    return f"{len(members)} problems with {members[0].arms} arms"
