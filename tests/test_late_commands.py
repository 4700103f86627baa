"""Delays, batches and lost rewards in words: on the command line, of tails, and in studies."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import lighttail as lt
from lighttail import cli
from lighttail.checks import BadInput
from lighttail.course import Course
from lighttail.delays import FixedDelay, GeometricDelay, ObservedDelays, UniformDelay
from lighttail.reading.csvfile import read_delays
from lighttail.reading.words import parse_course
from lighttail.study import load_study, report_study, run_study
from lighttail.study.cells import cells_of
from lighttail.study.file import Study, parse_study

POLICY, PROBLEM = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])
QUICK = ["--policy", "ucb:lighttailed:0.2", "--paths", "300", "--horizon", "100"]


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["lighttail", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_words_name_delays(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("0\n3\n\ninf\n")
    (tmp_path / "two.csv").write_text("visitor, Delay\na, 5\nb, 1e3\n")
    here = lambda name: tmp_path / name  # noqa: E731
    assert parse_course(None, None, None) == (None, None)
    assert parse_course("2000", "100", None) == (FixedDelay(2000), 100)
    assert parse_course("1e3", None, "0.1") == (FixedDelay(1000, never=0.1), None)
    assert parse_course(None, None, "0.1") == (FixedDelay(0, never=0.1), None)
    assert parse_course("geometric:0.5", None, "1") == (GeometricDelay(0.5, never=1.0), None)
    assert parse_course("Uniform:0:2_000", None, None) == (UniformDelay(0, 2000), None)
    assert parse_course("one.csv", None, None, here)[0] == ObservedDelays([0.0, 3.0, np.inf])
    assert parse_course("two.csv", None, "0.5", here)[0] == ObservedDelays([5.0, 1000.0], never=0.5)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("x", None, None),
            "delay must be a whole number of pulls such as 100, or geometric:MEAN, .* but is 'x'",
        ),
        (("1.5", None, None), "delay must be a whole number of pulls"),
        ((":3", None, None), "delay must be a whole number of pulls"),
        (("geometric", None, None), "delay must be a whole number of pulls"),
        (("uniform:1:x", None, None), "delay must be a whole number of pulls"),
        (("-1", None, None), "delay '-1' is out of range: pulls must be a whole number of at least 0"),
        (("geometric:-1", None, None), "is out of range: mean must be a finite number, 0 or more"),
        (("uniform:5:2", None, None), "is out of range: high must be a whole number of at least 5"),
        (("1e12", None, None), "is out of range: pulls must be a whole number of at most 1000000000"),
        ((None, "0", None), "batch must be a whole number of at least 1, but is 0"),
        ((None, "ten", None), "batch must be a whole number, but is 'ten'"),
        ((None, None, "2"), "never must be a chance from 0 to 1, but is 2.0"),
        ((None, None, "x"), "never must be a number, but is 'x'"),
        (("none.csv", None, None), "delay must be a file that can be read, .*: there is no such file"),
    ],
)
def test_a_bad_value_gets_a_sentence(words: tuple[str | None, ...], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        parse_course(*words)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1\n2.5\n", "a whole number of pulls, or inf .* in line 2 of .*, but is '2.5'"),
        ("arm,delay\na\n", "in line 2 of .*, but is ''"),
        ("-3\n", "in line 1 of .*, but is '-3'"),
        ("nan\n", "in line 1 of .*, but is 'nan'"),
        ("delay\n", "has none"),
        ("\xff", "must be a CSV file in UTF-8"),
    ],
)
def test_a_file_of_delays_says_its_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "d.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(BadInput, match=said):
        read_delays(tmp_path / "d.csv")


def test_what_is_late_is_said_in_words() -> None:
    assert Course().words() == Course().short() == ""
    late = Course(UniformDelay(0, 2000, never=0.25), 100)
    assert late.short() == "delay 0 to 2,000, 25 % never known, batch 100"
    assert late.words() == (
        "Every reward becomes known 0 to 2,000 pulls late, each number with the same chance. "
        "25 % of the rewards never become known. "
        "Decisions are made 100 at a time, before their rewards are known."
    )
    assert Course(FixedDelay(0, never=0.1)).words() == "10 % of the rewards never become known."
    assert Course(GeometricDelay(1500)).words() == (
        "Every reward becomes known 1,500 pulls late on average, by a geometric law."
    )
    assert "one of 4 observed delays, 2 pulls on average, 25 % of which never came" in (
        Course(ObservedDelays([1, 2, 3, np.inf])).words()
    )


def test_compare_plays_what_simulate_plays_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*QUICK, "--delay", "20", "--batch", "10", "--never", "0.1", "--out", str(tmp_path)]
    assert run(monkeypatch, "compare", *words) == 0
    screen = " ".join(capsys.readouterr().out.split())
    told = json.loads((tmp_path / "results.json").read_text())
    (entry,) = told["policies"]
    late = {"delay": FixedDelay(20, never=0.1), "batch": 10}
    out = lt.simulate(POLICY, PROBLEM, horizon=100, paths=300, seed=1, **late)
    assert entry["mean_loss"] == out.mean().to_dict()
    assert (told["delay"], told["batch"]) == ("FixedDelay(pulls=20, never=0.1)", 10)
    assert not entry["light_tailed_by_theorem"]
    words_said = Course(**late).words()
    assert told["rewards"] == words_said
    html = (tmp_path / "report.html").read_text()
    assert words_said in html
    assert words_said in screen
    assert "No theorem covers rewards that come late" in html
    assert "--delay 20 --never 0.1 --batch 10" in told["command"]
    assert run(monkeypatch, "compare", *QUICK, "--out", str(tmp_path)) == 0  # negative control
    prompt = json.loads((tmp_path / "results.json").read_text())
    assert "delay" not in prompt
    assert prompt["policies"][0]["light_tailed_by_theorem"]
    assert prompt["policies"][0]["mean_loss"] != entry["mean_loss"]


def test_the_tail_is_counted_where_rewards_come_late(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--horizon", "100", "--regret", "25", "--relative-error", "0.2", "--out", str(tmp_path)]
    assert run(monkeypatch, "tail", *words, "--delay", "20") == 0
    assert "no bound is known (rewards come late)" in capsys.readouterr().out
    told = json.loads((tmp_path / "results.json").read_text())
    (point,) = told["points"]
    estimate = lt.tail_probability(POLICY, PROBLEM, 100, 25, relative_error=0.2, seed=1, delay=20)
    assert (estimate.method, point["estimate"]["value"]) == ("plain simulation", estimate.value)
    assert (told["delay"], point["theorem"]["value"]) == ("FixedDelay(pulls=20, never=0.0)", None)
    assert "delay 20" in (tmp_path / "report.html").read_text()
    prompt = lt.tail_probability(POLICY, PROBLEM, 100, 25, relative_error=0.2, seed=1)
    assert prompt.high < estimate.low  # a blind start of 20 pulls costs about 6
    assert lt.tail_probability(POLICY, PROBLEM, 100, 61, delay=20).value == 0.0  # more than there is to lose
    for method in ("exact", "importance", "splitting"):
        with pytest.raises(BadInput, match="method must be 'auto' or 'plain' with a delay or a batch"):
            lt.tail_probability(POLICY, PROBLEM, 100, 25, method=method, batch=5)  # type: ignore[arg-type]
    assert run(monkeypatch, "tail", *words, "--batch", "5", "--method", "exact") == 2
    assert "method must be auto or plain with a delay or a batch" in capsys.readouterr().err


STUDY = """
name = "late"
paths = 200
seeds = [1]
horizons = [100]
delay = 20
[[problem]]
name = "as all"
means = [0.2, 0.8]
[[problem]]
name = "at once"
means = [0.2, 0.8]
delay = 0
[[problem]]
name = "from a file"
means = [0.2, 0.8]
delay = "waits.csv"
never = 0.1
batch = 10
[[policy]]
policy = "ucb:lighttailed:0.2"
"""


def study_of(folder: Path, text: str = STUDY) -> Study:
    return parse_study(text, "study.toml", lambda name: folder / name)


def test_a_study_has_delays_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "waits.csv").write_text("delay\n5\n30\n")
    study = study_of(tmp_path)
    observed = ObservedDelays([5.0, 30.0], never=0.1)
    courses = [Course(FixedDelay(20)), Course(), Course(observed, 10)]
    assert [one.course for one in study.problems] == courses
    assert study.inputs == {"waits.csv": tmp_path / "waits.csv"}
    assert [one.title for one in study.problems] == [
        "as all, delay 20",
        "at once",
        "from a file, 2 observed delays, 10 % never known, batch 10",
    ]
    done = run_study(study, tmp_path / "out", workers=1)
    assert done.complete
    results = load_study(tmp_path / "out")
    for name, course in zip(("as all", "at once", "from a file"), courses, strict=True):
        out = results.outcome(name, "ucb:lighttailed:0.2", horizon=100)
        settings = {"delay": course.delay, "batch": course.batch}
        played = lt.simulate(POLICY, PROBLEM, horizon=100, paths=200, seed=1, **settings)
        assert np.array_equal(out.reward, played.reward)
        assert out.settings.get("delay") == played.settings.get("delay")
    page = report_study(results).read_text()
    assert courses[2].words() in page
    told = json.loads((tmp_path / "out" / "report" / "results.json").read_text())
    assert [one.get("batch") for one in told["comparisons"]] == [None, None, 10]


def test_a_delay_is_a_part_of_what_a_cell_is(tmp_path: Path) -> None:
    (tmp_path / "waits.csv").write_text("5\n30\n")
    before = [cell.key for cell in cells_of(study_of(tmp_path))]
    assert len(set(before)) == 3
    after = [cell.key for cell in cells_of(study_of(tmp_path, STUDY.replace("delay = 20", "delay = 21")))]
    assert [a == b for a, b in zip(before, after, strict=True)] == [False, True, True]
    (tmp_path / "waits.csv").write_text("5\n31\n")
    after = [cell.key for cell in cells_of(study_of(tmp_path))]
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, True, False]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("delay = 20", "delay = -1", "line 6: delay '-1' is out of range"),
        ("delay = 20", "delay = true", "line 6: delay must be a whole number of pulls, a list"),
        ("delay = 20", "delay = [1.5]", "line 6: delay must be a list of whole numbers"),
        ("delay = 20", "batch = 0", "line 6: batch must be a whole number of at least 1"),
        ("never = 0.1", "never = 2", "line 18: never must be a chance from 0 to 1"),
        ('"waits.csv"', '"none.csv"', "line 17: delay must be a file that can be read"),
        ("delay = 20", 'delay = 20\nmethod = "skip"', "line 7: method must be 'auto' or 'step' with rewards"),
        (
            "means = [0.2, 0.8]\ndelay = 0",
            "actions = 4",
            "delay, never or batch must be left out with a linear",
        ),
        ("delay = 0", "delay = 20", "'as all, delay 20' and 'at once, delay 20' are the same"),
    ],
)
def test_a_study_says_what_is_wrong(tmp_path: Path, old: str, new: str, said: str) -> None:
    (tmp_path / "waits.csv").write_text("5\n")
    assert old in STUDY
    with pytest.raises(BadInput, match=said):
        study_of(tmp_path, STUDY.replace(old, new))


def test_a_dry_run_says_when_rewards_become_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "waits.csv").write_text("5\n")
    (tmp_path / "study.toml").write_text(STUDY)
    assert run(monkeypatch, "run", str(tmp_path / "study.toml"), "--dry-run") == 0
    assert "as all, delay 20: Every reward becomes known 20 pulls late." in capsys.readouterr().out
