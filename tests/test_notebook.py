"""Results in notebooks: HTML that is escaped and whole, figures, numbers, and the progress of work."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lighttail as lt
from lighttail.forecasting import Forecast
from lighttail.inference import Limits
from lighttail.outcomes.notebook import table
from lighttail.system import progress

LIGHT, TWO = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])
TAGS = {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "p", "br", "span"}
NASTY = "<script>alert('&')</script>"


class Reader(HTMLParser):
    """Reads HTML: its text, its tags, and whether every tag was closed in turn."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.sound = True
        self.feed(html)
        self.close()
        self.sound &= not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.sound &= bool(self.open) and self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def experiment() -> lt.Experiment:
    live = lt.Experiment(lt.UCB(lt.AnyTime(0.5)), arms=[NASTY, "B", 3], seed=1)
    for _ in range(4):
        live.tell(live.ask().id, 1.0)
    live.ask()
    return live


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """One result of each kind, with a label that would be a script if it was not escaped."""
    policies = {NASTY: LIGHT, "ts": lt.ThompsonSampling(0.8)}
    comparison = lt.compare(policies, TWO, horizon=50, paths=200, seed=1)
    chance = lt.Estimate(0.25, 0.2, 0.3, 0.95)
    return {
        "estimate": chance,
        "tail": lt.tail_probability(LIGHT, TWO, horizon=50, regret=12, seed=1),
        "paths": comparison["ts"].outcome,
        "law": lt.simulate(LIGHT, TWO, horizon=50, paths=200, seed=1, keep="law"),
        "comparison": comparison,
        "experiment": experiment(),
        "forecast": Forecast(9.0, 500, 40, np.arange(50.0), 99.0, Limits(1.0, 0.5, 4.0), chance, {"A": 0.5}),
    }


def test_every_result_is_a_whole_table_without_scripts(results: dict[str, Any]) -> None:
    for name, result in results.items():
        html = result._repr_html_()
        read = Reader(html)
        assert read.sound, name
        assert read.tags <= TAGS, name
        assert (NASTY in read.text) == (name in ("comparison", "experiment")), name
        assert "color:" not in html.replace("-color:", ""), name  # the colours of the page, light or dark


def test_a_text_that_is_not_escaped_would_be_noticed() -> None:
    """Negative control of the test above."""
    read = Reader(table("", ("x",), [["y"]]).replace("y", NASTY))
    assert "script" in read.tags


def test_the_tables_show_the_numbers(results: dict[str, Any]) -> None:
    found = {name: Reader(result._repr_html_()).text for name, result in results.items()}
    comparison = results["comparison"]
    cells = [text for entry in comparison.entries for cell in entry.cells() for text in cell]
    assert all(text in found["comparison"] for text in cells)
    assert comparison.verdict() in found["comparison"]
    assert "0.25[0.2, 0.3]" in found["estimate"]
    assert "exact" in found["tail"]
    assert "loss after 40 pulls" in found["forecast"]
    assert "200 paths of 50 pulls" in found["law"]


def test_a_plan_is_a_table_and_its_sentence() -> None:
    plan = lt.plan(lt.Family((TWO,)), horizon=60, loss=20, chance=0.1, policies=[LIGHT], effort=0.02, seed=1)
    read = Reader(plan._repr_html_())
    assert read.sound
    assert plan.sentence() in read.text
    assert all(one.label in read.text for one in plan.options().values())


def test_an_estimate_is_a_number_for_whoever_wants_one() -> None:
    exact = lt.tail_probability(LIGHT, TWO, horizon=50, regret=12, seed=1)
    assert float(lt.Estimate(0.25, 0.2, 0.3, 0.95)) == 0.25
    assert float(exact) == exact.value
    assert np.asarray([exact], dtype=float)[0] == exact.value


def test_a_figure_is_an_image_without_pyplot() -> None:
    figure: Any = lt.plot_tail(LIGHT, TWO, 50, 12, paths=200, seed=1)
    image, size = figure._repr_png_()
    assert image.startswith(b"\x89PNG")
    assert size == {"width": 900, "height": 560}
    assert figure.get_layout_engine() is not None  # the figure may be changed and shown again


class Clock:
    """A clock that goes on by `step` seconds whenever somebody looks."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_a_file_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.now_and_then(1000, "paths", Clock(1.0)) as update:
        for done in range(100):
            update("UCB", 10 * done)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"lighttail: UCB: {10 * (s - 1)} of 1,000 paths after {s} s" for s in (10, 40, 70, 100)]


def test_short_work_writes_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    for way in (progress.now_and_then, progress.written_anew):
        with way(1000, "paths", Clock(1e-6)) as update:
            for done in range(100):
                update("UCB", 10 * done)
    assert capsys.readouterr().err == ""


def test_a_notebook_gets_one_line_that_is_written_anew(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.written_anew(300, "paths", Clock(0.3)) as update:
        for label, done in (("a long name", 0), ("a long name", 100), ("TS", 200), ("TS", 300)):
            update(label, done)
    written = capsys.readouterr().err
    assert written.endswith("\rTS: 300 of 300 paths\n")
    assert written.count("\n") == 1
    states = written.strip("\r\n").split("\r")
    assert all(len(later) >= len(sooner.rstrip()) for sooner, later in pairwise(states))


def test_what_suits_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown() -> str:
        return progress.display(10).gen.__name__  # type: ignore[attr-defined]

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert shown() == "now_and_then"
    shell = SimpleNamespace(kernel=1)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert shown() == "written_anew"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert shown() == "bar"


@pytest.mark.parametrize("way", [progress.now_and_then, progress.written_anew])
def test_more_work_than_was_expected_is_never_more_than_the_whole(way, capsys) -> None:
    """A total grows as more work becomes known, does not shrink, and is never below what is done."""
    with way(100, "pulls", Clock(60.0)) as update:
        for done, known in ((50, 0), (90, 200), (95, 150), (210, 0)):
            update("search", done, known)
    shown = re.findall(r"search: (\d+) of (\d+) pulls", capsys.readouterr().err)
    assert list(dict.fromkeys(shown)) == [("50", "100"), ("90", "200"), ("95", "200"), ("210", "210")]


def test_a_function_is_told_no_total() -> None:
    told: list[tuple[str, int]] = []
    with progress.parts_reporter(lambda *part: told.append(part), 10) as report:
        assert report is not None
        report("search", 5, 20)
    assert told == [("search", 5)]


def test_a_note_about_long_work_begins_as_every_line_on_stderr_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "FIRST", 0.0)
    said = ""
    with progress.compiling("UCB", True):
        while not said.endswith("\n"):  # another thread writes it
            said += capsys.readouterr().err
    assert said == "lighttail: compiling UCB (first run only)\n"
    with progress.noted("planning the paths of UCB", False):
        pass
    assert capsys.readouterr().err == ""
