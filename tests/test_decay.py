"""How fast tails fall with the horizon: estimated, resumable, and as theory says."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
from pathlib import Path
from typing import Any

import pytest

from lighttail import cli
from lighttail.paper import EXPERIMENTS, run, run_tails
from lighttail.paper.decay import (
    LinearRegretChances,
    certificate_exponent,
    exponents_figure,
    standard_exponent,
    theorem_exponent,
)
from lighttail.paper.experiments import PaperExperiment, Setting

decay = importlib.import_module("lighttail.paper.decay")
WHOLE = next(experiment for experiment in EXPERIMENTS if experiment.name == "beyond-4")


def cut(*horizons: int) -> PaperExperiment:
    """The part at other horizons."""
    first = [setting for setting in WHOLE.tails if setting.horizon == 500]
    tails = [dataclasses.replace(setting, horizon=horizon) for setting in first for horizon in horizons]
    some = tuple(setting for setting in WHOLE.settings if setting.horizon == 500)
    return dataclasses.replace(WHOLE, settings=some, tails=tuple(tails))


def exponent(chances: LinearRegretChances, series: str, horizon: int) -> float:
    (found,) = [c for s, c in chances.items() if (s.series, s.horizon) == (series, horizon)]
    return -math.log(found.estimate.value)


@pytest.fixture(scope="module")
def chances(tmp_path_factory: pytest.TempPathFactory) -> LinearRegretChances:
    decay.EXACT_SECONDS, before = 0.0, decay.EXACT_SECONDS  # the exact values are in the test below
    try:
        return run_tails([cut(500, 8000)], tmp_path_factory.mktemp("tails"), seed=3, threads=2)
    finally:
        decay.EXACT_SECONDS = before


@pytest.mark.slow
def test_the_standard_tail_is_polynomial_and_the_new_ones_are_exponential(
    chances: LinearRegretChances,
) -> None:
    """From T = 500 to 8,000: over ln T the standard one is level, over sqrt T the new ones are."""

    def growth(series: str, unit: Any) -> float:
        return exponent(chances, series, 8000) / exponent(chances, series, 500) * unit(500) / unit(8000)

    assert 0.8 < growth("UCB", math.log) < 1.1
    for series in ("UCB_new", "UCB_any", "SE_new"):
        assert 1.0 < growth(series, math.sqrt) < 1.4
        assert growth(series, math.log) > 2.0  # control: not level over the other one
    assert growth("UCB", math.sqrt) < 0.5


def test_exponents_of_theory_lie_on_their_side(chances: LinearRegretChances) -> None:
    """The theorem's is too small, the certificate's close, the standard one's the limit from below."""
    for series, kappa, close in (("UCB_new", 0.2, 0.1), ("SE_new", 0.1, 0.05)):
        found = exponent(chances, series, 8000)
        assert theorem_exponent(8000, kappa) < 0.05 * found
        assert certificate_exponent(8000, kappa) == pytest.approx(found, rel=close)
        assert certificate_exponent(8000, 1.3 * kappa) != pytest.approx(found, rel=close)  # control
    over_log = [exponent(chances, "UCB", horizon) / math.log(horizon) for horizon in (500, 8000)]
    assert standard_exponent(0.8) < over_log[1] < over_log[0] < 1.0


def test_theory_by_hand() -> None:
    t = 10_000.0
    assert theorem_exponent(t, 0.2) == pytest.approx(0.2 * t * 0.2 * math.sqrt(math.log(t)) / (16.0 * 100.0))
    assert certificate_exponent(t, 0.2) == pytest.approx(2 * 0.2 * 100.0 * math.sqrt(math.log(t)) * 0.6)
    assert standard_exponent(0.8, sigma=2.0) == pytest.approx(0.08)


def test_a_stopped_run_goes_on_and_a_broken_or_foreign_file_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = cut(100)
    calls: list[Setting] = []
    once = decay._chance

    def stop_at_the_third(setting: Setting, *settings: Any) -> Any:
        calls.append(setting)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return once(setting, *settings)

    monkeypatch.setattr(decay, "_chance", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        run_tails([part], tmp_path, seed=1)
    assert len(list(tmp_path.iterdir())) == 2
    found = run_tails([part], tmp_path, seed=1)
    assert len(calls) == 5  # the third again, and the fourth
    assert found == run_tails([part], tmp_path, seed=1)
    assert len(calls) == 5
    first, second, *_ = (tmp_path / f"tail_{setting.slug}.json" for setting in part.tails)
    first.write_bytes(first.read_bytes()[:40])
    kept = json.loads(second.read_text())
    kept["settings"]["seed"] = 2
    second.write_text(json.dumps(kept))
    assert found == run_tails([part], tmp_path, seed=1)
    assert len(calls) == 7
    for setting, chance in found.items():
        assert (chance.exact is None) == (setting.series not in ("UCB", "UCB_new"))
        if chance.exact is not None:
            assert chance.estimate.value == pytest.approx(chance.exact, rel=0.12)  # z = 4.7 at 5 %


def test_the_command_makes_the_part_alone_and_the_same_bytes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chances: LinearRegretChances
) -> None:
    monkeypatch.setattr("lighttail.paper.EXPERIMENTS", (cut(500, 8000),))
    monkeypatch.setattr(decay, "_chance", lambda setting, *settings: chances[setting])
    pictures = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        words = ["paper", "--only", "beyond-4", "--paths", "400", "--out", str(folder)]
        monkeypatch.setattr("sys.argv", ["lighttail", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert not ended.value.code
        assert 'id="beyond-4"' in (folder / "paper.html").read_text()
        pictures.append([(folder / f"beyond-4.{form}").read_bytes() for form in ("png", "svg", "pdf")])
    assert pictures[0] == pictures[1]


def test_the_figure_has_every_series_in_both_panels(chances: LinearRegretChances, tmp_path: Path) -> None:
    part = cut(500, 8000)
    results = run([part], tmp_path, paths=400, seed=1)
    figure = exponents_figure(part, results, chances)
    for axes in figure.axes:
        drawn = {text for text in axes.get_legend_handles_labels()[1] if text.endswith("estimated")}
        assert len(drawn) == 4
    (legend,) = figure.legends
    assert any("theorem" in text.get_text() for text in legend.get_texts())
