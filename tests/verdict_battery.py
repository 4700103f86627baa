"""How often the verdict on growth is right, on problems drawn at random whose truth is known.

    python tests/verdict_battery.py --problems 100 --seed 2

The truth is a theorem's: UCB and elimination with `LightTailed`, and UCB with `AnyTime`, are light-tailed on
these problems; the chances of `Standard` and of Thompson sampling fall like a power of T. The cut was
chosen on exact values of seed 1 (docs/verdict.md); other seeds test it.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

import lighttail as lt
from lighttail.outcomes.growth import HARDLY, POWER, ROOT, Growth

POLICIES = (
    lambda kappa: lt.UCB(lt.Standard(kappa)),
    lambda kappa: lt.SuccessiveElimination(lt.Standard(0.5 * kappa)),
    lt.ThompsonSampling,
    lambda kappa: lt.UCB(lt.LightTailed(kappa)),
    lambda kappa: lt.SuccessiveElimination(lt.LightTailed(0.5 * kappa)),
    lambda kappa: lt.UCB(lt.AnyTime(math.sqrt(2.0) * kappa)),
)
RIGHT = {True: (ROOT,), False: (POWER, HARDLY)}  # by whether the policy is light-tailed


@dataclass(frozen=True)
class Case:
    """One policy on one problem, and the loss that is asked about."""

    policy: lt.Policy
    problem: lt.Bandit
    horizon: int
    threshold: float

    @property
    def group(self) -> str:
        noise = type(self.problem.noise).__name__
        return f"{'light' if self.policy.light_tailed else 'power'}, {noise}"


def draw(rng: np.random.Generator) -> Case:
    """A problem of 2 to 4 arms, its noise, a policy with a kappa that suits the noise, and a threshold."""
    arms = int(rng.choice([2, 2, 3, 4]))
    coins = bool(rng.random() < 0.3)
    low, high = (0.05, 0.6) if coins else (0.0, 1.0)
    means = np.sort(rng.uniform(low, high, arms))
    means[-1] = min(0.95, means[-1] + rng.uniform(0.1, 0.4)) if coins else means[-1] + rng.uniform(0.1, 0.6)
    sigma = math.sqrt(means[-1] * (1.0 - means[-1])) if coins else float(rng.uniform(0.5, 2.0))
    noise: lt.Noise = lt.Bernoulli() if coins else lt.Gaussian(sigma)
    place = int(rng.integers(len(POLICIES)))
    light = place >= 3
    units = math.exp(rng.uniform(math.log(0.05), math.log(0.5 if light else 1.5)))
    horizon = 4 * round(math.exp(rng.uniform(math.log(200), math.log(2000))) / 4)
    share = float(rng.choice([1 / 3, rng.uniform(0.1, 0.7)]))
    problem = lt.Bandit(means.tolist(), noise)
    return Case(POLICIES[place](units * sigma), problem, horizon, share * problem.worst_loss(horizon))


def answer(case: Case, paths: int, seed: int) -> Growth | None:
    settings = {"horizon": case.horizon, "threshold": case.threshold, "paths": paths, "seed": seed}
    return lt.compare([case.policy], case.problem, **settings).entries[0].growth  # type: ignore[arg-type]


def judge(case: Case, found: Growth | None) -> str:
    """'right', 'wrong' or 'not told'."""
    if found is None or found.answer not in (POWER, ROOT, HARDLY):
        return "not told"
    return "right" if found.answer in RIGHT[case.policy.light_tailed] else "wrong"


def battery(problems: int, seed: int, paths: int = 5000, show: bool = False) -> Counter[tuple[str, str]]:
    """How often each judgement was made, by group."""
    rng, found = np.random.default_rng(seed), Counter[tuple[str, str]]()
    for place in range(problems):
        case = draw(rng)
        growth = answer(case, paths, seed=place)
        verdict = judge(case, growth)
        found[case.group, verdict] += 1
        if show:
            told = growth and (growth.exponents, growth.ratio, growth.chances)
            print(place, verdict, case, told, flush=True)
    return found


def summary(found: Counter[tuple[str, str]]) -> str:
    lines = []
    for group in sorted({group for group, _ in found}):
        counts = [found[group, verdict] for verdict in ("right", "wrong", "not told")]
        lines.append(f"{group}: {counts[0]} right, {counts[1]} wrong, {counts[2]} not told")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--paths", type=int, default=5000)
    given = parser.parse_args()
    print(summary(battery(given.problems, given.seed, given.paths, show=True)))


if __name__ == "__main__":
    main()
