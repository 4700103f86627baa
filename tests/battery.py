"""Tails of problems that nobody chose, judged by exact answers.

    python tests/battery.py --problems 300 --seed 1 --method auto

draws problems at random: 2 to 6 arms with hopeless, tied and near ones, gaps over decades, sigma from 0.01 to
10, coins that hardly ever or nearly always pay, every policy, both kinds of regret, chances from the bulk to
1e-12. The truth is exact where there is an exact law, and a long plain run elsewhere. Printed are how many
intervals cover, and every estimate with `reached` that misses by more than a factor of 1.3.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from brute_force import programme_law, tail_by_rule
from own_policies import Bounded, Clipped, Commit, Greedy, KullbackLeibler, Timed

import lighttail as lt
from lighttail.tails.programme import programme_seconds

RAREST = 1e-12
OWN_LONGEST = 100  # pulls of a policy of the tests' own
STATES = 3000  # states at most of a truth by brute force
PLAIN = 2_000_000  # paths of a plain truth


@dataclass(frozen=True)
class Case:
    policy: lt.Policy
    problem: lt.Bandit
    horizon: int
    kind: Any


@dataclass(frozen=True)
class Truth:
    """P(kind >= regret), between low and high; equal where it is exact."""

    regret: float
    value: float
    low: float
    high: float
    source: str


def draw(rng: np.random.Generator, noise: str | None = None, own: bool = False) -> Case:
    """A policy, a problem, a horizon and a kind. own: a policy of the tests', as a user would write one."""
    arms = int(rng.choice([2, 2, 3, 3, 4, 5, 6]))
    noise = noise or str(rng.choice(["coins", "bell"]))
    if noise == "coins":
        problem, unit = _coins(rng, arms), 0.5
    else:
        unit = float(10.0 ** rng.uniform(-2.0, 1.0))
        problem = _bell(rng, arms, unit)
    policy = _own_policy(rng, unit, noise) if own else _policy(rng, unit)
    kind = str(rng.choice(["pseudo_regret", "regret"]))
    horizon = int(np.exp(rng.uniform(math.log(arms + 2), math.log(OWN_LONGEST if own else 250))))
    return Case(policy, problem, horizon, kind)


def _coins(rng: np.random.Generator, arms: int) -> lt.Bandit:
    means: list[float] = []
    for _ in range(arms):
        way = rng.integers(5)
        if way == 0 and means:  # tied
            means.append(means[int(rng.integers(len(means)))])
        elif way == 1:
            means.append(float(10.0 ** rng.uniform(-4.0, -1.0)))
        elif way == 2:
            means.append(1.0 - float(10.0 ** rng.uniform(-4.0, -1.0)))
        elif way == 3 and means:  # near
            means.append(float(np.clip(means[0] + 10.0 ** rng.uniform(-3.0, -1.0), 0.0, 1.0)))
        else:
            means.append(float(rng.uniform()))
    return lt.Bandit(_apart(means, 0.3 * means[0]), lt.Bernoulli())


def _bell(rng: np.random.Generator, arms: int, sigma: float) -> lt.Bandit:
    best, scale = float(rng.normal()) * sigma, sigma * float(10.0 ** rng.uniform(-1.0, 0.5))
    means = [best]
    for _ in range(arms - 1):
        way = rng.integers(5)
        if way == 0:  # tied
            gap = best - means[int(rng.integers(len(means)))]
        elif way == 1:  # near
            gap = scale * float(10.0 ** rng.uniform(-3.0, -1.0))
        elif way == 2:  # hopeless
            gap = scale * float(10.0 ** rng.uniform(0.5, 1.5))
        else:
            gap = scale * float(rng.uniform(0.3, 1.5))
        means.append(best - gap)
    return lt.Bandit(
        _apart([float(mean) for mean in rng.permutation(means)], best - scale), lt.Gaussian(sigma)
    )


def _apart(means: list[float], other: float) -> list[float]:
    """Arms that are all alike lose nothing: make the last one another."""
    return means if max(means) > min(means) else [*means[:-1], other]


