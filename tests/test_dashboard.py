"""The parts of the dashboard: its numbers, its words, what its forms become, and who may use it."""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from desks import Clock
from served import client_of, refusal

import lighttail as lt
from lighttail.checks import refuse
from lighttail.dashboard import History, experiment_view
from lighttail.dashboard.charts import _axis
from lighttail.dashboard.form import FIELDS, body_of, field_of
from lighttail.dashboard.history import MOST_ARMS, MOST_ROWS, MOST_SPANS, OTHERS, Spans
from lighttail.dashboard.html import Html, el, shown
from lighttail.dashboard.page import experiment_page, static_page
from lighttail.dashboard.panels import panels
from lighttail.dashboard.view import arms_view
from lighttail.dashboard.words import leading, limit_words, losing
from lighttail.inference import BoundedRewards, confidence_sequences
from lighttail.live import Office
from lighttail.live.journal import Reader, event_of
from lighttail.live.memory import MemoryJournal
from lighttail.server import looks
from lighttail.server.guard import WEEK, Sessions
from lighttail.server.keys import ROLES, Keys, add_key, remove_key

PAGE = {"Accept": "text/html,application/xhtml+xml"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
HERE = {"Origin": "http://localhost"}
HOSTILE = "<script>alert(1)</script>\"'&\x01\u202e"
ONE = {"name": "one", "policy": "ts:0.5", "arms": ["A", "B"], "horizon": 100, "seed": 3}
NO_INLINE = re.compile(r"<script(?! src=)|<style|\sstyle=|\son[a-z]+=|javascript:")


# Text


def test_text_never_becomes_html() -> None:
    made = el("td", HOSTILE, title=HOSTILE)
    assert "<script" not in made
    assert made.count("&lt;script&gt;") == 2
    assert "\x01" not in made
    assert "\u202e" not in made
    assert el("td", Html("<b>x</b>")) == "<td><b>x</b></td>"  # negative control
    assert shown("a\ud800") == "a\\ud800"


# History


def asked(seq: int, time: float, arm: Any = "A", by: str = "policy", **more: Any) -> dict[str, Any]:
    return {"seq": seq, "time": time, "kind": "ask", "id": str(seq), "arm": arm, "by": by, **more}


def begun(**settings: Any) -> dict[str, Any]:
    return {"seq": 1, "time": 0.0, "kind": "create", "name": "x", "arms": ["A", "B"], "settings": settings}


def test_spans_keep_every_trial_and_stay_few() -> None:
    spans, draws, time = Spans(1.0), random.Random(1), 1e9
    for _ in range(5_000):
        time += draws.expovariate(0.01) * (100.0 if draws.random() < 0.01 else 1.0)
        spans.add(time, "A", "policy")
    plain = spans.to_plain()["spans"]
    assert len(plain) == spans.used <= MOST_SPANS
    assert sum(count for span in plain for _, _, count in span) == 5_000
    assert spans.start <= 1e9 + 1e4
    assert spans.start + spans.width * len(plain) > time


def test_a_history_is_bounded_and_says_what_it_leaves_out() -> None:
    history = History()
    history.take(begun())
    for place in range(3_000):
        history.take(asked(place + 2, float(place), f"arm {place % 100}", unit=f"u{place}"))
    plain = history.to_plain()
    assert len(plain["trials"]) == 20
    assert {arm for arm, _, _ in plain["by"]} == {*plain["traffic"]["arms"], OTHERS} - {"A", "B"}
    assert len(plain["traffic"]["arms"]) == MOST_ARMS
    assert sum(count for _, _, count in plain["by"]) == 3_000


def test_the_busiest_arms_are_shown_and_not_the_first_ones() -> None:
    history = History()
    history.take({**begun(), "arms": [f"arm {place}" for place in range(100)]})
    seq = 2
    for place in range(2 * MOST_ROWS):  # more arms than are counted one by one
        for _ in range(50 if place % 500 == 77 else 1):
            history.take(asked(seq, float(seq), f"arm {place}", by="policy" if seq % 2 else "floor"))
            seq += 1
    plain = history.to_plain()
    busy = {f"arm {place}" for place in range(77, 2 * MOST_ROWS, 500)}
    sums: dict[str, int] = dict.fromkeys(busy, 0)
    for arm, _, count in plain["by"]:
        sums[arm] = sums.get(arm, 0) + count
    assert {arm: sums[arm] for arm in busy} == dict.fromkeys(busy, 50)
    assert busy < set(plain["traffic"]["arms"])
    assert len(plain["traffic"]["arms"]) == MOST_ARMS
    assert sum(sums.values()) == seq - 2  # the others are there, together
    assert len(history.spans.rows) <= MOST_ROWS


@pytest.mark.parametrize(("share", "wrong"), [(0.1, False), (0.2, True)])
def test_shares_of_floors_are_checked(share: float, wrong: bool) -> None:
    """The floor has 10 % of the trials; 20 % would be a fault (negative control)."""
    history, draws = History(), random.Random(2)
    history.take(begun(shares={"A": share}))
    for place in range(2_000):
        by = "floor" if draws.random() < 0.1 else "policy"
        history.take(asked(place + 2, 1.0, by=by))
    (check,) = history.checks()
    assert (check["p"] < 0.001) is wrong
    history.take({"seq": 3_000, "time": 1.0, "kind": "settings", "settings": {"shares": {"A": 0.3}}})
    (check,) = history.checks()
    assert check["counts"] == [0, 0]  # shares that changed are checked from then on
    view = experiment_view(played()[0])
    said = panels({**view, "history": {**view["history"], "checks": [check]}})["rewards"]
    assert "There is nothing to check yet." in said
    assert "not contradict" not in said


def test_the_share_of_the_holdout_is_that_of_units_and_not_of_visits() -> None:
    history = History()
    history.take(begun(holdout={"arm": "A", "share": 0.5}))
    for place in range(2_000):  # two units, of which one comes back again and again
        unit, by = ("u", "policy") if place == 7 else ("v", "holdout")
        history.take(asked(place + 2, 1.0, by=by, unit=unit))
    (check,) = history.checks()
    assert check["counts"] == [1, 1]
    assert check["p"] == 1.0


def test_events_are_read_once_and_a_look_may_end_early() -> None:
    office = Office(MemoryJournal())
    desk, _ = office.create(**ONE)

    class Counting(MemoryJournal):
        read = 0

        def lines(self, name: str, after: int = 0, most: int = 100) -> list[tuple[str, bytes]]:
            found = Reader.lines(office.journal, name, after, 100)
            self.read += len(found)
            return found

    reader = Counting()
    histories = looks.Histories(reader)
    for _ in range(3):
        for trial in desk.ask(count=500):
            desk.tell([(trial.id, 1.0)])
        plain = histories.look("one", at_most=0.0)
    for _ in range(40):
        plain = histories.look("one", at_most=0.0)
    whole = History()
    for body, _ in office.journal.lines("one", 0, 10_000):
        whole.take(event_of(body))
    assert plain == whole.to_plain()
    assert reader.read == whole.seq == 3_001
    office.close()


def test_an_alarm_is_stressed_until_it_is_over() -> None:
    experiment, _ = played()
    view = experiment_view(experiment)
    fields = {"loss": 60.0, "limit": 0.01, "then": "pause", "chance": 0.02, "low": 0.017, "high": 0.023}
    on = {"seq": 2, "time": 1.0, "kind": "alarm", "state": "on", **fields}
    over = {**on, "seq": 4, "state": "over"}
    note = {"seq": 5, "time": 1.0, "kind": "alarm", "message": HOSTILE}
    paused = {"seq": 3, "time": 1.0, "kind": "pause", "by": "alarm"}
    resumed = {"seq": 6, "time": 2.0, "kind": "resume"}
    cases: list[tuple[Any, list[Any], bool, int]] = [
        (on, [paused, on], True, 1),
        (over, [over, paused, on], False, 1),
        (None, [note], True, 1),
        (None, [resumed, note], False, 1),
        (None, [], False, 0),
    ]
    for now, events, stressed, listed in cases:
        made = panels({**view, "alarm": now, "history": {**view["history"], "events": events}})
        assert ('<p class="alarm">' in made["alarm"]) is stressed
        assert made["events"].count('<li class="alarm">') == listed
        assert "<script>" not in made["alarm"] + made["events"]
        assert ("paused by the alarm" in made["events"]) is (paused in events)
    assert "above the limit of 1\u00a0%" in panels({**view, "alarm": on})["alarm"]


def test_a_forecast_is_made_in_the_background_and_again_when_the_experiment_moves_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(looks, "LEAST_PAUSE", 0.0)
    monkeypatch.setattr(looks, "PAUSE", 0.0)
    made: list[float] = []

    async def forecast(name: str, loss: float, horizon: int) -> dict[str, Any]:
        made.append(loss)
        await asyncio.sleep(0.01)
        if loss == 2.0:
            raise refuse("loss", loss, "smaller")
        return {"loss": loss, "number": len(made)}

    async def play() -> None:
        outlooks = looks.Outlooks(forecast)
        first = looks.Asked("shop", 1.0, 100)
        assert (await outlooks.look(first, 7))["waiting"] is True
        found = await outlooks.look(first, 7, patience=10.0)
        assert (found["forecast"]["number"], found["at"], len(made)) == (1, 7, 1)
        assert (await outlooks.look(first, 7))["forecast"]["number"] == 1  # nothing happened: not made again
        assert (await outlooks.look(first, 8))["at"] == 7  # the old one, while the new one is being made
        await asyncio.sleep(0.1)
        assert (await outlooks.look(first, 8))["forecast"]["number"] == 2
        why = await outlooks.look(looks.Asked("shop", 2.0, 100), 8, patience=10.0)
        assert (why["forecast"], why["why"]) == (
            None,
            "There is no forecast: loss must be smaller, but is 2.0.",
        )
        outlooks.close()

    asyncio.run(play())


# Views


def played(**more: Any) -> tuple[lt.Experiment, list[Any]]:
    experiment = lt.Experiment(lt.UCB(lt.AnyTime(0.5)), arms=["A", "B"], seed=1, **more)
    for _ in range(60):
        trial = experiment.ask()
        experiment.tell(trial.id, reward=trial.arm == "B")
    return experiment, [experiment.ask() for _ in range(3)]


def test_a_view_has_the_numbers_of_the_experiment() -> None:
    experiment, _ = played(horizon=200)
    view = experiment_view(experiment, loss=20, seed=1, paths=200)
    limits = experiment.intervals()
    for one in view["arms"]:
        found = limits.means[one["arm"]]
        assert (one["value"], one["low"], one["high"]) == tuple(found)
        assert one["tries"] == experiment.pulls[one["arm"]]
    (ahead,) = view["ahead"]
    assert (view["best"], ahead["than"], ahead["shown"]) == ("B", "A", limits.better("B", "A"))
    assert view["risk"]["forecast"] == experiment.forecast(loss=20, seed=1, paths=200).to_dict()
    assert view["rewards"] == {"open": 3, "told": 60}
    spans = view["history"]["traffic"]["spans"]
    assert sum(count for span in spans for _, _, count in span) == 63
    text = experiment.summary(loss=20, seed=1, paths=200)
    assert str(experiment.forecast(loss=20, seed=1, paths=200)) in text
    assert "63 of 200 pulls, 3 open trials" in text


def test_limits_are_not_promised_while_late_rewards_replace_defaults() -> None:
    view = experiment_view(played()[0])
    for amended in (0, 3):
        said = panels({**view, "rewards": {**view["rewards"], "amended": amended}})["arms"]
        assert ("Late rewards have replaced defaults" in said) is (amended > 0)
        assert ("The limits hold however often you look" in said) is (amended == 0)


def test_the_sentence_counts_arms_that_the_page_does_not_show() -> None:
    """The page shows 200 arms that the best one beats, and there are 50 more, of which nothing is known."""
    heard = {"best": (20_000, 10_000.0), **{f"bad{place}": (20_000, 2_000.0) for place in range(205)}}
    tries = {**dict.fromkeys(heard, 30_000), "best": 20_000}
    view: dict[str, Any] = arms_view(tries, heard, BoundedRewards())
    assert leading(view).endswith("(0.5), and it is shown that best is better than every other arm.")
    unknown = {f"new{place}": (0, 0.0) for place in range(50)}
    view = arms_view(tries | dict.fromkeys(unknown, 0), heard | unknown, BoundedRewards())
    assert len(view["ahead"]) == 200
    assert leading(view).endswith("(0.5); it is shown to be better than 205 arms of 255.")


def test_the_lead_is_that_of_all_pairs() -> None:
    heard = {"A": (900, 90.0), "B": (900, 180.0), "C": (300, 20.0)}
    now, every = lt.inference.lead(heard, BoundedRewards()), confidence_sequences(heard, BoundedRewards())
    assert now.means == every.means
    assert {arm: now.shown(arm) for arm in now.ahead} == {arm: every.better("B", arm) for arm in "AC"}
    many = {arm: (900, 90.0 if arm else 500.0) for arm in range(60)}
    wide = lt.inference.lead(many, BoundedRewards())
    assert wide.best == 0
    assert all(map(wide.shown, wide.ahead))


@pytest.mark.parametrize(
    "more",
    [
        {"arms": [f"arm {place}" for place in range(300)], "policy": "ts:0.5"},
        {"policy": "linucb:lighttailed:0.5", "dim": 2, "arms": None},
        {
            "policy": "ts:0.5",
            "arms": [HOSTILE, ""],
            "settings": {"window": 60_000, "default": 0, "late": "amend"},
        },
        {"policy": "ucb:anytime:0.5", "arms": ["A", "B", "C"], "horizon": None},
    ],
    ids=["many", "linear", "hostile", "endless"],
)
def test_every_kind_of_experiment_has_a_page(more: dict[str, Any]) -> None:
    with client_of() as client:
        made = client.post("/v1/experiments", json={**ONE, "horizon": 1_000, **more})
        assert made.status_code == 201, made.text
        body: dict[str, Any] = {"actions": [[1, 0], [0, 1]]} if more.get("dim") else {"unit": HOSTILE}
        for place in range(4):
            trial = client.post("/v1/experiments/one/ask", json=body).json()["trials"][0]
            rewards = [{"id": trial["id"], "reward": 7.5 if place == 3 else 0}]  # outside the usual range
            client.post("/v1/experiments/one/tell", json={"rewards": rewards})
        if len(more.get("arms") or ()) == 3:
            client.post("/v1/experiments/one/arms", json={"retire": "C"})
        page = client.get("/experiments/one", headers=PAGE)
        assert page.status_code == 200
        assert not NO_INLINE.search(page.text.replace("&lt;script", ""))
        assert "'unsafe" not in page.headers["content-security-policy"]
        assert client.get("/experiments/one/parts").json()["parts"].keys() > {"risk", "arms", "traffic"}
        view = client.get("/v1/experiments/one/view").json()
        assert view["rewards"]["told"] == 4
        assert client.get("/", headers=PAGE).status_code == 200


def begin(client: Any, values: tuple[float, ...], retire: bool = False, **settings: Any) -> dict[str, Any]:
    """The view of an experiment whose trials, one after another, got these rewards."""
    body = {**ONE, "arms": ["A", "B", "C"], "horizon": 10_000, "settings": settings}
    assert client.post("/v1/experiments", json=body).status_code == 201
    if retire:
        client.post("/v1/experiments/one/arms", json={"retire": "C"})
    trials = client.post("/v1/experiments/one/ask", json={"count": len(values)}).json()["trials"]
    told = [{"id": one["id"], "reward": reward} for one, reward in zip(trials, values, strict=True)]
    assert client.post("/v1/experiments/one/tell", json={"rewards": told}).status_code == 200
    found: dict[str, Any] = client.get("/v1/experiments/one/view").json()
    return found


GOOD, FAR = (0.0, 1.0) * 60, (0.0,) * 119 + (40.0,)
RANGE = {"low": 0, "high": 40}


@pytest.mark.parametrize(
    ("rewards", "retire", "settings", "why"),
    [
        (FAR, False, {}, "settings.rewards must be set so that it fits the rewards"),
        (FAR, True, {}, "settings.rewards must be set so that it fits the rewards"),
        (GOOD, True, {}, None),
        (FAR, True, {"rewards": RANGE}, None),
        (FAR, False, {"rewards": RANGE}, None),
    ],
    ids=["far", "far and retired", "retired", "range and retired", "range"],
)
def test_rewards_that_are_no_evidence_have_no_limits(
    rewards: tuple[float, ...], retire: bool, settings: dict[str, Any], why: str | None
) -> None:
    with client_of() as client:
        view = begin(client, rewards, retire, **settings)
        parts = client.get("/experiments/one/parts").json()["parts"]
        limits = {one[name] for one in view["arms"] for name in ("low", "high")}
        assert (limits == {None}) is (why is not None)
        assert (view["best"] is None) is (why is not None)
        assert ("however often you look" in parts["arms"]) is (why is None)
        assert ("shown</strong>" in parts["arms"]) is (why is None)
        assert ("Nothing is shown about which arm is better" in parts["sum"]) is (why is not None)
        assert why is None or f"There are no limits: {why}" in parts["arms"]


@pytest.mark.parametrize("retire", [False, True])
def test_trials_that_are_older_than_the_window_have_limits_although_an_arm_was_retired(
    retire: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lighttail.server.dashboard.LONGER", 0.0)
    monkeypatch.setattr("lighttail.server.dashboard.MOMENT", 0.0)
    clock = Clock()
    with client_of(clock=clock) as client:
        young = begin(client, GOOD, retire, window=60.0, default=0)
        assert [one["heard"] for one in young["arms"]] == [0, 0, 0]
        clock.now += 60.0
        view = client.get("/v1/experiments/one/view").json()
        assert sum(one["heard"] for one in view["arms"]) == len(GOOD)
        heard = {
            one["arm"]: (one["heard"], round(one["heard"] * (one["value"] or 0.0))) for one in view["arms"]
        }
        expected = confidence_sequences(heard, BoundedRewards()).means
        for one in view["arms"]:
            assert (one["low"], one["high"]) == expected[one["arm"]][1:]
            assert one["retired"] is (retire and one["arm"] == "C")
        said = client.get("/experiments/one/parts").json()["parts"]["arms"]
        assert "The limits hold however often you look" in said
        assert "Trials younger than the window" in said


def test_young_rewards_are_said_to_have_come() -> None:
    with client_of() as client:
        begin(client, GOOD, window=60_000.0, default=0)
        said = client.get("/experiments/one/parts").json()["parts"]
        assert "120 rewards have come, but nothing is shown yet" in said["sum"]
        assert "older than the window (16 hours)" in said["sum"]
        assert "No reward has come yet" not in said["sum"] + said["rewards"]


def test_an_old_forecast_is_not_taken_for_one_of_the_pulls_beside_it() -> None:
    """A forecast takes seconds, and thousands of pulls may come meanwhile."""
    view = experiment_view(played(horizon=200)[0], loss=20, horizon=200, seed=1, paths=200)
    fresh = losing(view), panels(view)["risk"]
    assert fresh[0].startswith("The chance of losing 20 or more")
    assert "Lost so far, on average" in fresh[1]
    pulls, view["pulls"] = view["pulls"], 190
    for said in (losing(view), panels(view)["risk"]):
        assert f"By the forecast after {pulls} pulls (a newer one follows), the chance of losing" in said
    assert f"Lost in the first {pulls} pulls, on average" in panels(view)["risk"]


def test_a_limit_is_held_against_a_forecast_about_its_own_end_alone() -> None:
    view = experiment_view(played(horizon=200)[0], loss=20, horizon=200, seed=1, paths=200)
    view["settings"] = {"risk": {"loss": 20.0, "chance": 0.5, "then": "warn"}}
    found = limit_words(view)
    assert found is not None
    assert "The settings allow a chance of 50 %" in found[0]
    forecast = view["risk"]["forecast"]
    for other in ({"horizon": 100}, {"horizon": 400}, {"loss": 21.0}):
        assert limit_words({**view, "risk": {"forecast": {**forecast, **other}}}) is None
    forecast["chance"] = forecast["worst"] = {"value": 0.02, "low": 0.017, "high": 0.023}
    said = panels(view)["risk"]
    assert said.count("between 1.7\u00a0% and 2.3\u00a0%: this is the error of the simulation alone") == 2
    assert said.count("alone; the doubt about the means is in the average") == 1


def test_times_have_a_day_and_the_page_names_their_zone_once() -> None:
    with client_of() as client:
        begin(client, GOOD)
        for path in ("/", "/experiments/one"):
            text = client.get(path, headers=PAGE).text
            times = re.findall(r'<time datetime="([^"]*)">([^<]*)</time>', text)
            assert times
            assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", exact) for exact, _ in times)
            assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", said) for _, said in times)
            assert text.count("UTC") == 1


def test_inline_scripts_would_be_noticed() -> None:
    """Negative control."""
    for text in ("<script>x", "<p style='x'>", '<a onclick="x">', "<style>"):
        assert NO_INLINE.search(text)


# Forms


def test_every_field_of_the_form_reaches_its_place() -> None:
    typed = {
        "name": "shop",
        "arms": "A\r\nB\n",
        "policy": "ts:0.5",
        "horizon": "1e3",
        "loss": "10",
        "chance": "1 %",
    }
    typed |= {"then": "pause", "low": "0", "high": "2", "window": "60", "default": "0", "fallback": "B"}
    typed["late"] = "amend"
    body = body_of(typed)
    assert body["settings"] == {
        "risk": {"loss": 10.0, "chance": 0.01, "then": "pause"},
        "rewards": {"low": 0.0, "high": 2.0},
        "window": 60.0,
        "default": 0.0,
        "fallback": "B",
        "late": "amend",
    }
    assert (body["arms"], body["horizon"]) == (["A", "B"], 1000)
    assert body_of({"name": "", "policy": "", "then": "warn", "late": "amend"}) == {"name": "", "policy": ""}
    for field in FIELDS:
        assert field_of(refuse(field.path, None, "given")) == field.name
    assert field_of(refuse("body", None, "given")) is None


WRONG = {
    "name": "a b",
    "arms": "A",
    "policy": "no:policy",
    "horizon": "many",
    "chance": "120 %",
    "low": "5",
    "least_mean": "6 %",
    "largest_mean": "high",
    "window": "-3",
    "fallback": "C",
    "loss": "-1",
}


@pytest.mark.parametrize(("field", "value"), WRONG.items())
def test_a_wrong_field_is_answered_beside_it_with_the_servers_sentence(field: str, value: str) -> None:
    good = {"name": "one", "arms": "A\nB", "policy": "ucb:anytime:0.5", "horizon": "100", "loss": "1"}
    good |= {"chance": "0.01", "then": "warn", "low": "0", "high": "1", "window": "9", "default": "0"}
    good |= {"least_mean": "3 %", "largest_mean": "0.05"}
    with client_of() as client:
        answer = client.post("/experiments", data={**good, field: value}, headers=HERE | PAGE)
        assert answer.status_code == 400, answer.text
        ends = {"low": "high", "least_mean": "largest_mean"}  # a range that is empty is named by its end
        beside = ends.get(field, field)
        (said,) = re.findall(rf'<p class="error" id="e-{beside}">(.*?)</p>', answer.text)
        assert "must be" in said
        assert client.get("/v1/experiments").json() == {"experiments": []}
        made = client.post("/experiments", data=good, headers=HERE | PAGE)  # negative control
        assert (made.status_code, made.headers["location"]) == (303, "/experiments/one")
        settings = client.get("/v1/experiments/one").json()["settings"]
        assert settings["means"] == {"low": 0.03, "high": 0.05}


def test_one_limit_of_the_means_asks_for_the_other() -> None:
    one = {"name": "one", "arms": "A\nB", "policy": "ts:0.1", "least_mean": "3 %"}
    with client_of() as client:
        answer = client.post("/experiments", data=one, headers=HERE | PAGE)
        assert answer.status_code == 400
        (said,) = re.findall(r'<p class="error" id="e-least_mean">(.*?)</p>', answer.text)
        assert "high is missing" in said


def test_the_field_of_the_chance_says_when_an_alarm_rings_by_luck() -> None:
    (field,) = [field for field in FIELDS if field.name == "chance"]
    assert "by luck" in field.help


def test_a_forecast_without_limits_on_the_means_says_so() -> None:
    experiment = lt.Experiment(lt.EvenSplit(), arms=["A", "B"], horizon=100, seed=1)
    for _ in range(10):
        experiment.tell(experiment.ask().id, 0)
    said = "No limits on the means are set"
    quick = {"loss": 1.5, "paths": 100, "threads": 1}
    assert said in panels(experiment_view(experiment, **quick))["risk"]
    assert said not in panels(experiment_view(experiment, **quick, between=(0.03, 0.05)))["risk"]
    with client_of() as client:
        for name, settings in (("one", {}), ("two", {"means": {"low": 0.03, "high": 0.05}})):
            client.post("/v1/experiments", json={**ONE, "name": name, "horizon": 100, "settings": settings})
            view = client.get(f"/v1/experiments/{name}/view").json()
            assert view["means_between"] == settings.get("means")
            view["risk"] = experiment_view(experiment, **quick)["risk"]
            assert (said in panels(view)["risk"]) is (name == "one")


# Who may


def test_no_get_changes_and_no_foreign_page_can() -> None:
    with client_of() as client:
        client.post("/v1/experiments", json=ONE)
        before = client.get("/v1/experiments/one").json()["seq"]
        for act in ("pause", "resume", "stop"):
            refusal(client.get(f"/experiments/one/{act}"), 405, "method")
            foreign: list[dict[str, str]] = [{}, {"Origin": "http://evil.example"}, {"Origin": "null"}]
            foreign += [{"Sec-Fetch-Site": site} for site in ("cross-site", "same-site", "none")]
            for headers in foreign:
                refusal(client.post(f"/experiments/one/{act}", content=b"", headers=FORM | headers), 403)
            refusal(client.post(f"/experiments/one/{act}", json={}, headers=HERE), 415)
        refusal(client.post("/experiments", data={"name": "x"}), 403, "Origin")
        assert client.get("/v1/experiments/one").json()["seq"] == before
        own = client.post("/experiments/one/pause", content=b"", headers=FORM | HERE)  # negative control
        assert (own.status_code, own.headers["location"]) == (303, "/experiments/one")
        assert client.get("/v1/experiments/one").json()["paused"] is True


def test_a_line_break_at_the_end_of_a_path_is_no_part_of_a_name() -> None:
    """The path of a route is a pattern that also fits a path with a line break at its end."""
    with client_of() as client:
        client.post("/v1/experiments", json=ONE)
        for act, field, then in (
            ("pause", "paused", True),
            ("resume", "paused", False),
            ("stop", "stopped", True),
        ):
            done = client.post(f"/experiments/one/{act}%0A", content=b"", headers=FORM | HERE)
            assert (done.status_code, done.headers["location"]) == (303, "/experiments/one")
            assert client.get("/v1/experiments/one").json()[field] is then
        assert client.get("/static/page.js%0A").content == client.get("/static/page.js").content


def test_a_browser_keeps_a_key_and_may_do_what_the_key_may(tmp_path: Path) -> None:
    place = tmp_path / "keys.json"
    texts = {role: add_key(place, role, role) for role in ROLES}
    site = {"Origin": "https://experiments.example", "Host": "experiments.example"}
    with client_of(keys=Keys(place), at="experiments.example") as client:
        held = {"Authorization": f"Bearer {texts['manage']}"}
        client.post("/v1/experiments", json=ONE, headers=held)
        for path in ("/", "/experiments/one", "/nowhere"):
            asks = client.get(path, headers=PAGE)
            assert (asks.status_code, 'name="key"' in asks.text) == (401, True)
            refusal(client.get(path), 401, "Authorization")  # a program gets JSON
        assert client.get("/static/page.css").status_code == 200
        assert client.post("/login", data={"key": "lt_wrong"}, headers=site).status_code == 401
        refusal(client.post("/login", data={"key": texts["read"]}), 403, "Origin")
        cookies = {}
        for role in ROLES:
            found = client.post("/login", data={"key": texts[role]}, headers=site)
            assert found.status_code == 303
            flags = found.headers["set-cookie"]
            assert all(flag in flags for flag in ("HttpOnly", "SameSite=Strict", "Secure", "Path=/"))
            cookies[role] = {"Cookie": flags.partition(";")[0]}
            assert not any(text in flags for text in texts.values())  # a token, and not the key
        assert client.get("/", headers=cookies["ask"]).status_code == 403
        read = client.get("/experiments/one", headers=cookies["read"] | PAGE)
        assert read.status_code == 200
        assert "Yes, pause" not in read.text
        pause = "/experiments/one/pause"
        assert client.post(pause, content=b"", headers=FORM | site | cookies["read"]).status_code == 403
        assert "Yes, pause" in client.get("/experiments/one", headers=cookies["manage"] | PAGE).text
        evil = {"Origin": "https://evil.example"}
        for path, headers in (
            (pause, FORM),
            ("/v1/experiments/one/pause", {"Content-Type": "application/json"}),
        ):
            for origin in (evil, {}):
                refusal(
                    client.post(path, content=b"", headers=headers | origin | cookies["manage"]),
                    403,
                    "Origin",
                )
        assert client.get("/v1/experiments/one", headers=cookies["manage"]).json()["paused"] is False
        assert client.post(pause, content=b"", headers=FORM | site | cookies["manage"]).status_code == 303
        assert client.get("/v1/experiments/one", headers=cookies["manage"]).json()["paused"] is True
        out = client.post("/logout", content=b"", headers=FORM | site | cookies["manage"])
        assert "Max-Age=0" in out.headers["set-cookie"]
        assert client.get("/", headers=cookies["manage"]).status_code == 401  # the session has ended
        assert client.get("/", headers=cookies["read"]).status_code == 200
        remove_key(place, "read")
        assert client.get("/", headers=cookies["read"] | PAGE).status_code == 401


def test_any_good_cookie_of_this_servers_port_is_accepted(tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys.json", "anna", "read")
    with client_of(keys=Keys(tmp_path / "keys.json")) as client:

        def enter(host: str) -> str:
            site = {"Origin": f"http://{host}", "Host": host}
            cookie = client.post("/login", data={"key": key}, headers=site).headers["set-cookie"]
            return str(cookie.partition(";")[0])

        def status(cookie: str, host: str = "here:8710") -> int:
            return client.get("/", headers={"Host": host, "Cookie": cookie}).status_code

        good = enter("here:8710")
        name = good.partition("=")[0]
        assert name == "lighttail_8710"
        assert status(good) == 200
        assert status(f"{name}=bad; theme=dark; {good}") == 200
        assert status(f"{good}; {name}=bad") == 200
        assert status(good, "here:8711") == 401  # negative controls: of another server, bad, and the key
        assert status(f"{name}=bad") == 401
        assert status(f"{name}={key}") == 401
        assert enter("here:8711").startswith("lighttail_8711=")  # two servers keep two cookies
        for path in ("/v1/experiments", "/experiments/one/parts", "/parts", "/metrics", "/docs"):
            answer = client.get(path, headers={"Host": "here:8710", "Cookie": good})
            assert answer.headers["cache-control"] == "no-store", path


def test_a_session_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "keys.json"
    texts = [add_key(place, name, "read") for name in ("anna", "bert")]
    now = [0.0]
    sessions = Sessions(Keys(place), lambda: now[0])
    anna, bert = (sessions.begin(text) or "" for text in texts)
    assert sessions.begin("lt_wrong") is None
    assert anna not in texts
    now[0] = WEEK - 1.0
    assert [sessions.find([token]).name for token in (anna, bert)] == ["anna", "bert"]  # type: ignore[union-attr]
    remove_key(place, "anna")
    assert sessions.find([anna]) is None
    assert sessions.find([anna, "", bert]) is not None
    now[0] = WEEK + 1.0
    assert sessions.find([bert]) is None
    monkeypatch.setattr("lighttail.server.guard.MOST_SESSIONS", 2)
    many = [sessions.begin(texts[1]) or "" for _ in range(3)]
    assert [sessions.find([token]) is not None for token in many] == [False, True, True]
    sessions.end(many[1:2])
    assert [sessions.find([token]) is not None for token in many] == [False, False, True]


# Without a service


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lighttail.cli", "watch", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_watch_prints_the_table_and_writes_the_page(tmp_path: Path) -> None:
    experiment, _ = played(horizon=200)
    state, out = tmp_path / "shop.json", tmp_path / "page.html"
    state.write_text(experiment.to_json())
    done = run(str(state), "--loss", "20", "--out", str(out), "--seed", "1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(experiment.summary())
    text = out.read_text()
    assert "<script" not in text
    assert not re.search(r'(src|href)="', text)
    view = experiment_view(experiment, loss=20, seed=1)
    large = re.findall(r'<p class="large">(.*?)</p>', text)
    assert len(large) == 1  # the chance to act on
    assert static_page({**view, "name": "shop"}) == text
    chance = view["risk"]["forecast"]["chance"]["value"]
    assert large[0] == (f"{100 * chance:.3g}\u00a0%" if chance >= 0.01 else large[0])
    for words in (["no.json"], [str(out)], [str(state), "--out", "x.txt"], [str(state), "--loss", "-1"]):
        bad = run(*words)
        assert (bad.returncode, bad.stderr.count("\n")) == (2, 1), bad.stderr
        assert Path(words[-1]).name in bad.stderr  # the file or the value


def test_a_hostile_view_stays_text() -> None:
    experiment = lt.Experiment(lt.UCB(lt.AnyTime(0.5)), arms=[HOSTILE, "B"], seed=1)
    for trial in experiment.ask(count=5):
        experiment.tell(trial.id, 1.0)
    view = json.loads(json.dumps(experiment_view(experiment, name=HOSTILE)))
    page = experiment_page({**view, "now": 1.0}, True, True, {"loss": HOSTILE})
    assert "<script>alert" not in static_page(view) + page
    assert "\u202e" not in static_page(view)
    assert page.count("\u202e") == 1  # the field keeps what was typed


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.04, 0.03, 0.02], "that of A (0.04), but"),
        ([0.04, 0.04, 0.02], "that of A and of B (0.04), but"),
        ([0.04, 0.04, 0.04], "that of A and of 2 other arms (0.04), but"),
    ],
)
def test_arms_with_the_same_best_mean_are_named_together(values: list[float], said: str) -> None:
    arms = [{"arm": arm, "value": value} for arm, value in zip("ABC", values, strict=True)]
    view = {"best": "A", "arms": arms, "arms_count": 3, "beats": 0}
    assert f"The best mean so far is {said}" in leading(view)


