"""How a chance falls as an experiment grows: the arithmetic, the sources of chances, and the answers."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from verdict_battery import RIGHT, Case, judge

import lighttail as lt
from lighttail.outcomes.estimates import Estimate, proportion
from lighttail.outcomes.growth import CUT, HARDLY, POWER, ROOT, UNKNOWN, Growth, horizons_of
from lighttail.report.page import page
from lighttail.study import load_study, run_study
from lighttail.study.file import parse_study

HORIZONS = (500, 1000, 2000)
TWO = lt.Bandit([0.2, 0.8])


def growth_of(horizons: Any, chances: Any, source: str = "exact") -> Growth:
    """The growth from chances with limits, where the share that is lost does not matter."""
    return Growth(tuple(horizons), tuple(horizons), tuple(chances), (source,) * 3)


def growth(chances: Any, error: float = 0.0) -> Growth:
    """The growth from three chances, each with limits `error` below and above in its logarithm."""
    limited = [Estimate(p, p * math.exp(-error), min(1.0, p * math.exp(error)), 0.95) for p in chances]
    return growth_of(HORIZONS, limited)


@pytest.mark.parametrize(
    ("law", "ratio", "answer"),
    [
        (lambda t: 2.0 * t**-0.7, 1.0, POWER),
        (lambda t: math.exp(-0.5 * math.sqrt(t)), math.sqrt(2.0), ROOT),
        (lambda t: math.exp(-0.01 * t), 2.0, ROOT),
        (lambda t: 0.3 * t**-0.01, 1.0, HARDLY),
        (lambda t: 1.0, math.nan, HARDLY),
    ],
)
def test_exact_chances_give_the_ratio_and_the_answer(law: Any, ratio: float, answer: str) -> None:
    found = growth(map(law, HORIZONS))
    assert found.ratio.value == pytest.approx(ratio, nan_ok=True)
    assert found.answer == answer


def test_wide_limits_give_no_answer_and_narrow_ones_do() -> None:
    for law, answer in ((lambda t: t**-0.7, POWER), (lambda t: math.exp(-0.5 * math.sqrt(t)), ROOT)):
        assert growth(map(law, HORIZONS), error=0.02).answer == answer
        assert growth(map(law, HORIZONS), error=3.0).answer == UNKNOWN  # negative control
    narrow, wide = (growth([2e-2, 1e-2, 5e-3], error).ratio for error in (0.02, 0.1))
    assert wide.low < narrow.low < 1.0 < narrow.high < wide.high


def test_the_limits_of_the_ratio_hold_their_level() -> None:
    """The 95 % limits miss in at most 5 % of 400 samples, and z = 3 standard errors more."""
    rng, paths = np.random.default_rng(1), 20_000
    missed = wrong = 0
    for _ in range(400):
        hits = [int(rng.binomial(paths, 8.0 * horizon**-0.9)) for horizon in HORIZONS]
        found = growth_of(HORIZONS, [proportion(hit, paths, 0.95) for hit in hits], "counted")
        missed += not found.ratio.low <= 1.0 <= found.ratio.high
        wrong += found.answer == ROOT
    most = 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / 400)
    assert missed / 400 <= most
    assert wrong / 400 <= most


def test_no_path_at_the_end_may_still_tell_a_light_tail() -> None:
    """The upper limit stands for the chance: a chance that is lower still makes the ratio larger."""
    none = Estimate(0.0, 0.0, 1e-7, 0.95)
    counted = [proportion(round(p * 1e6), 10**6, 0.95) for p in (0.02, 0.002)]
    assert growth_of(HORIZONS, [*counted, none], "").answer == ROOT
    more = Estimate(0.0, 0.0, 2e-4, 0.95)  # negative control: so high a limit may be a power
    assert growth_of(HORIZONS, [*counted, more], "").answer == UNKNOWN
    assert growth_of(HORIZONS, [counted[0], none, none], "").answer == UNKNOWN


def test_usual_losses_are_no_tail() -> None:
    """A chance near 1 at T/4 falls fast whatever the tail is."""
    assert growth([0.9, 0.4, 0.02]).answer == UNKNOWN
    assert growth([0.09, 0.01, 0.0001]).answer == ROOT  # negative control


def test_a_ratio_that_gives_no_answer_is_given_a_reason() -> None:
    """Otherwise the page would show limits of a ratio above the cut, and no answer beside them."""
    exact = growth([0.109, 0.01, 1e-4])
    limited = growth([0.099, 0.01, 1e-4], error=0.05).chances
    counted = growth_of(HORIZONS, limited, "5,000 paths")
    assert min(exact.ratio.low, counted.ratio.low) > CUT
    assert (exact.short, exact.why_not) == ("not told", "10.9 % is no tail")
    assert (counted.short, counted.why_not) == ("not told", "up to 10.5 % is no tail")
    short = growth_of((13, 26, 52), exact.chances)
    assert short.why_not == "13 pulls are too few"
    for plain in ([0.09, 0.01, 1e-4], [2e-2, 1e-2, 5e-3], [0.3, 0.3, 0.3]):  # negative control
        assert growth(plain).why_not == ""
    assert growth([0.3, 0.1, 0.01], error=3.0).why_not == ""  # the limits lie on both sides


def test_the_page_says_both_conditions_and_the_reason() -> None:
    coins = lt.Bandit([0.2, 0.8], lt.Bernoulli())
    compared = lt.compare([lt.UCB(lt.LightTailed(0.2))], coins, horizon=400, threshold=20, paths=500, seed=1)
    (entry,) = compared.entries
    assert entry.growth is not None
    assert entry.growth.why_not
    text = page(compared, "lighttail compare", b"", b"")
    assert f"not told: {entry.growth.why_not}" in text
    assert "lie below 1.2" in text
    assert "lie above 1.2 and the first chance is at most 10 %" in " ".join(text.split())


def test_short_experiments_get_no_answer_that_is_wrong_in_one_case_of_five() -> None:
    """Exact chances of UCB + Standard with coins, T = 156, that fall like exp(-sqrt T) for a while; and of
    UCB + LightTailed with loud noise, T = 52, that fall like a power. The same chances of longer experiments
    are answered (control)."""
    for horizons, values, otherwise in (
        ((39, 78, 156), (0.0876, 0.048, 0.0222), ROOT),
        ((13, 26, 52), (0.796, 0.72, 0.65), POWER),
        ((13, 26, 52), (0.796, 0.795, 0.794), HARDLY),
    ):
        chances = [Estimate(value, value, value, 0.95) for value in values]
        longer = [10 * horizon for horizon in horizons]
        assert growth_of(longer, chances).answer == otherwise
        short = growth_of(horizons, chances)
        assert short.answer == (HARDLY if otherwise == HARDLY else UNKNOWN)


def test_results_have_no_number_that_json_lacks() -> None:
    told = growth([1.0, 1.0, 1.0]).to_dict()
    assert told["answer"] == HARDLY
    assert told["ratio"]["value"] is None
    assert [point["horizon"] for point in told["points"]] == list(HORIZONS)


@pytest.mark.parametrize(
    ("policy", "source"),
    [
        (lt.UCB(lt.Standard(0.8)), "exact"),
        (lt.UCB(lt.LightTailed(0.2)), "exact"),
        (lt.SuccessiveElimination(lt.LightTailed(0.1)), " paths"),
        (lt.SuccessiveElimination(lt.Standard(0.4)), " paths"),
    ],
    ids=str,
)
def test_the_answer_is_that_of_the_theorem(policy: lt.Policy, source: str) -> None:
    found = lt.compare([policy], TWO, horizon=400, paths=2000, seed=1).entries[0].growth
    assert found is not None
    assert found.horizons == horizons_of(400) == (100, 200, 400)
    assert found.thresholds == (20.0, 40.0, 80.0)
    assert all(source in one for one in found.sources)
    assert found.answer in RIGHT[policy.light_tailed]
    assert judge(Case(policy, TWO, 400, 80.0), found) == "right"
    other = lt.UCB(lt.Standard(0.8) if policy.light_tailed else lt.LightTailed(0.2))
    assert judge(Case(other, TWO, 400, 80.0), found) == "wrong"  # negative control
    assert (found.ratio.value > CUT) == policy.light_tailed


@pytest.mark.parametrize("settings", [{"delay": 20}, {"batch": 10}, {"kind": "regret"}, {"keep": "law"}])
def test_every_comparison_is_answered(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lighttail.tails.growth.MOST_PULLS", 1_000_000)
    entry = lt.compare([lt.ThompsonSampling(0.8)], TWO, horizon=100, paths=200, seed=1, **settings).entries[0]
    assert entry.growth is not None
    assert entry.growth.answer in (POWER, ROOT, HARDLY, UNKNOWN)


def test_growth_is_left_out_where_it_is_not_asked_or_cannot_be_had() -> None:
    light = lt.UCB(lt.LightTailed(0.2))
    settings: dict[str, Any] = {"horizon": 100, "paths": 200, "seed": 1}
    assert lt.compare([light], TWO, **settings, growth=False).entries[0].growth is None
    assert lt.compare([light], TWO, **{**settings, "paths": 99}).entries[0].growth is None
    assert lt.compare([light], TWO, **{**settings, "horizon": 39}).entries[0].growth is None
    assert lt.compare([light], lt.Bandit([0.5, 0.5]), **settings).entries[0].growth is None
    many = [lt.UCB(lt.LightTailed(0.01 * k)) for k in range(1, 14)]
    assert lt.compare(many, TWO, **settings).entries[0].growth is None
    asked = lt.compare([light], TWO, **settings)
    assert asked.entries[0].growth is not None  # negative control
    assert "How this chance falls" in asked.verdict()
    assert "growth" not in asked.made_by
    assert "growth=False" in lt.compare([light], TWO, **settings, growth=False).made_by


def test_a_study_with_the_three_horizons_says_how_the_chance_falls(tmp_path: Path) -> None:
    text = """name = "growth"