def _policy(rng: np.random.Generator, unit: float) -> lt.Policy:
    kappa = unit * float(10.0 ** rng.uniform(-1.3, 0.3))
    bonuses = [
        lt.Standard(kappa),
        lt.LightTailed(kappa * 0.5),
        lt.ArmOptimal(kappa * 0.5, kappa * 0.3),
        lt.AnyTime(kappa),
    ]
    way = rng.integers(8)
    if way < 4:
        return lt.UCB(bonuses[way])
    if way < 7:
        return lt.SuccessiveElimination(bonuses[int(rng.integers(3))])
    return lt.ThompsonSampling(kappa * 2.0, prior_sd=unit)


def _own_policy(rng: np.random.Generator, unit: float, noise: str) -> lt.Policy:
    """Rules and indices; those that are made for coins meet coins."""
    c = unit * float(10.0 ** rng.uniform(-0.7, 0.5))
    rules = [Commit(int(rng.integers(1, 7))), Timed(c), Bounded(c), Greedy(0.1)]
    rules += [Clipped(c), KullbackLeibler(c)] if noise == "coins" else []
    return rules[int(rng.integers(len(rules)))]


def truths(
    case: Case,
    rng: np.random.Generator,
    most_seconds: float = 5.0,
    exact_only: bool = False,
    plain: int = PLAIN,
) -> Truth | None:
    """A regret at random on a log scale of chances, with its chance; None where every chance is 0 or 1."""
    settings = (case.policy, case.problem, case.horizon, case.kind)
    seconds = programme_seconds(*settings)
    if not isinstance(seconds, lt.BadInput) and seconds <= most_seconds:
        values, chances = programme_law(*settings)
        tails = np.cumsum(chances[::-1])[::-1]
        return _at_random(values, tails, rng)
    if isinstance(case.problem.noise, lt.Bernoulli) and _few_states(case):
        return _at_random(*tail_by_rule(case.policy, case.problem, case.horizon, case.kind), rng)
    exact = _exact(case, rng, most_seconds)
    return exact if exact is not None or exact_only else _plain(case, rng, plain)


def _few_states(case: Case) -> bool:
    """Whether brute force takes seconds: a policy that draws takes two hundred times as long."""
    states = math.comb(case.horizon + 2 * case.problem.arms, 2 * case.problem.arms)
    tie_free = case.problem.arms == 2 and not isinstance(case.policy, Greedy)
    return tie_free and states <= 20 * STATES


def _at_random(values: Any, tails: Any, rng: np.random.Generator) -> Truth | None:
    inside = np.flatnonzero((tails > RAREST) & (tails < 0.999999))
    if not inside.size:
        return None
    wanted = rng.uniform(math.log(tails[inside].min()), 0.0)
    place = inside[int(np.argmin(np.abs(np.log(tails[inside]) - wanted)))]
    value = float(tails[place])
    return Truth(float(values[place]), value, value, value, "programme")


def _exact(case: Case, rng: np.random.Generator, most_seconds: float) -> Truth | None:
    from lighttail.tails.exact import exact_seconds

    if case.kind != "pseudo_regret":
        return None
    seconds = exact_seconds(case.policy, case.problem, case.horizon)
    if isinstance(seconds, lt.BadInput) or seconds > most_seconds:
        return None
    gaps = case.problem.gaps
    wanted = math.log(RAREST) * rng.uniform()
    low, high = sum(gaps), max(gaps) * case.horizon
    best: Truth | None = None
    for _ in range(9):
        middle = 0.5 * (low + high)
        value = lt.exact_tail(case.policy, case.problem, horizon=case.horizon, regret=middle)
        if RAREST < value < 0.999999:
            best = Truth(middle, value, value * (1 - 1e-5), value * (1 + 1e-5), "exact law")
            if abs(math.log(value) - wanted) < 1.0:
                return best
        if value > math.exp(wanted):
            low = middle
        else:
            high = middle
    return best


def _plain(case: Case, rng: np.random.Generator, most: int) -> Truth | None:
    paths = int(min(most, 3e8 / case.horizon))
    out = lt.simulate(
        case.policy, case.problem, horizon=case.horizon, paths=paths, seed=int(rng.integers(2**31))
    )
    sizes = np.sort(out.regret if case.kind == "regret" else out.pseudo_regret)
    chance = math.exp(rng.uniform(math.log(60.0 / paths), 0.0))
    regret = float(sizes[paths - max(60, int(chance * paths))])
    found = out.exceedance(regret, case.kind, level=0.999)
    if found.value >= 0.999999:
        return None
    return Truth(regret, found.value, found.low, found.high, "plain")


