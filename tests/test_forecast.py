"""Forecasts: paths continue from a state, and forecasts come true as often as they say."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lighttail as lt
from lighttail.checks import BadInput
from lighttail.forecasting import _so_far, forecast_from, lost
from lighttail.inference import BoundedRewards, SubGaussianRewards
from lighttail.inference.evidence import Heard
from lighttail.running.continued import continued

COINS = BoundedRewards(0, 1)
POLICY = lt.UCB(lt.LightTailed(0.1))
HORIZON = 300


def half_way(means: Any, seed: int, pulls: int = HORIZON // 2, open_trials: int = 0) -> lt.Experiment:
    """An experiment with conversions after some pulls."""
    rng = np.random.default_rng([seed, 9])
    experiment = lt.Experiment(POLICY, arms=["A", "B", "C"], horizon=HORIZON, seed=seed)
    luck = rng.random(pulls)
    for place in range(pulls):
        trial = experiment.ask()
        if place < pulls - open_trials:
            experiment.tell(trial.id, float(luck[place] < means["ABC".index(str(trial.arm))]))
    return experiment


def heard_by(experiment: lt.Experiment) -> list[Heard]:
    counts = experiment.beginning().counts
    return [Heard(int(times), float(total)) for times, total in zip(counts[1], counts[2], strict=True)]


@pytest.mark.parametrize("open_trials", [0, 5])
@pytest.mark.parametrize("delay", [None, 20])
def test_a_path_is_that_of_simulate(open_trials: int, delay: int | None) -> None:
    experiment = half_way([0.3, 0.4, 0.5], 1, open_trials=open_trials)
    means = np.array([[0.3, 0.4, 0.5]])
    found = continued(experiment.beginning(), lt.Bernoulli(), means, HORIZON, seed=4, delay=delay)
    problem = lt.Bandit([0.3, 0.4, 0.5], lt.Bernoulli())
    settings: Any = {"horizon": HORIZON, "paths": 1, "seed": 4, "start": experiment, "delay": delay}
    alone = lt.simulate(POLICY, problem, **settings)
    assert np.array_equal(found, alone.pulls)
    assert lost(found, means) == pytest.approx(alone.pseudo_regret)


def test_every_path_has_means_of_its_own_and_threads_change_nothing() -> None:
    start = half_way([0.3, 0.4, 0.5], 1).beginning()
    means = np.random.default_rng(1).uniform(0.1, 0.9, (250, 3))
    found = continued(start, lt.Bernoulli(), means, HORIZON, seed=4)
    assert np.array_equal(found, continued(start, lt.Bernoulli(), means, HORIZON, seed=4, threads=2))
    alone = continued(start, lt.Bernoulli(), means[:1], HORIZON, seed=4)
    assert np.array_equal(found[:1], alone)
    other = continued(start, lt.Bernoulli(), means[::-1].copy(), HORIZON, seed=4)
    assert not np.array_equal(found, other)  # negative control: the means matter


def test_posterior_is_the_one_that_bayes_rule_gives() -> None:
    rng = np.random.default_rng(2)
    arms = [Heard(40, 12.0), Heard(0, 0.0)]
    for evidence, between, likelihood in (
        (COINS, (0.1, 0.35), lambda mu: mu**12 * (1 - mu) ** 28),
        (SubGaussianRewards(2.0), (0.0, 0.5), lambda mu: np.exp(-40 * (mu - 0.3) ** 2 / 8)),
    ):
        grid = np.linspace(*between, 4001)
        weight = likelihood(grid) / likelihood(grid).sum()
        mean, sd = (grid * weight).sum(), math.sqrt((grid**2 * weight).sum() - (grid * weight).sum() ** 2)
        draws = evidence.posterior(arms, rng, 20_000, between)
        assert abs(draws[:, 0].mean() - mean) < 4 * sd / math.sqrt(20_000)
        assert abs(draws[:, 0].std() - sd) < 0.03 * sd
        assert abs(draws[:, 1].mean() - sum(between) / 2) < 0.01 * (between[1] - between[0])
        far = evidence.posterior([Heard(10**6, -9e6 if evidence is not COINS else 0.0)], rng, 3, between)
        assert far[:, 0] == pytest.approx(between[0], abs=1e-4)  # nothing in between is likely
    free = COINS.posterior(arms, rng, 20_000)
    assert abs(free[:, 0].mean() - 12.5 / 41) < 4 * free[:, 0].std() / math.sqrt(20_000)


@pytest.mark.slow
def test_forecasts_come_true_as_often_as_they_say() -> None:
    """500 experiments stopped half-way, whose means are drawn from the stated prior: the sum of what came
    true minus what was forecast is within 4 standard errors (z = 4). The same with the observed means in
    place of the posterior law fails."""
    between, loss, paths, rng = (0.2, 0.6), 22.0, 60, np.random.default_rng(7)
    rows = []
    for seed in range(500):
        truth = rng.uniform(*between, 3)
        experiment = half_way(truth, seed)
        heard = heard_by(experiment)
        drawn = COINS.posterior(heard, rng, paths, between)
        plain = np.tile([one.total / one.times for one in heard], (paths, 1))
        means = np.vstack([drawn, plain, truth])
        reached = (
            lost(continued(experiment.beginning(), COINS.noise, means, HORIZON, seed=seed), means) >= loss
        )
        rows.append((reached[:paths].mean(), reached[paths : 2 * paths].mean(), reached[-1]))
    said, plugged, came = np.array(rows).T

    def z(forecast: np.ndarray) -> float:
        variance = (forecast * (1 - forecast)).sum() * (1 + 1 / paths) + 1e-9
        return float((came - forecast).sum() / math.sqrt(variance))

    assert 0.02 < came.mean() < 0.2
    assert abs(z(said)) < 4.0
    assert z(plugged) > 4.0  # negative control: means that are taken for the truth promise too much


def test_a_forecast_says_what_it_found() -> None:
    experiment = half_way([0.3, 0.4, 0.5], 1)
    ask: dict[str, Any] = {"horizon": HORIZON, "loss": 30.0, "paths": 400, "seed": 3, "threads": 1}
    found = forecast_from(experiment.beginning(), experiment.arms, COINS, **ask)
    assert found.losses.size == 400
    assert found.chance.value == (found.losses >= 30.0).mean()
    assert found.worst.value >= found.chance.low
    assert found.so_far.low <= found.so_far.value <= found.so_far.high
    assert found.mean_loss.value == pytest.approx(found.losses.mean())
    assert set(found.worst_means) == {"A", "B", "C"}
    assert str(found).startswith("After 300 pulls the experiment will have lost ")
    assert set(found.to_dict()) == {
        "loss",
        "horizon",
        "pulls",
        "chance",
        "worst",
        "mean_loss",
        "so_far",
        "distribution",
    }
    again = forecast_from(experiment.beginning(), experiment.arms, COINS, **ask)
    assert np.array_equal(found.losses, again.losses)
    sure = forecast_from(experiment.beginning(), experiment.arms, COINS, **ask | {"loss": 299.0})
    assert sure.chance.value == sure.worst.value == 0.0
    assert "at most" in str(sure)


def test_an_experiment_forecasts_itself() -> None:
    experiment = half_way([0.3, 0.4, 0.5], 1)
    ask: dict[str, Any] = {"loss": 30.0, "paths": 400, "seed": 3, "threads": 1}
    found = experiment.forecast(**ask)
    same = forecast_from(experiment.beginning(), experiment.arms, COINS, horizon=HORIZON, **ask)
    assert np.array_equal(found.losses, same.losses)
    known = experiment.forecast(**ask, problem=lt.Bandit([0.3, 0.4, 0.5], lt.Bernoulli()))
    assert known.so_far.low == pytest.approx(known.so_far.value)
    assert known.so_far.high == pytest.approx(known.so_far.value)
    assert known.worst_means == {"A": 0.3, "B": 0.4, "C": 0.5}
    assert known.losses.std() < found.losses.std()  # the means vary no more
    with pytest.raises(BadInput, match="problem must be a Bandit with 3 arms"):
        experiment.forecast(**ask, problem=lt.Bandit([0.3, 0.4]))
    endless = lt.Experiment(lt.UCB(lt.AnyTime(0.5)), ["A", "B"])
    with pytest.raises(BadInput, match="horizon must be given"):
        endless.forecast(loss=3.0)
    now = experiment.intervals()
    assert all(now.means[arm].low < mean < now.means[arm].high for arm, mean in known.worst_means.items())


def test_the_worst_problem_keeps_to_what_is_known_and_is_hard_to_see() -> None:
    """At the start, arms that are hardly worse than the best one are the worst problem; the average over all
    problems cannot be riskier than the worst of them, by more than luck."""
    fresh = lt.Experiment(POLICY, arms=["A", "B", "C"], horizon=HORIZON, seed=1)
    between, ask = (0.2, 0.6), {"loss": 30.0, "paths": 2000, "seed": 3, "threads": 1}
    found = fresh.forecast(between=between, **ask)
    assert all(0.2 <= mean <= 0.6 for mean in found.worst_means.values())
    assert found.worst.high >= found.chance.low
    hard = fresh.forecast(**ask, problem=lt.Bandit([0.6, 0.45, 0.45], lt.Bernoulli()))
    assert found.worst.high >= hard.chance.low


def test_the_loss_so_far_is_within_its_range() -> None:
    rng = np.random.default_rng(3)
    tried, limits = np.array([50.0, 20.0, 80.0]), [(0.1, 0.4), (0.2, 0.9), (0.3, 0.35)]
    inside = rng.uniform([0.1, 0.2, 0.3], [0.4, 0.9, 0.35], (20_000, 3))
    losses = lost(np.broadcast_to(tried, inside.shape), inside)
    found = _so_far(tried, inside, limits)
    assert found.low <= losses.min() < found.low + 3.0
    assert found.high - 8.0 < losses.max() <= found.high
    assert found.value == pytest.approx(losses.mean())


def test_the_loss_so_far_has_no_limit_while_a_mean_has_none() -> None:
    """An arm that has just joined has no limits if noise has none, and nothing limits what was lost."""
    rng = np.random.default_rng(1)
    experiment = lt.Experiment(lt.UCB(lt.AnyTime(0.5)), arms=["A", "B"], seed=1)
    for _ in range(60):
        trial = experiment.ask()
        experiment.tell(trial.id, float(trial.arm == "B") + rng.standard_normal())
    ask: Any = {"loss": 5, "horizon": 200, "paths": 100, "seed": 1, "rewards": SubGaussianRewards(1.0)}
    before = experiment.forecast(**ask).so_far
    assert before.low <= before.value <= before.high < 300.0
    experiment.add("C")
    after = experiment.forecast(**ask).so_far
    assert (after.low, after.high) == (0.0, math.inf)
    fresh = lt.Experiment(POLICY, arms=["A", "B"], horizon=HORIZON, seed=1)
    assert fresh.forecast(**ask | {"horizon": HORIZON}).so_far == (0.0, 0.0, 0.0)  # there was no pull


def test_a_known_problem_says_what_can_be_lost() -> None:
    experiment = half_way([0.9, 0.4, 0.5], 1)
    known = lt.Bandit([0.0, 10.0, 20.0])
    found = experiment.forecast(loss=2000, problem=known, paths=100, seed=1)
    assert found.most == 20.0 * HORIZON >= found.losses[-1]
    assert found.mean_loss.low <= found.mean_loss.value <= found.mean_loss.high
    with pytest.raises(BadInput, match="loss must be at most 6,000, because no policy can lose more"):
        experiment.forecast(loss=6001, problem=known, paths=100, seed=1)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"horizon": 10}, "horizon must be a whole number of at least 150"),
        ({"loss": 0.0}, "loss must be"),
        ({"loss": 1e6}, "loss must be at most 300, because no policy can lose more"),
        ({"paths": 5}, "paths must be"),
        ({"threads": 10**5}, "threads must be a whole number of at most 10000"),
        ({"between": (0.4, 0.2)}, "between must be two numbers"),
        ({"evidence": "coins"}, "rewards must be BoundedRewards"),
        ({"evidence": BoundedRewards(0.0, 0.2)}, "the sum of the rewards of 'A' must be"),
    ],
)
def test_bad_input_gets_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    experiment = half_way([0.9, 0.4, 0.5], 1)
    given: dict[str, Any] = {"horizon": HORIZON, "loss": 30.0, "evidence": COINS, **changes}
    with pytest.raises(BadInput, match=sentence):
        forecast_from(experiment.beginning(), experiment.arms, given.pop("evidence"), **given)


@pytest.mark.parametrize("place", [0, 2])
def test_calibration(place: int) -> None:
    """A small version of docs/calibration.py: 5 % and 20 % come true that often, within z = 4 standard
    errors; with the observed means in place of the posterior law they come true too often."""
    path = Path(__file__).parents[1] / "docs" / "calibration.py"
    spec = importlib.util.spec_from_file_location("calibration", path)
    assert spec is not None
    script = importlib.util.module_from_spec(spec)
    sys.modules["calibration"] = script
    spec.loader.exec_module(script)  # type: ignore[union-attr]
    setting = script.SETTINGS[place]._replace(horizon=300)
    found, plugged = script.ranks(setting, experiments=300, ends=19)
    for chance in (0.05, 0.2):
        assert abs(script.errors(found, 19, chance)) < 4.0
        assert script.errors(plugged, 19, chance) > 4.0  # negative control
