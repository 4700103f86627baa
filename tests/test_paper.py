"""`lighttail paper`: every row at a small size, from outcomes alone, resumable and reproducible."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_exact import TABLE as EXACT
from test_exact import TUNED

from lighttail import cli
from lighttail.cli.paper import PARTS
from lighttail.outcomes.estimates import Estimate
from lighttail.outcomes.outcome import Outcome, PathsOutcome
from lighttail.paper import EXPERIMENTS, Setting, decay, experiments, run, settings_in, tails_in, write_paper
from lighttail.paper.decay import LinearRegretChance
from lighttail.paper.experiments import PUBLISHED, Results
from lighttail.paper.figures import decay_figure
from lighttail.paper.page import TABLES
from lighttail.paper.tables import few_words, mean_cells, means_table, readings_table
from lighttail.running import prepare
from lighttail.running.simulate import simulate

PATHS = 40
BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}
TABLE = BY_NAME["table-1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("paper")
    (place / "outcomes").mkdir()
    return place


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return run(EXPERIMENTS, folder / "outcomes", paths=PATHS, seed=5, threads=2)


def forbidden(*args: Any, **settings: Any) -> None:
    raise AssertionError("this was simulated already")


def test_the_help_lists_every_part() -> None:
    assert PARTS.split(", ") == [experiment.name for experiment in EXPERIMENTS]


def test_the_experiments_are_those_of_the_paper_in_its_order() -> None:
    labels = [experiment.label for experiment in EXPERIMENTS if experiment.label]
    assert labels == [
        "fig:exp3-ix",
        "table:mean-2",
        "fig:reward-distribution-2",
        "table:mean-4",
        "fig:reward-distribution-4",
        "fig:reward-distribution-tail-2",
        "fig:reward-distribution-tail-4",
        "fig:reward-distribution-mis-2",
        "fig:reward-distribution-mis-4",
    ]
    sizes = Counter({experiment.name: len(experiment.settings) for experiment in EXPERIMENTS})
    assert [sizes[f"figure-{number}"] for number in range(1, 8)] == [4, 24, 24, 24, 24, 24, 24]
    assert sizes["table-1"] == sizes["table-2"] == 28  # six policies and both readings of UCB_any
    ours = [setting for setting in settings_in(EXPERIMENTS) if isinstance(setting, Setting)]
    pulls = sum(setting.horizon for setting in ours) * 5000
    assert pulls == pytest.approx(1e9, rel=0.1)


def test_settings_that_experiments_share_are_one() -> None:
    assert set(BY_NAME["figure-2"].settings) < set(TABLE.settings)
    slugs = [setting.slug for setting in settings_in(EXPERIMENTS)]
    assert len(set(slugs)) == len(slugs)


def test_misjudged_noise_scales_the_variance_and_the_horizon_alike() -> None:
    for setting in BY_NAME["figure-6"].settings:
        assert setting.horizon == 500 * setting.variance
        assert setting.problem.noise.sigma**2 == pytest.approx(setting.variance)  # type: ignore[attr-defined]


def tabulated(policy: Any, problem: Any, horizon: int, regret: float) -> float:
    """An exact tail, from the table of `test_exact.py`."""
    assert (problem.means, regret) == ((0.2, 0.8), 0.2 * horizon)
    assert policy == TUNED[type(policy.bonus).__name__]
    return EXACT[type(policy.bonus).__name__, horizon]


def test_every_row_gives_its_files_and_its_place_in_the_page(
    folder: Path, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lighttail.paper.tables.exact_tail", tabulated)
    chances = dict.fromkeys(tails_in(EXPERIMENTS), LinearRegretChance(Estimate(1e-3, 8e-4, 2e-3, 0.95), None))
    page = write_paper(EXPERIMENTS, results, folder, "lighttail paper", chances=chances).read_text()
    for experiment in EXPERIMENTS:
        forms = ("csv", "tex") if experiment.view in TABLES else ("png", "pdf", "svg")
        for form in forms:
            assert (folder / f"{experiment.name}.{form}").stat().st_size > 100
        assert f'id="{experiment.name}"' in page
    assert "http" not in page.replace("http://www.w3.org", "").split("base64")[0]
    assert all((folder / "outcomes" / f"{setting.slug}.npz").exists() for setting in results)
    shown = (folder / "beyond-3.csv").read_text()
    assert all(f"{horizon},{chance:.6g}," in shown for (_, horizon), chance in EXACT.items())


def raised(outcome: PathsOutcome, by: float) -> PathsOutcome:
    """The same paths with higher rewards."""
    record = dataclasses.replace(outcome.record, reward=outcome.reward + by)
    return dataclasses.replace(outcome, record=record)


def test_every_number_of_a_table_comes_from_the_outcomes(results: Results) -> None:
    rows = list(csv.DictReader(io.StringIO(means_table(TABLE, results).to_csv())))
    assert len(rows) == len(TABLE.settings)
    for row, setting in zip(rows, TABLE.settings, strict=True):
        assert float(row["ours"]) == pytest.approx(results[setting].reward.mean(), abs=1e-3)
    moved = {setting: raised(outcome, 1000.0) for setting, outcome in results.items()}
    shown = means_table(TABLE, moved).to_html()
    for row in rows:
        assert f">{float(row['ours']) + 1000.0:.2f}<" in shown
        assert f">{row['published']}<" not in shown  # the published number is never ours


def test_a_wrong_published_number_is_marked_and_a_right_one_is_not() -> None:
    """At the paper's own size; negative control: a print error of 10 in one cell."""
    setting = next(s for s in TABLE.settings if (s.series, s.kappa) == ("UCB_new", 0.2))
    one = dataclasses.replace(TABLE, settings=(setting,))
    results = {setting: simulate(setting.policy, setting.problem, horizon=500, paths=5000, seed=1)}
    printed = PUBLISHED[2]["UCB_new"][1]
    right, wrong = ({2: {"UCB_new": (value,)}} for value in (printed, printed + 10.0))
    assert not mean_cells(one, results, right)[0].marked
    assert mean_cells(one, results, wrong)[0].marked