@pytest.mark.parametrize(("last", "ends"), [(30.0, ("00:00:00", "00:00:30")), (90.0, ("00:00", "00:01"))])
def test_traffic_of_less_than_a_minute_has_seconds_at_its_ends(last: float, ends: tuple[str, str]) -> None:
    """Otherwise both ends of the picture would have the same time."""
    shown_ends = re.findall(
        r">1970-01-01 ([\d:]+)<", str(_axis({"start": 0.0, "last": last, "unit": "seconds"}))
    )
    assert tuple(shown_ends) == ends


def test_one_trial_is_one_trial_and_losses_have_round_numbers_on_their_axis() -> None:
    experiment = lt.Experiment(lt.ThompsonSampling(0.5), ["A", "B"], horizon=200, seed=1)
    experiment.tell(experiment.ask().id, 1.0)
    shown = panels(experiment_view(experiment, loss=20, seed=1))
    assert "1 trial<" in shown["traffic"]
    assert "1 trials" not in shown["traffic"]
    marks = re.findall(r'<g class="tick">.*?<text[^>]*>([^<]*)</text></g>', shown["risk"])
    assert len(marks) >= 4
    assert marks[0] == "0"
    steps = {round(float(b.replace(",", "")) - float(a.replace(",", "")), 9) for a, b in pairwise(marks)}
    assert len(steps) == 1
