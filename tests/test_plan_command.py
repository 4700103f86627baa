"""`lighttail plan` and the page of a plan, as their users meet them; test_plan.py tests the search."""

from __future__ import annotations

import importlib
import json
import math
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from browsing import needed, opened
from served import served

import lighttail as lt
from lighttail import cli
from lighttail.cli.plan import _show, family_from
from lighttail.dashboard.form import body_of, from_link
from lighttail.live import Office
from lighttail.live.memory import MemoryJournal
from lighttail.outcomes.estimates import Estimate
from lighttail.outcomes.format import chance
from lighttail.outcomes.losing import EXPLAINED
from lighttail.reading.words import parse_policy
from lighttail.report.document import code, document
from lighttail.report.plan_figure import GREY, coloured_curves, frontier_figure, losses_figure, spread
from lighttail.report.plan_words import (
    begin_line,
    closer_look,
    family_words,
    form_link,
    live_lines,
    misjudged_rows,
    noise_words,
    notes,
    python_words,
    rewards_of,
    rows,
    run_parts,
    tail_words,
)

plan_module = importlib.import_module("lighttail.cli.plan")
LOSS = EXPLAINED["pseudo_regret"]
FILES = {"index.html", "results.json", "frontier.png", "frontier.svg", "losses.png", "losses.svg"}
QUICK = ["--horizon", "100", "--lose-at-most", "40", "--chance", "5%", "--effort", "0.001", "--threads", "1"]
QUICK += ["--noise", "laplace"]  # no exact law is known, which would take longer
ONE = ["--policy", "ucb:lighttailed:0.2"]
SETTINGS: dict[str, Any] = {"horizon": 100, "chance": 0.05, "seed": 1, "effort": 0.001, "threads": 1}
POLICIES = [lt.UCB(lt.LightTailed(0.2)), lt.UCB(lt.Standard(0.8)), lt.EvenSplit()]