def test_marked_cells_are_explained_in_words(results: Results) -> None:
    moved = {
        setting: raised(outcome, 500.0 if setting.series == "SE" else 0.0)
        for setting, outcome in results.items()
    }
    notes = means_table(TABLE, moved).notes
    assert sum(note.startswith("SE at κ") and "No explanation is known." in note for note in notes) == 4


def test_a_loss_is_said_beside_what_the_best_arm_earns() -> None:
    manager = BY_NAME["beyond-1"]
    one = dataclasses.replace(manager, settings=manager.settings[:1])
    (setting,) = one.settings  # two arms with means of 0.2 and 0.8, 500 pulls
    outcome = simulate(setting.policy, setting.problem, horizon=500, paths=PATHS, seed=1)
    (note,) = readings_table(one, {setting: outcome}).notes
    assert "on average, of the 400 that pulling the best arm every time earns, and " in note
    assert f"loses {outcome.mean('regret').value:.0f} on average" in note


def test_few_paths_are_said_to_be_few(results: Results) -> None:
    said = "40 paths per setting are few, and the paper has 5,000: "
    assert means_table(TABLE, results).notes[0].startswith(said)
    assert few_words(999)
    assert few_words(1000) == ""
    assert few_words(5000) == ""


def test_a_chance_that_no_path_showed_is_drawn_as_an_upper_limit(results: Results) -> None:
    experiment = BY_NAME["figure-4"]
    figure = decay_figure(experiment, results)
    expected = 0
    for setting in experiment.settings:
        share = 0.2 if setting.series in ("SE", "UCB", "TS") else 0.04
        expected += results[setting].exceedance(share * setting.horizon, "regret").value == 0.0
    carets = [line for axes in figure.axes for line in axes.lines if line.get_marker() == 7]
    assert len(carets) == expected > 0