@dataclass(frozen=True)
class Verdict:
    case: Case
    truth: Truth
    found: lt.TailEstimate
    seconds: float

    @property
    def covers(self) -> bool:
        return self.found.low <= self.truth.high and self.found.high >= self.truth.low

    @property
    def factor(self) -> float:
        """By how much the estimate misses what the truth may be."""
        value = max(self.found.value, 1e-320)
        return max(value / self.truth.high, self.truth.low / value, 1.0)

    @property
    def wrong(self) -> bool:
        return self.found.reached and self.factor > 1.3

    def __str__(self) -> str:
        about, truth = self.found.diagnostics, self.truth
        return (
            f"{self.case.policy} {self.case.problem} T={self.case.horizon} "
            f"{self.case.kind} >= {truth.regret!r}: "
            f"{self.found} {'reached' if self.found.reached else 'not reached'} by {self.found.method}, "
            f"truth {truth.value:.4g} ({truth.source}), opinions {[f'{one:.3g}' for one in about.opinions]}, "
            f"{about.doubt or 'no doubt'}, {self.seconds:.1f} s"
        )


def judge(case: Case, truth: Truth, seed: int, **settings: Any) -> Verdict:
    started = time.perf_counter()
    found = lt.tail_probability(
        case.policy, case.problem, case.horizon, truth.regret, kind=case.kind, seed=seed, **settings
    )
    return Verdict(case, truth, found, time.perf_counter() - started)


def battery(
    problems: int,
    seed: int,
    noise: str | None = None,
    *,
    show: bool = False,
    exact_only: bool = False,
    plain: int = PLAIN,
    own: bool = False,
    **settings: Any,
) -> list[Verdict]:
    """So many problems, each asked about one regret. exact_only: those with an exact law within a second."""
    verdicts: list[Verdict] = []
    place = 0
    while len(verdicts) < problems:
        rng = np.random.default_rng([seed, place])
        place += 1
        case = draw(rng, noise, own)
        truth = truths(case, rng, 1.0 if exact_only else 5.0, exact_only, plain)
        if truth is None:
            continue
        verdict = judge(case, truth, place, **settings)
        verdicts.append(verdict)
        if show and (verdict.wrong or not verdict.covers or not verdict.found.reached):
            mark = "WRONG" if verdict.wrong else "not reached" if verdict.covers else "not covered"
            print(f"{place - 1} {mark}: {verdict}", flush=True)
    return verdicts


def summary(verdicts: list[Verdict]) -> str:
    """What the battery found, in a few lines."""
    lines = []
    for source in [*sorted({verdict.truth.source for verdict in verdicts}), "all"]:
        some = [one for one in verdicts if source in ("all", one.truth.source)]
        reached = [one for one in some if one.found.reached]
        covered = sum(one.covers for one in some)
        worst = max((one.factor for one in reached), default=math.nan)
        lines.append(
            f"{source}: {len(some)} problems, {covered / len(some):.1%} covered, "
            f"{len(reached) / len(some):.1%} reached, the worst of those by a factor of {worst:.3f}, "
            f"{sum(one.wrong for one in some)} wrong, "
            f"{sum(one.seconds for one in some) / len(some):.2f} s per tail"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--noise", choices=["coins", "bell"])
    parser.add_argument("--method", default="auto")
    parser.add_argument("--own", action="store_true", help="policies of the tests' own")
    parser.add_argument("--relative-error", type=float, default=0.1)
    parser.add_argument("--most-pulls", type=int, default=10**9)
    options = parser.parse_args()
    verdicts = battery(
        options.problems,
        options.seed,
        options.noise,
        show=True,
        own=options.own,
        method=options.method,
        relative_error=options.relative_error,
        most_pulls=options.most_pulls,
    )
    print(summary(verdicts))
    return int(any(one.wrong for one in verdicts))


if __name__ == "__main__":
    sys.exit(main())
