"""Random families, planned for and judged: is what a plan states true, and is there nothing better?

    python tests/plan_battery.py coverage --families 200 --seed 1
    python tests/plan_battery.py optimality --problems 20 --seed 1
    python tests/plan_battery.py coverage --families 50 --skip 50    # the second of four parts
    python tests/plan_battery.py coverage --late --device cuda       # late rewards; the truth from a GPU
    python tests/plan_battery.py optimality --boxes --problems 20    # families in place of single problems
    python tests/plan_battery.py optimality --averages --problems 20 # families whose average chance counts

Each family that was drawn gets one line, and the counts come last. --families counts families that are drawn,
whether or not a plan meets its limit, so that parts with --skip do not overlap.

Coverage: the stated limit of the chance (`choice.chance.high`) is held against the truth in the problem that
the plan calls worst, in a problem drawn from the family, and in the two worst problems of a grid that the
plan does not know. The truth is exact where there is an exact law,
and otherwise comes from a million paths (or from a tenth of them, if these show it to be below the stated
limit); a stated limit counts as broken if the truth lies above it, or, with
simulated truth, if the whole 99 % interval does. The control states what the search saw, without fresh random
numbers.

Optimality: on one problem at a time, a fine grid of kappas over all curves looks for a policy whose mean loss
is lower by more than 3 % and whose chance is within the limit. If the plan finds no policy, any policy of the
grid that keeps the limit is better. With --boxes, the mean loss is the average over the members of a family,
and a policy of the grid keeps the limit if it does so in all members, in the problem that the plan calls
worst for its choice, and in the two worst problems that brute force finds for it: the true worst problem may
be worse, so that such a policy may be no better in truth. With --averages, the chance is the average over
the members, too.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

import lighttail as lt
from lighttail.course import Course
from lighttail.delays import FixedDelay
from lighttail.families import family_of
from lighttail.outcomes.estimates import Estimate, proportion
from lighttail.planning.bench import Bench
from lighttail.planning.curves import shipped_curves
from lighttail.planning.question import Question
from lighttail.planning.search import Search
from lighttail.tails.known import exact_at
from lighttail.tails.task import Task

BETTER = 0.03


class Case(NamedTuple):
    """A question for a plan."""

    family: lt.Family
    horizon: int
    loss: float
    limit: float
    over: str
    late: dict[str, int]

    def plan(self, seed: int, effort: float) -> lt.Plan:
        """The plan that is judged."""
        asked: dict[str, Any] = {"horizon": self.horizon, "loss": self.loss, "chance": self.limit}
        return lt.plan(self.family, **asked, over=self.over, seed=seed, effort=effort, **self.late)  # type: ignore[arg-type]

    def exact(self, policy: lt.Policy, problem: lt.Bandit, seconds: float) -> float | None:
        """The exact chance, if it can be had in this time and rewards come at once."""
        if self.late:
            return None
        return exact_at(Task(policy, problem, self.horizon, self.loss, "pseudo_regret"), seconds)


def cases(seed: int, single: bool = False, late: bool = False) -> Iterator[Case]:
    """Random families: rates or gaps, two to four arms, one problem or a box, everywhere or on average.
    late: rewards come late, or decisions are made in groups, or both."""
    rng = np.random.default_rng(seed)
    while True:
        arms, horizon = int(rng.integers(2, 4 if single else 5)), int(rng.choice([60, 120, 250, 500]))
        if rng.random() < 0.5:
            low, high = sorted(rng.uniform(0.02, 0.98, 2).tolist())
            family = lt.Family.rates(low, high, arms, members=8)
        else:
            low, high = sorted(rng.uniform(0.05, 1.5, 2).tolist())
            family = lt.Family.gaps(low, high, arms, members=8, noise=lt.Gaussian(float(rng.uniform(0.5, 2))))
        if single or rng.random() < 0.4:
            family = family_of(family.members[int(rng.integers(8))])
        most = family.most_lost(horizon)
        loss = float(f"{rng.uniform(0.08, 0.6) * most:.3g}")
        limit = float(rng.choice([0.003, 0.01, 0.03, 0.1]))
        over = "average" if len(family.members) > 1 and rng.random() < 0.3 else "everywhere"
        slow = {"delay": int(rng.integers(horizon // 4)), "batch": int(rng.integers(1, 20))} if late else {}
        if most > 0.0 and loss > 0.0:
            yield Case(family, horizon, loss, limit, over, slow)


class Fresh(NamedTuple):
    """Random numbers that the plan has not seen and that judge it: how many paths, which, played on what."""

    paths: int
    seed: int
    device: str = "cpu"

    def played(self, policy: lt.Policy, problem: lt.Bandit, case: Case) -> Any:
        """All paths on one problem."""
        return lt.simulate(
            policy,
            problem,
            horizon=case.horizon,
            paths=self.paths,
            seed=self.seed,
            device=self.device,  # type: ignore[arg-type]
            **case.late,
        )

    def reached(self, policy: lt.Policy, problem: lt.Bandit, case: Case) -> int:
        """How many of the paths lose the amount of the question."""
        return int(np.sum(self.played(policy, problem, case).reaches(case.loss, "pseudo_regret")))


def drawn(family: lt.Family, rng: np.random.Generator) -> lt.Bandit:
    """A problem of the family."""
    if family.low is None or family.high is None:
        return family.members[int(rng.integers(len(family.members)))]
    means = rng.uniform(family.low, family.high)
    return family.at(*map(float, means))


def least(policy: lt.Policy, problem: lt.Bandit, case: Case, fresh: Fresh, stated: float) -> float:
    """A lower limit of the true chance: exact but for rounding, or with a confidence of 99 %.

    A tenth of the paths decides if it shows, with an error of 1 in 20,000, that the chance is below `stated`.
    """
    exact = case.exact(policy, problem, 5.0)
    if exact is not None:
        return exact / (1.0 + 1e-4)
    few = fresh._replace(paths=fresh.paths // 10)
    hits = few.reached(policy, problem, case)
    if proportion(hits, few.paths, 1.0 - 1e-4).high < stated:
        return proportion(hits, few.paths, 0.99).low
    return proportion(fresh.reached(policy, problem, case), fresh.paths, 0.99).low


def average_of(policy: lt.Policy, case: Case, fresh: Fresh) -> Estimate:
    """The average chance over the members, with a confidence of 99 %."""
    members = case.family.members
    each = [
        fresh._replace(paths=fresh.paths // len(members), seed=fresh.seed + k) for k in range(len(members))
    ]
    hits = sum(one.reached(policy, member, case) for one, member in zip(each, members, strict=True))
    return proportion(hits, sum(one.paths for one in each), 0.99)


def sought(case: Case, policy: lt.Policy, fresh: Fresh) -> list[lt.Bandit]:
    """The two worst problems of a box by brute force, over a grid that the plan does not know: twelve gaps,
    four heights of the best arm, and one, some or all of the other arms at the gap."""
    family = case.family
    if family.low is None or family.high is None:
        return []
    low, high = np.array(family.low), np.array(family.high)
    best, widest, least = int(np.argmax(high)), float(high.max() - low.min()), case.loss / case.horizon
    pool = {}
    for gap in np.geomspace(1.005 * least, widest, 12) if 1.005 * least < widest else ():
        for share in (0.0, 0.33, 0.67, 1.0):
            bottom = min(high[best], max(low[best], low.min() + gap))
            top = bottom + share * (high[best] - bottom)
            for near in range(1, family.arms):
                means = low.copy()
                means[[arm for arm in range(family.arms) if arm != best][:near]] = top - gap
                means[best] = top
                inside = tuple(np.clip(means, low, np.minimum(high, top)).tolist())
                pool[inside] = family.at(*inside)
    worst = list(pool.values())
    for paths, kept in ((2_000, 16), (10_000, 2)):
        few = fresh._replace(paths=paths, seed=fresh.seed + 10**7)  # not those that judge
        chances = {problem: chance_in(policy, problem, case, few) for problem in worst}
        worst = sorted(worst, key=lambda problem: -chances[problem])[:kept]
    return worst


def chance_in(policy: lt.Policy, problem: lt.Bandit, case: Case, fresh: Fresh) -> float:
    exact = case.exact(policy, problem, 0.1)
    return fresh.reached(policy, problem, case) / fresh.paths if exact is None else exact


def highest(case: Case, policy: lt.Policy, worst: lt.Bandit, fresh: Fresh, stated: float) -> float:
    """The highest lower limit of the truth: in the problem that the plan calls worst, in one drawn from the
    family and in those that brute force finds, or on average."""
    if case.over == "average":
        return average_of(policy, case, fresh).low
    rng = np.random.default_rng(fresh.seed)
    problems = dict.fromkeys([worst, drawn(case.family, rng), *sought(case, policy, fresh)])
    return max(least(policy, problem, case, fresh, stated) for problem in problems)


class Counts(NamedTuple):
    """met: plans. stated, asked: met plans whose stated or asked limit is broken. control: the same for a
    limit without fresh numbers. nominal: met plans whose stated limit is nominal."""

    met: int = 0
    stated: int = 0
    asked: int = 0
    control: int = 0
    nominal: int = 0


def words(total: Counts) -> str:
    return ", ".join(f"{name} {value}" for name, value in total._asdict().items())


def singles(seed: int) -> Iterator[Case]:
    """Random problems."""
    return cases(seed, single=True)


def boxes(seed: int) -> Iterator[Case]:
    """Random families of more than one problem, whose limits must hold everywhere."""
    return (case for case in cases(seed) if len(case.family.members) > 1 and case.over == "everywhere")


def averages(seed: int) -> Iterator[Case]:
    """The same families, whose limits must hold on average."""
    return (case._replace(over="average") for case in boxes(seed))


def part(drawn: Iterator[Case], count: int, skip: int) -> Iterator[tuple[int, Case]]:
    """`count` cases after the first `skip`, each with its place, which is the seed of its plan."""
    return islice(enumerate(drawn), skip, skip + count)


def coverage(
    count: int,
    seed: int,
    effort: float,
    paths: int,
    skip: int = 0,
    device: str = "cpu",
    late: bool = False,
) -> Counts:
    """The counts over families, one line per family."""
    total = Counts()
    for turn, case in part(cases(seed, late=late), count, skip):
        asked = f"{turn}: {case.family}, T={case.horizon}, {case.loss:g}, {case.limit:g}, {case.over}"
        asked += f", {case.late}: " if case.late else ": "
        print(asked, end="", flush=True)
        found = case.plan(turn, effort)
        if not found.met:
            print("not met", flush=True)
            continue
        choice, fresh = found.choice, Fresh(paths, 10**6 + turn, device)
        truth = highest(case, choice.policy, choice.worst, fresh, choice.chance.high)
        policy, problem, limit = unconfirmed(case, turn, effort)
        control = highest(case, policy, problem, fresh, limit) > limit
        stated, over = truth > choice.chance.high, truth > case.limit
        new = Counts(1, stated, over, control, choice.nominal)
        total = Counts(*(before + more for before, more in zip(total, new, strict=True)))
        said = f"{choice.label} {choice.chance:.3g}, {choice.source}, truth at least {truth:.3g}"
        print(f"{said}; so far {words(total)}", flush=True)
    return total


def unconfirmed(case: Case, seed: int, effort: float) -> tuple[lt.Policy, lt.Bandit, float]:
    """The choice of a search and what the search saw of it, without fresh random numbers."""
    question = Question(
        case.family, case.horizon, case.loss, case.limit, case.over == "everywhere", bool(case.late)
    )
    curves = shipped_curves(case.family, case.horizon)
    course = Course(FixedDelay(case.late.get("delay", 0)), case.late.get("batch", 1))
    search = Search(question, curves, Bench(case.horizon, seed, 2, course), 2e9 * effort)
    ranked = search.run()
    likely = [score for score in ranked if score.chance.value <= case.limit] or ranked
    best = likely[0]
    return best.policy, best.watched[0], max(best.chance.value, case.limit)


def optimality(
    count: int,
    seed: int,
    effort: float,
    skip: int = 0,
    device: str = "cpu",
    drawn: Callable[[int], Iterator[Case]] = singles,
) -> list[tuple[float, str]]:
    """For each problem or family in which the limit can be kept, by how much the mean loss of the choice is
    above that of the best policy of a fine grid that also meets the limit; negative if the choice is better,
    infinite if the plan finds none."""
    found = []
    for turn, case in part(drawn(seed), count, skip):
        print(f"{turn}: {case.family}, T={case.horizon}, {case.loss:g}, {case.limit:g}: ", end="", flush=True)
        plan = case.plan(turn, effort)
        fresh = Fresh(40_000, 10**6 + turn, device)
        rival = best_of_grid(case, plan.choice.worst, fresh)
        if not plan.met and rival is None:
            print("not met, and not by the grid", flush=True)
            continue
        # The best of many means looks better than it is: both are played again.
        again = fresh._replace(paths=20 * fresh.paths, seed=2 * 10**6 + turn)
        mine = mean_loss(plan.choice.policy, case, again) if plan.met else math.inf
        best = math.inf if rival is None else mean_loss(rival, case, again)
        found.append((mine / best - 1.0, f"{plan.choice.label} {mine:.4g}, grid: {rival} {best:.4g}"))
        print(f"{found[-1][0]:+.2%} {found[-1][1]}", flush=True)
    return found


def mean_loss(policy: lt.Policy, case: Case, fresh: Fresh) -> float:
    """The mean loss over the members of the family."""
    members = case.family.members
    each = [
        fresh._replace(paths=fresh.paths // len(members), seed=fresh.seed + k) for k in range(len(members))
    ]
    means = [one.played(policy, member, case).mean().value for one, member in zip(each, members, strict=True)]
    return math.fsum(means) / len(means)


def best_of_grid(case: Case, watched: lt.Bandit, fresh: Fresh) -> lt.Policy | None:
    """The policy with the least mean loss, within the limit, of all curves over a grid with steps of
    2^(1/8). watched: a problem in which most policies that do not keep the limit are found out."""
    quick, best = fresh._replace(paths=4_000), math.inf
    found: lt.Policy | None = None
    for turn, curve in enumerate(shipped_curves(case.family, case.horizon)):
        scales = [x * 2.0 ** (k / 8) for x in curve.scales for k in range(8)]
        for one in curve.candidates(turn, scales):
            if 0.97 * mean_loss(one.policy, case, quick) > best:
                continue
            hits = quick.reached(one.policy, watched, case)
            if case.over == "everywhere" and proportion(hits, quick.paths, 0.999).low > case.limit:
                continue
            mean = mean_loss(one.policy, case, fresh)
            if mean < best and keeps(one.policy, case, watched, fresh):
                best, found = mean, one.policy
    return found


def keeps(policy: lt.Policy, case: Case, watched: lt.Bandit, fresh: Fresh) -> bool:
    """Whether the chance is within the limit wherever we look, or on average."""
    if case.over == "average":
        return average_of(policy, case, fresh._replace(paths=400_000)).value <= case.limit
    problems = dict.fromkeys([watched, *case.family.members, *sought(case, policy, fresh)])
    return all(allowed(policy, problem, case, fresh) for problem in problems)


def allowed(policy: lt.Policy, problem: lt.Bandit, case: Case, fresh: Fresh) -> bool:
    """Whether the chance is within the limit: exactly, or by 400,000 paths."""
    exact = case.exact(policy, problem, 2.0)
    if exact is not None:
        return exact <= case.limit
    many = fresh._replace(paths=400_000)
    return many.reached(policy, problem, case) / many.paths <= case.limit


def main() -> None:
    reading = argparse.ArgumentParser()
    reading.add_argument("what", choices=["coverage", "optimality"])
    reading.add_argument("--families", "--problems", type=int, default=200, dest="count")
    reading.add_argument("--skip", type=int, default=0)
    reading.add_argument("--seed", type=int, default=1)
    reading.add_argument(
        "--effort", type=float, help="0.05 for coverage and 1, as in `lt.plan`, for optimality"
    )
    reading.add_argument("--paths", type=int, default=10**6)
    reading.add_argument("--late", action="store_true", help="rewards come late, in groups; coverage alone")
    reading.add_argument("--boxes", action="store_true", help="families of many problems; optimality alone")
    reading.add_argument("--averages", action="store_true", help="their average chances; optimality alone")
    reading.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    asked: Any = reading.parse_args()
    if asked.effort is None:
        asked.effort = 0.05 if asked.what == "coverage" else 1.0
    if asked.what == "coverage":
        total = coverage(
            asked.count, asked.seed, asked.effort, asked.paths, asked.skip, asked.device, asked.late
        )
        print(
            f"{asked.count} families, {total.met} plans met, {total.nominal} with a nominal limit: ", end=""
        )
        print(f"the stated limit is broken in {total.stated}, ", end="")
        print(f"the asked one in {total.asked}, control {total.control}")
    else:
        drawn = averages if asked.averages else boxes if asked.boxes else singles
        judged = optimality(asked.count, asked.seed, asked.effort, asked.skip, asked.device, drawn)
        gains = [gain for gain, _ in judged]
        better = sum(gain > BETTER for gain in gains)
        print(f"{asked.count} problems, the limit can be kept in {len(gains)}: ", end="")
        print(f"{better} plans can be bettered by more than 3 %")


if __name__ == "__main__":
    main()