def test_two_runs_give_the_same_bytes(folder: Path, results: Results, tmp_path: Path) -> None:
    parts = [BY_NAME[name] for name in ("table-1", "figure-1", "figure-4", "beyond-1", "beyond-2")]
    (tmp_path / "outcomes").mkdir()
    again = run(parts, tmp_path / "outcomes", paths=PATHS, seed=5, threads=1)
    write_paper(parts, again, tmp_path, "lighttail paper")
    write_paper(parts, results, folder, "lighttail paper")
    made = [file for file in tmp_path.iterdir() if file.is_file() and file.name != "paper.html"]
    assert len(made) == 3 * 2 + 2 * 3
    for file in made:
        assert file.read_bytes() == (folder / file.name).read_bytes(), file.name


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def stop_after_three(*args: Any, **settings: Any) -> Outcome:
        calls.append(args)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return simulate(*args, **settings)

    monkeypatch.setattr(experiments, "simulate", stop_after_three)
    with pytest.raises(KeyboardInterrupt):
        run([TABLE], tmp_path, paths=PATHS, seed=5)
    assert len(list(tmp_path.iterdir())) == 3
    before = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    count = 0

    def counted(*args: Any, **settings: Any) -> Outcome:
        nonlocal count
        count += 1
        return simulate(*args, **settings)

    monkeypatch.setattr(experiments, "simulate", counted)
    results = run([TABLE], tmp_path, paths=PATHS, seed=5)
    assert count == len(TABLE.settings) - 3
    assert {file: file.stat().st_mtime_ns for file in before} == before
    monkeypatch.setattr(experiments, "simulate", forbidden)
    again = run([TABLE], tmp_path, paths=PATHS, seed=5)
    assert all(np.array_equal(again[setting].reward, results[setting].reward) for setting in results)


def test_what_is_stored_is_known_without_pilots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = dataclasses.replace(TABLE.settings[0], horizon=5000)
    one = dataclasses.replace(TABLE, settings=(long,))
    first = run([one], tmp_path, paths=PATHS, seed=5)[long]
    monkeypatch.setattr(prepare, "numbers_drawn", forbidden)
    assert np.array_equal(run([one], tmp_path, paths=PATHS, seed=5)[long].reward, first.reward)
    assert decay._settings(long, 5)["horizon"] == 5000
    with pytest.raises(AssertionError):  # control: another seed has to be simulated
        run([one], tmp_path, paths=PATHS, seed=6)


def test_an_outcome_of_other_settings_or_a_broken_one_is_made_anew(tmp_path: Path) -> None:
    one = dataclasses.replace(TABLE, settings=TABLE.settings[:1])
    setting = one.settings[0]
    file = tmp_path / f"{setting.slug}.npz"
    first = run([one], tmp_path, paths=PATHS, seed=5)[setting]
    other = run([one], tmp_path, paths=PATHS, seed=6)[setting]
    assert not np.array_equal(first.reward, other.reward)
    file.write_bytes(file.read_bytes()[:200])
    mended = run([one], tmp_path, paths=PATHS, seed=5)[setting]
    assert np.array_equal(first.reward, mended.reward)


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["lighttail", "paper", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_only_makes_one_part_and_keeps_the_others_in_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["--paths", "20", "--out", str(tmp_path)]
    assert command(monkeypatch, *common, "--only", "table-2,figure-1") == 0
    before = {file: file.stat().st_mtime_ns for file in tmp_path.glob("table-2.*")}
    assert command(monkeypatch, *common, "--only", "figure-1") == 0
    assert {file: file.stat().st_mtime_ns for file in before} == before
    page = (tmp_path / "paper.html").read_text()
    assert page.index('id="figure-1"') < page.index('id="table-2"')
    assert "figure-2" not in page
    assert command(monkeypatch, *common, "--seed", "2", "--only", "figure-1") == 0
    assert 'id="table-2"' not in (tmp_path / "paper.html").read_text()  # never mixed with another seed
    screen = capsys.readouterr()
    assert screen.out.count("Page: ") == 3
    assert screen.err.count("lighttail: 20 paths per setting are few") == 1  # of the command with a table


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--only", "figure5"], "did you mean 'figure-5'?"),
        (["--paths", "ten"], "paths must be a whole number, but is 'ten'"),
        (["--paths", "1"], "paths must be a whole number of at least 2, but is 1"),
        (["--seed", "-1"], "seed must be a whole number of at least 0, but is -1"),
    ],
)
def test_bad_input_is_one_line_before_any_work(
    words: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(experiments, "simulate", forbidden)
    assert command(monkeypatch, *words, "--out", str(tmp_path / "out")) == 2
    printed = capsys.readouterr().err
    assert sentence in printed
    assert printed.count("\n") == 1
    assert not (tmp_path / "out").exists()
