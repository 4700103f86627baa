"""Problems that nobody chose, judged by exact answers, and the faults that such problems brought to light."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from battery import Verdict, battery, draw, judge, summary, truths

import lighttail as lt
from lighttail.tails import elimination_routes, index_routes, mixture, routes, weighted
from lighttail.tails.task import TailEstimate

pytestmark = pytest.mark.slow

# Small enough for the suite: the whole battery is a script of its own.
OFF = 1.5  # a plan that misses by this factor is a wrong one
CHEAP: dict[str, Any] = {"relative_error": 0.25, "most_pulls": 5_000_000}


def fair(verdicts: list[Verdict]) -> None:
    """No wrong number with `reached`; and as many intervals cover as the 95 % allow, at z = 3."""
    assert not [str(one) for one in verdicts if one.wrong]
    missed = sum(not one.covers for one in verdicts)
    count = len(verdicts)
    assert missed <= 0.05 * count + 3.0 * math.sqrt(0.05 * 0.95 * count), summary(verdicts)


@pytest.mark.parametrize("noise", ["coins", "bell"])
def test_what_auto_answers(noise: str) -> None:
    verdicts = battery(8, 101, noise, plain=100_000, **CHEAP)
    fair(verdicts)
    assert sum(one.found.reached for one in verdicts) >= 6


@cache
def weighted_paths(seed: int) -> list[Verdict]:
    return battery(5, seed, "coins", exact_only=True, method="importance", **CHEAP)


@pytest.mark.parametrize("seed", range(3))
def test_weighted_paths_without_any_exact_help(seed: int) -> None:
    verdicts = weighted_paths(200 + seed)
    fair(verdicts)
    assert sum(one.found.reached for one in verdicts) >= 3


def test_intervals_that_are_too_narrow_are_caught() -> None:
    """Negative control: the same estimates with a tenth of the width, and a third more than they are."""
    wrong = [replace(one, found=_moved(one.found)) for one in weighted_paths(200)]
    with pytest.raises(AssertionError):
        fair(wrong)


def _moved(found: TailEstimate) -> TailEstimate:
    value = min(1.0, 1.5 * found.value)
    return replace(found, value=value, low=value * 0.99, high=min(1.0, value * 1.01))


# -- Faults that were found by problems that nobody had chosen. Each is put back into the first plan.


def two_sided(family: Any, means: Any, grid: Any, below: Any, above: Any, later: Any) -> Any:
    """Every arm is put *at* the level, also one that is below it without any help."""
    table = routes_table(family, means, grid, below, above, later)
    nu = later[:, None, None]
    wanted = np.where(np.isfinite(below), below, means[:, None])
    lam = family.lam(means[:, None], family.at_most(grid[0], wanted))
    cost = (lam - nu) * grid[0] * wanted - grid[0] * family.psi(means[:, None], lam)
    return replace(table, cost=cost, tilt=lam, held=np.full(cost.shape, True))


def common_mean(problem: Any, family: Any, plans: Any, defence: float = mixture.DEFENCE) -> Any:
    """Bad luck lowers the *means* of all arms alike, and not below 1e-9."""
    true = np.array(problem.means)
    best = int(np.argmax(true))
    first = plans[0]
    shift = true[best] - family.mean(true[best], first.later[:, best])
    later = family.lam(true, np.maximum(true - shift[:, None], 1e-9))
    lam = np.where(first.later[:, :, None] != 0.0, later[:, :, None], first.lam)
    return real_mixed(problem, family, [replace(first, later=later, lam=lam), *plans[1:]], defence)


def last_caps(parts: list[Any]) -> Any:
    """The last part's caps for the routes of all parts."""
    found = real_together(parts)
    caps = np.broadcast_to(np.nanmin(parts[-1].caps, axis=(0, 2))[None, :, None], found.caps.shape)
    return replace(found, caps=np.minimum(np.nan_to_num(caps, posinf=1.0), 1.0))


routes_table, real_mixed, real_together = routes.table_of, mixture.mixed, mixture.together
FAULTS = {
    "two-sided levels": [(index_routes, "table_of", two_sided), (elimination_routes, "table_of", two_sided)],
    "a common mean": [(mixture, "mixed", common_mean)],
    "one part's caps": [(index_routes, "together", last_caps), (elimination_routes, "together", last_caps)],
}


@cache
def rare_cases(count: int) -> list[tuple[Any, Any]]:
    """Coins with an exact law and a regret with its luck, at chances below 1e-4."""
    found: list[tuple[Any, Any]] = []
    place = 0
    while len(found) < count:
        rng = np.random.default_rng([77, place])
        place += 1
        case = draw(rng, "coins")
        if isinstance(case.policy, lt.ThompsonSampling) or case.kind != "regret" or case.horizon > 60:
            continue
        truth = truths(case, rng, 0.2, exact_only=True)
        if truth is not None and 1e-11 < truth.value < 1e-4:
            found.append((case, truth))
    return found


real_ladder = cache(weighted.ladder)


@pytest.fixture
def one_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second plan uses none of what the faults change: find it once for all of them."""
    monkeypatch.setattr(weighted, "ladder", real_ladder)


def judged() -> list[Verdict]:
    return [judge(case, truth, 3, method="importance", **CHEAP) for case, truth in rare_cases(6)]


def first_misses(verdicts: list[Verdict]) -> list[float]:
    """By what factor, on a log scale, the first plan alone misses; where there are two."""
    both = [one for one in verdicts if len(one.found.diagnostics.opinions) == 2]
    return [abs(math.log(max(one.found.diagnostics.opinions[0], 1e-300) / one.truth.value)) for one in both]


@pytest.mark.usefixtures("one_ladder")
def test_the_first_plan_is_right_on_these() -> None:
    misses = first_misses(judged())
    assert len(misses) >= 5
    assert max(misses) < math.log(OFF)


@pytest.mark.usefixtures("one_ladder")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_was_there_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first plan is off on some of the problems, and whatever is wrong is not called reached."""
    for module, attribute, wrong in FAULTS[fault]:
        monkeypatch.setattr(module, attribute, wrong)
    verdicts = judged()
    assert max(first_misses(verdicts)) > math.log(OFF)
    assert not [str(one) for one in verdicts if one.wrong]