def shown_text(path: Path) -> str:
    """The text of a page without its marks."""
    return unescape(re.sub("<[^>]+>", "", path.read_text()))


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run the command in this process; returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["lighttail", "plan", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def plan() -> lt.Plan:
    family = lt.Family.gaps(0.2, 0.8, arms=2, noise=lt.Laplace(1.0), members=6)
    return lt.plan(family, loss=40.0, policies=POLICIES, **SETTINGS)


@pytest.fixture(scope="module")
def promise() -> lt.Plan:
    return lt.plan(lt.Bandit([0.2, 0.8], lt.Laplace(1.0)), policies=POLICIES, **SETTINGS)


def test_a_link_fills_in_the_form_of_the_service(plan: lt.Plan) -> None:
    filled = from_link(dict(parse_qsl(urlsplit(form_link(plan)).query)))
    body = body_of(filled | {"name": "mine", "then": "warn"})
    assert (body["arms"], body["horizon"]) == (["A", "B"], 100)
    assert parse_policy(body["policy"]) == plan.choice.policy
    assert body["settings"]["risk"] == {"loss": 40.0, "chance": 0.5, "then": "warn"}
    own = replace(plan, choice=replace(plan.choice, words=""))
    assert form_link(own) == ""


@pytest.fixture(scope="module")
def rates() -> lt.Plan:
    family = lt.Family.rates(0.03, 0.05, arms=3, members=2)
    return lt.plan(family, loss=1.9, policies=[lt.EvenSplit()], **SETTINGS)


def test_the_link_has_the_limits_of_the_means_that_all_arms_share(rates: lt.Plan, plan: lt.Plan) -> None:
    def settings(shown: lt.Plan) -> Any:
        filled = from_link(dict(parse_qsl(urlsplit(form_link(shown)).query)))
        return body_of(filled | {"name": "mine", "then": "warn"})["settings"]

    assert settings(rates)["means"] == {"low": 0.03, "high": 0.05}
    assert "means" not in settings(plan)  # the arms of a family of gaps have limits of their own
    one = replace(rates, family=lt.Family.rates(0.04, 0.04))  # nothing is between two equal limits
    assert "means" not in settings(one)
    assert lt.Family([lt.Bandit([0.1, 0.2])]).limits is None


def test_the_link_says_what_rewards_are(rates: lt.Plan) -> None:
    def rewards(family: lt.Family) -> Any:
        shown = replace(rates, family=family)
        assert (begin_line(shown).find("rewards") > 0) == bool(rewards_of(shown))
        filled = from_link(dict(parse_qsl(urlsplit(form_link(shown)).query)))
        return body_of(filled | {"name": "mine", "then": "warn"})["settings"].get("rewards")

    observed = lt.Family.from_samples({"A": [1.5, 4.0, 2.5], "B": [2.0, 20.0, 3.0]}, members=20)
    assert rewards(observed) == {"low": 1.5, "high": 20.0}
    assert "limits of the data" in run_parts(replace(rates, family=observed))[1][0]
    assert rewards(lt.Family.gaps(0.1, 0.5, noise=lt.Gaussian(3.0))) == {"sigma": 3.0}
    assert rewards(lt.Family.gaps(0.1, 0.5, noise=lt.Uniform(2.0))) == {"sigma": 2.0}
    assert rewards(lt.Family.gaps(0.1, 0.5, noise=lt.Laplace(1.0))) is None
    noises = [lt.Gaussian(1.0), lt.Gaussian(3.0), lt.Bernoulli()]
    assert rewards(lt.Family([lt.Bandit([0.2, 0.4], noise) for noise in noises])) == {"sigma": 3.0}
    assert rewards(rates.family) == {"low": 0.0, "high": 1.0}
    assert "limits of the data" not in run_parts(rates)[1][0]


def test_the_line_for_programs_begins_the_experiment_of_the_link(
    rates: lt.Plan, plan: lt.Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    awkward = replace(rates.family, members=(lt.Bandit([0.03] * 3, lt.Bernoulli(), ["it's", 'a "b"', "ü"]),))
    names = [f"{place}" for place in range(3)]
    with served(store=tmp_path / "lighttail.db") as server:
        for name, one in zip(names, (rates, plan, replace(rates, family=awkward)), strict=True):
            line = begin_line(one, f"http://127.0.0.1:{server.port}").replace("planned", name)
            done = subprocess.run(["bash", "-c", line], check=True, capture_output=True, text=True)
            made = json.loads(done.stdout)
            filled = from_link(dict(parse_qsl(urlsplit(form_link(one)).query)))
            body = body_of(filled | {"name": name, "then": "warn"})
            assert {key: made[key] for key in body} == body
        assert server.call("GET", "/v1/experiments")[1]["experiments"] == names
    (line,) = next(lines for _, lines in run_parts(rates) if lines[0].startswith("curl"))
    assert line == begin_line(rates)
    page = shown_text(lt.write_report(rates, tmp_path))
    _show(rates, tmp_path)
    for text in (page, capsys.readouterr().out):
        assert line in text
        assert "\n" not in line


def test_the_lines_say_that_zeros_must_be_told_or_which_settings_do_it(
    rates: lt.Plan, plan: lt.Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = shown_text(lt.write_report(rates, tmp_path))
    _show(rates, tmp_path)
    for text in (page, capsys.readouterr().out):
        flat = " ".join(text.split())
        assert "Tell the reward of every visitor, zeros too" in flat
        assert '"window": 604800, "default": 0' in flat
    assert any("Tell the reward of every pull" in said for said, _ in run_parts(plan))
    settings = json.loads(shlex.split(begin_line(rates))[-1])["settings"]
    added = settings | json.loads('{"window": 604800, "default": 0}')
    office = Office(MemoryJournal())
    office.create("one", rates.choice.words, ["A", "B", "C"], rates.horizon, settings=added)
    office.close()


@pytest.mark.parametrize(("limit", "alarm"), [(0.001, 0.02), (0.01, 0.2), (0.05, 0.5), (0.6, 0.6)])
def test_the_alarm_of_a_planned_experiment_is_rare(rates: lt.Plan, limit: float, alarm: float) -> None:
    asked = replace(rates, limit=limit)
    risk = json.loads(shlex.split(begin_line(asked))[-1])["settings"]["risk"]
    assert risk["chance"] == pytest.approx(alarm)
    assert parse_qsl(urlsplit(form_link(asked)).query)[4] == ("chance", f"{alarm:g}")
    assert any(f"rises above {chance(alarm)}" in said for said, _ in run_parts(asked))


SPLIT = """pre => {  // the words of a box that stand on two lines
  const words = [], walk = document.createTreeWalker(pre, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) for (const found of walk.currentNode.data.matchAll(/\\S+/g)) {
    const range = document.createRange();
    range.setStart(walk.currentNode, found.index);
    range.setEnd(walk.currentNode, found.index + found[0].length);
    if (new Set([...range.getClientRects()].map(one => one.top)).size > 1) words.push(found[0]);
  }
  return words;
}"""
COPY = "pre => { getSelection().selectAllChildren(pre); return getSelection().toString() }"


def test_lines_of_code_end_between_words_and_are_copied_whole() -> None:
    line = "lighttail plan --rates 3%..5% --arms 3 --horizon 20000 --lose-at-most 150 --chance 0.1% --out a/b"
    pytest.importorskip("playwright.sync_api")
    with opened(needed()) as browser:
        page = browser.new_page()
        for width in range(300, 900, 20):
            page.set_viewport_size({"width": width, "height": 600})
            page.set_content(document("a page", f"<pre>{code(line)}</pre>"))
            assert page.locator("pre").evaluate(SPLIT) == []
            assert page.locator("pre").evaluate(COPY) == line
        page.set_content(document("a page", f"<pre>{code('x' * 300 + '-y')}</pre>"))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")  # a long word is broken
        page.set_viewport_size({"width": 500, "height": 600})
        page.set_content(document("a page", f"<pre>{escape(line)}</pre>"))
        assert page.locator("pre").evaluate(SPLIT) != []  # negative control


def test_the_screen_has_the_sentence_the_table_and_what_to_do_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "folder"
    assert run(monkeypatch, "--means", "0.2,0.8", *QUICK, *ONE, "--out", str(out)) == 0
    screen = capsys.readouterr().out
    found = json.loads((out / "results.json").read_text())
    assert found["sentence"] in screen
    assert LOSS in screen
    assert "lt.Experiment(lt.UCB(bonus=lt.LightTailed(kappa=" in screen
    assert f"lighttail tail --policy {found['choice']['policy']} --means=0.2,0.8 --noise laplace" in screen
    assert screen.splitlines()[-1] == f"Report: {out / 'index.html'}"
    assert {file.name for file in out.iterdir()} == FILES


def test_json_is_all_that_is_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--means", "0.2,0.8", *QUICK, *ONE, "--out", str(tmp_path)]
    assert run(monkeypatch, *words, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["choice"]) >= {"policy", "mean_loss", "chance", "worst"}
    assert set(found["choice"]["chance"]) >= {"value", "low", "high"}
    assert found["choice"]["worst"]["means"] == [0.2, 0.8]
    assert found["met"] == (found["choice"]["chance"]["high"] <= 0.05)
    assert (found["loss"], found["limit"], found["horizon"]) == (40.0, 0.05, 100)
    assert found == json.loads((tmp_path / "results.json").read_text())
    assert "--chance 0.05" in found["command"]
    assert "--json" not in found["command"]


def test_the_command_on_the_page_makes_the_same_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--gaps", "0.2..0.8", "--arms", "2", *QUICK, *ONE, "--out", str(tmp_path / "a b")]
    assert run(monkeypatch, *words) == 0
    before = {name: (tmp_path / "a b" / name).read_bytes() for name in FILES}
    command = json.loads(before["results.json"])["command"]
    assert shlex.split(command)[:2] == ["lighttail", "plan"]
    assert run(monkeypatch, *shlex.split(command)[2:], "--threads", "1") == 0
    assert before == {name: (tmp_path / "a b" / name).read_bytes() for name in FILES}


def asked_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *words: str) -> dict[str, Any]:
    """The arguments with which the command calls `plan`."""
    asked: dict[str, Any] = {}

    def remember(family: lt.Family, **settings: Any) -> None:
        asked.update(settings, family=family)
        raise KeyboardInterrupt

    monkeypatch.setattr(plan_module, "plan_experiment", remember)
    assert run(monkeypatch, *words, "--out", str(tmp_path)) == 130
    return asked


def test_without_options_the_web_test_is_planned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = asked_with(monkeypatch, tmp_path)
    assert repr(asked["family"]) == repr(lt.Family.rates(0.03, 0.05, arms=3))
    assert (asked["horizon"], asked["loss"], asked["chance"]) == (20_000, 150.0, 0.001)
    assert asked["policies"] is None


@pytest.mark.parametrize(
    "words", [["--rates", "2%..9%"], ["--horizon", "500"], ["--arms", "2"], ["--means", "0,1"]]
)
def test_a_limit_that_is_left_out_asks_for_the_smallest_loss(
    words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert asked_with(monkeypatch, tmp_path, *words)["loss"] is None


def test_options_reach_the_plan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["--rates", "3% .. 5%", "--chance", "0.2%", "--delay", "20", "--batch", "5", "--over", "average"]
    asked = asked_with(monkeypatch, tmp_path, *words, "--policy", "ts:1s", "--also", "evensplit")
    assert asked["chance"] == 0.002
    assert (asked["delay"], asked["batch"], asked["over"]) == (lt.FixedDelay(20), 5, "average")
    assert asked["policies"] == [lt.ThompsonSampling(asked["family"].sigma)]  # 1s: as much as the noise
    assert asked["also"] == [lt.EvenSplit()]


def test_the_length_of_the_experiment_may_be_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = asked_with(monkeypatch, tmp_path, "--loss-per-pull", "0.01")
    assert (asked["horizon"], asked["loss"], asked["loss_per_pull"]) == (None, None, 0.01)


def test_data_are_not_taken_for_the_truth(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "visits.csv"
    file.write_text("variant,converted\n" + "a,0\na,1\na,0\nb,1\nb,0\nb,1\n" * 5)
    words = ["--data", str(file), "--arm-column", "variant", "--reward-column", "converted"]
    family = asked_with(monkeypatch, tmp_path / "out", *words)["family"]
    assert family.labels == ("a", "b")
    assert len({member.means for member in family.members}) == len(family.members) > 1


SENTENCES = {
    "--rates 0.05..0.03": "rates must be of the form LOW..HIGH with a LOW that is at most HIGH, but is",
    "--rates 3..5%": "rates must be of the form LOW..HIGH with a LOW that is at most HIGH, "
    "but is '3..5%'; 3 percent is written as 3%",
    "--rates 0.03": "rates must be of the form LOW..HIGH, such as 0.03..0.05 or 3%..5%, but is '0.03'",
    "--rates ..0.03": "rates must be of the form LOW..HIGH, such as 0.03..0.05 or 3%..5%, but is '..0.03'",
    "--rates a..b": "rates must be a number, but is 'a'",
    "--rates 3..5": "rates must be a rate from 0 to 1, but is 3.0; three percent is written as 3%",
    "--rates=-1%..5%": "rates must be a rate from 0 to 1, but is -0.01",
    "--gaps=-1..5": "gaps must be a gap of 0 or more, but is -1.0",
    "--lose-at-most 500": "lose-at-most must be at most 400, because no policy can lose more in 20,000 pulls",
    "--lose-at-most 0": "lose-at-most must be a finite number above 0, but is 0.0",
    "--chance 0": "chance must be a number above 0 and below 1, but is 0.0",
    "--chance 150%": "chance must be a number above 0 and below 1, but is 1.5",
    "--chance 10": "chance must be a number above 0 and below 1, but is 10.0; ten percent is written as 10%",
    "--means 0.5,0.5": "means must allow some arm to be worse than another, but is '0.5,0.5'",
    "--rates 4%..4%": "rates must allow some arm to be worse than another, but is '4%..4%'",
    "--delay tomorrow": "delay must be a whole number of pulls such as 100, or geometric:MEAN, uniform:LOW",
    "3%..5%": "Got unexpected extra argument(s) (3%..5%); did you mean --rates 3%..5%?",
    "--rates 3%..5% --means 0,1": "means must be left out with rates, which describes the problem already",
    "--means 0,1 --arms 3": "arms must be left out with means, which say how many arms there are, but is '3'",
    "--noise gaussian": "noise must be left out with rates, whose rewards are 0 or 1, but is 'gaussian'",
    "--arm-column a": "arm-column must be left out without data, but is 'a'",
    "--delay 19999": "delay must be at most 19,998 with 20,000 pulls: otherwise no reward would become known "
    "before the last decision, but is 19999",
    "--batch 20000": "batch must be at most 19,999 with 20,000 pulls: otherwise no reward would become known",
    "--batch 12000 --delay 12000": "delay must be smaller with 20,000 pulls in batches of 12,000: otherwise",
    "--never 1": "never must be below 1: no reward would become known, but is 1.0",
    "--rates 3%..5% --effort 0.3": "effort must be at least 0.836 to promise a loss at this chance, but",
    "--data visits.csv": "data must have the columns arm and reward in line 1 of visits.csv, but has",
    "--over never": "over must be 'everywhere' or 'average', but is 'never'",
    "--effort 1e9": "effort must be a number from 0.001 to 1,000, but is 1000000000.0",
    "--horizon 1e12": "horizon must be at most 10,000,000 for a plan, but is 1000000000000",
    "--horizon 5 --loss-per-pull 1": "horizon must be left out with loss-per-pull, but is '5'",
    "--policy linucb:lighttailed:1": "policy must be one for arms, such as ucb:lighttailed:0.2, but is",
    "--policy usb:standard:1": "policy must be one of ucb, se, ts",
}


@pytest.mark.parametrize("words", SENTENCES)
def test_bad_input_is_one_sentence_before_any_work(
    words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("visits.csv").write_text("day,x\n1,2\n")
    monkeypatch.setattr("lighttail.planning.bench.prepare", lambda *args, **settings: pytest.fail("work"))
    assert run(monkeypatch, *words.split()) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith(f"lighttail: {SENTENCES[words]}")
    assert shown.err.count("\n") == 1
    assert shown.out == ""
    assert {path.name for path in tmp_path.iterdir()} == {"visits.csv"}


def test_each_description_takes_its_own_options() -> None:
    bare = dict.fromkeys(("arms", "noise", "sigma", "arm_column", "reward_column"))
    family = family_from({"gaps": "0.1..0.5", "rates": None}, **{**bare, "sigma": 2.0, "seed": 1})
    assert family.members[0].noise == lt.Gaussian(2.0)
    assert family.arms == 3


def test_the_page_says_what_the_plan_says(plan: lt.Plan, tmp_path: Path) -> None:
    path = lt.write_report(plan, tmp_path)
    page = path.read_text().replace("&nbsp;", " ")
    assert path.name == "index.html"
    assert {file.name for file in tmp_path.iterdir()} == FILES
    for text in (plan.sentence(), LOSS, family_words(plan), plan.made_by, *live_lines(plan)):
        assert text.replace("'", "&#x27;") in page
    for row in misjudged_rows(plan):
        assert row[0] in page
    assert all(row[1] in page for row in rows(plan))
    address = escape(form_link(plan))
    assert f'lighttail serve\n<a class="word" href="{address}">{address}</a></pre>' in page
    elsewhere = (
        page.replace(address, "")
        .replace(code(begin_line(plan)), "")
        .replace("http-equiv", "")
        .replace("http://www.w3.org", "")
    )
    assert "http" not in elsewhere.replace("Or behind HTTP", "")
    saved = json.loads((tmp_path / "results.json").read_text())
    assert saved["command"] == plan.made_by
    assert len(saved["frontier"]) == len(plan.frontier)


def test_a_choice_without_a_light_tail_says_so(plan: lt.Plan) -> None:
    """A choice whose tail is light by a theorem (control), or whose loss has no chance in it, does not."""
    assert tail_words(plan) == ""
    standard = replace(plan.choice, policy=lt.UCB(lt.Standard(0.2)), label="UCB + Standard(0.2)")
    heavy = replace(plan, choice=standard)
    assert tail_words(heavy) in notes(heavy)
    assert tail_words(heavy).startswith("No theorem makes large losses of UCB + Standard(0.2) exp")
    assert tail_words(replace(heavy, met=False)) == ""
    assert tail_words(replace(heavy, choice=plan.even)) == ""


def test_a_plan_for_the_smallest_loss_is_shown_too(promise: lt.Plan, tmp_path: Path) -> None:
    page = lt.write_report(promise, tmp_path, "a command").read_text().replace("&nbsp;", " ")
    assert promise.asked_for_loss
    assert promise.sentence() in page
    assert "<pre>a command</pre>" in page
    assert "nan" not in (tmp_path / "results.json").read_text().lower()


def test_the_frontier_shows_every_curve_the_limit_and_the_choice(plan: lt.Plan) -> None:
    axes = frontier_figure(plan).axes[0]
    names = {text.get_text() for text in axes.texts}
    assert {point.curve for point in plan.frontier} <= names
    assert any("the limit, 5 %" in name for name in names)
    part = "choice" if plan.met else "nearest"
    (star,) = [line for line in axes.lines if line.get_label() == f"{part}: {plan.choice.label}"]
    assert star.get_xdata()[0] == plan.choice.mean_loss.value
    assert axes.get_yscale() == "log"
    low, high = axes.get_ylim()
    assert low < plan.limit < high


def test_a_chance_that_was_not_seen_is_an_arrow_at_its_upper_limit(plan: lt.Plan) -> None:
    none = Estimate(0.0, 0.0, 0.07, 0.95)
    unseen = tuple(replace(point, chance=none, error=0.0) for point in plan.frontier)

    def arrows(shown: lt.Plan) -> set[float]:
        lines = frontier_figure(shown).axes[0].lines
        return {float(line.get_ydata()[0]) for line in lines if line.get_marker() == 7}

    assert 0.07 in arrows(replace(plan, frontier=unseen))
    seen = tuple(replace(point, chance=Estimate(0.05, 0.04, 0.07, 0.95)) for point in plan.frontier)
    assert 0.07 not in arrows(replace(plan, frontier=seen))  # negative control


def test_dominated_curves_are_grey_and_at_most_eight_have_colours(plan: lt.Plan) -> None:
    first = plan.frontier[0]
    many = tuple(
        replace(first, curve=f"curve {turn}", dominated=turn == 0, mean=float(turn)) for turn in range(20)
    )
    curves = coloured_curves(replace(plan, frontier=many))
    colours = {name: colour for name, _, colour in curves}
    assert colours["curve 0"] == GREY
    assert len({colour for colour in colours.values() if colour != GREY}) <= 8
    assert colours["curve 1"] != GREY


def test_the_histograms_show_the_policies_of_the_table(plan: lt.Plan) -> None:
    shown = [axes for axes in losses_figure(plan).axes if axes.get_visible()]
    assert [axes.get_title().splitlines()[0] for axes in shown] == list(plan.options())


def test_labels_do_not_overlap() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        places = rng.random(11).tolist()
        found = spread(places, 0.05)
        assert np.diff(sorted(found)).min() >= 0.05 - 1e-9
        assert np.argsort(places).tolist() == np.argsort(found).tolist()
        assert min(found) >= -1e-9
    assert spread([0.1, 0.9], 0.05) == [0.1, 0.9]  # control: what does not overlap stays


def test_a_plan_that_no_policy_meets_has_no_line_that_starts_one(
    plan: lt.Plan,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plan.met
    unmet = replace(plan, met=False)
    page = lt.write_report(unmet, tmp_path).read_text().replace("&nbsp;", " ")
    ((said, lines),) = run_parts(unmet)
    assert lines == []
    assert said in page
    monkeypatch.setattr(plan_module, "plan_experiment", lambda *_, **__: unmet)
    assert run(monkeypatch, "--means", "0.2,0.8", *QUICK, *ONE, "--out", str(tmp_path)) == 0
    for text in (page, capsys.readouterr().out):
        assert not re.search("lt.Experiment|lighttail serve|127.0.0.1", text)
    assert "lighttail serve" in lt.write_report(plan, tmp_path).read_text()  # negative control


def test_the_live_line_runs(plan: lt.Plan) -> None:
    names: dict[str, Any] = {}
    exec("\n".join(live_lines(plan)), names)
    assert names["experiment"].ask().arm in ("A", "B")
    assert python_words(lt.UCB(lt.LightTailed(0.5))) == "lt.UCB(bonus=lt.LightTailed(kappa=0.5))"


def test_the_closer_look_is_a_command_of_its_own(plan: lt.Plan) -> None:
    words = closer_look(plan).split()
    assert words[:3] == ["lighttail", "tail", "--policy"]
    late = replace(plan, course=replace(plan.course, batch=5))
    assert closer_look(late) == ""
    resampled = lt.Bandit.from_samples({"a": [1.0, 2.0], "b": [2.0, 3.0]})
    assert noise_words(resampled.noise) == ""


def test_a_misjudgement_reads_as_a_sentence(plan: lt.Plan) -> None:
    first = [row[0] for row in misjudged_rows(plan)]
    assert first[0] == "all is as planned"
    assert {"the noise is half as large", "the gaps are twice as large"} <= set(first)
    assert "the horizon is twice as long" in first
    assert all(math.isfinite(one.loss) for one in plan.misjudged)
