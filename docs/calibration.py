"""Forecasts and what became of them: writes images/forecast-calibration.png and the table of forecasts.md.

    make calibration

Experiments on problems that are drawn from the stated prior are stopped half-way. A forecast of 5 % is the
loss X that 5 % of the simulated ends reach; the experiment then goes on with its true means, and either
reaches X or does not. If the forecast is right, 5 % of the experiments do, exactly: given the rewards so far,
the true end and the simulated ends have the same law, so that the true end is equally likely to have any rank
among them. The control takes the observed means for the truth. About four minutes of one processor."""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import lighttail as lt
from lighttail.forecasting import lost
from lighttail.inference import BoundedRewards, Evidence, SubGaussianRewards
from lighttail.inference.evidence import Heard
from lighttail.outcomes.estimates import proportion
from lighttail.running.continued import continued

Floats = npt.NDArray[np.float64]
HERE = Path(__file__).parent
PICTURE, PAGE = HERE / "images" / "forecast-calibration.png", HERE / "forecasts.md"
MARKS = "<!-- calibration -->", "<!-- end of calibration -->"
CHANCES = (0.01, 0.05, 0.2)
EXPERIMENTS, ENDS = 3_000, 999
ENDS_OF_AXES = 0.0035, 0.8
BLUE, ORANGE = "#1f5fa8", "#c8641b"


class Setting(NamedTuple):
    """Experiments of one kind. between: the limits of all means."""

    name: str
    policy: Any
    evidence: Evidence
    between: tuple[float, float]
    horizon: int


SETTINGS = (
    Setting("rates of 20 % to 60 %", lt.UCB(lt.LightTailed(0.1)), BoundedRewards(), (0.2, 0.6), 1000),
    Setting("rates of 2 % to 8 %", lt.UCB(lt.AnyTime(0.05)), BoundedRewards(), (0.02, 0.08), 1200),
    Setting("normal rewards", lt.ThompsonSampling(1.0), SubGaussianRewards(1.0), (-0.5, 0.5), 600),
)


def half_way(setting: Setting, truth: Floats, seed: int) -> lt.Experiment:
    """An experiment after half of its pulls."""
    pulls = setting.horizon // 2
    experiment = lt.Experiment(setting.policy, arms=[0, 1, 2], horizon=setting.horizon, seed=seed)
    rng = np.random.default_rng([seed, 1])
    coins = setting.evidence.noise == lt.Bernoulli()
    luck = rng.random(pulls) if coins else rng.standard_normal(pulls)
    for shock in luck:
        trial = experiment.ask()
        mean = truth[int(trial.arm)]
        experiment.tell(trial.id, float(shock < mean) if coins else float(mean + shock))
    return experiment


def ranks(setting: Setting, experiments: int, ends: int, seed: int = 1) -> tuple[Floats, Floats]:
    """How many of the simulated ends lose at least as much as the true end, per experiment: with means from
    their posterior law, and with the observed means."""
    rng = np.random.default_rng([seed, 2])
    found: list[tuple[int, int]] = []
    for number in range(experiments):
        truth = rng.uniform(*setting.between, 3)
        start = half_way(setting, truth, number).beginning()
        heard = [Heard(int(n), float(s)) for n, s in zip(start.counts[1], start.counts[2], strict=True)]
        drawn = setting.evidence.posterior(heard, rng, ends, setting.between)
        observed = [one.total / one.times if one.times else sum(setting.between) / 2 for one in heard]
        means = np.vstack([truth, drawn, np.tile(observed, (ends, 1))])
        losses = lost(continued(start, setting.evidence.noise, means, setting.horizon, seed=number), means)
        above = losses[1:] >= losses[0]
        found.append((int(above[:ends].sum()), int(above[ends:].sum())))
    one, other = np.array(found, dtype=np.float64).T
    return one, other


def came_true(above: Floats, ends: int, chance: float) -> int:
    """In how many experiments the true end reached the loss that was forecast with this chance: fewer than
    chance (ends + 1) simulated ends lost as much."""
    return int((above < round(chance * (ends + 1))).sum())


def errors(above: Floats, ends: int, chance: float) -> float:
    """How many standard errors more often than forecast it came true."""
    count = len(above)
    return (came_true(above, ends, chance) - count * chance) / math.sqrt(count * chance * (1.0 - chance))


def table(found: dict[str, tuple[Floats, Floats]]) -> str:
    lines = ["| experiments | forecast | came true | came true, observed means |", "|---|---|---|---|"]
    for name, both in found.items():
        for chance in CHANCES:
            shares = [proportion(came_true(above, ENDS, chance), len(above), 0.95) for above in both]
            said = [f"{100 * s.value:.2g} % ({100 * s.low:.2g} to {100 * s.high:.2g})" for s in shares]
            lines.append(f"| {name} | {100 * chance:g} % | {said[0]} | {said[1]} |")
    return "\n".join(lines)


def draw(found: dict[str, tuple[Floats, Floats]]) -> None:
    """The picture: how often forecasts came true, over what they said."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(10.5, 3.8), sharey=True, layout="constrained")
    grid = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]
    for place, (name, both) in zip(axes, found.items(), strict=True):
        place.plot(ENDS_OF_AXES, ENDS_OF_AXES, color="#888", lw=1)
        for above, colour, label, move in (
            (both[0], BLUE, "forecast", 0.97),
            (both[1], ORANGE, "observed means taken for the truth", 1.03),
        ):
            shares = [proportion(came_true(above, ENDS, chance), len(above), 0.95) for chance in grid]
            value = np.array([share.value for share in shares])
            low, high = (np.array([getattr(share, end) for share in shares]) for end in ("low", "high"))
            bars = [value - low, high - value]
            x = np.array(grid) * move
            place.errorbar(x, value, bars, fmt="o", ms=4, lw=1.2, color=colour, label=label)
        place.set(xscale="log", yscale="log", title=name, xlabel="forecast chance")
        place.set(xlim=ENDS_OF_AXES, ylim=ENDS_OF_AXES)
        ticks = [0.01, 0.05, 0.2, 0.5]
        for axis in (place.xaxis, place.yaxis):
            axis.set_ticks(ticks, [f"{100 * tick:.0f} %" for tick in ticks])
            axis.set_ticks([], minor=True)
        place.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("share of experiments in which it came true")
    axes[0].legend(frameon=False, loc="upper left", fontsize=8.5)
    figure.savefig(PICTURE, dpi=150)


def main() -> int:
    found = {}
    for setting in SETTINGS:
        begun = time.process_time()
        found[setting.name] = ranks(setting, EXPERIMENTS, ENDS)
        print(f"{setting.name}: {time.process_time() - begun:.0f} processor seconds", flush=True)
        for chance in CHANCES:
            off = [f"{errors(above, ENDS, chance):+.1f}" for above in found[setting.name]]
            print(f"  {chance:.0%}: {off[0]} standard errors; with the observed means {off[1]}", flush=True)
    draw(found)
    text = PAGE.read_text()
    before, rest = text.split(MARKS[0])
    PAGE.write_text(f"{before}{MARKS[0]}\n{table(found)}\n{MARKS[1]}{rest.split(MARKS[1])[1]}")
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