paths = 300
seeds = [1]
horizons = [50, 100, 200]
threshold = 0.2

[[problem]]
name = "two"
means = [0.2, 0.8]

[[policy]]
policy = "se:standard:0.2"
"""
    study = parse_study(text, "study.toml", lambda name: tmp_path / name)
    run_study(study, tmp_path / "out")
    results = load_study(tmp_path / "out")
    early, late = (results.comparison(study.problems[0], horizon) for horizon in (100, 200))
    assert early is not None
    assert early.entries[0].growth is None  # negative control: there is no horizon 25
    assert late is not None
    found = late.entries[0].growth
    assert found is not None
    policy = lt.SuccessiveElimination(lt.Standard(0.2))
    for horizon, loss, chance in zip(found.horizons, found.thresholds, found.chances, strict=True):
        assert loss == pytest.approx(0.2 * horizon)
        alone = lt.simulate(policy, TWO, horizon=horizon, paths=300, seed=1)
        assert chance == alone.exceedance(loss)


@pytest.mark.parametrize(
    ("limits", "source"),
    [
        ((0.0, 0.265), "2,000 paths"),  # few large weights were met: the count says more
        ((0.009, 0.012), "importance sampling"),
        ((1e-10, 2e-10), "2,000 paths"),  # no large weight was met: this contradicts the count
    ],
)
def test_a_weighted_chance_stands_only_where_it_says_more_than_the_count(
    limits: tuple[float, float], source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    low, high = limits
    found = {"value": 0.5 * (low + high), "low": low, "high": high, "method": "importance sampling"}
    monkeypatch.setattr("lighttail.tails.growth.MOST_PULLS", 1_000)
    monkeypatch.setattr(
        "lighttail.tails.growth.tail_probability", lambda *given, **settings: SimpleNamespace(**found)
    )
    policy = lt.SuccessiveElimination(lt.LightTailed(0.06))
    (entry,) = lt.compare([policy], TWO, horizon=400, paths=2000, threshold=200, seed=1).entries
    assert 0.0 < entry.exceedance.value < 0.015  # below 30 hits
    assert entry.chance_source == source
    assert entry.chance.high <= 0.02
