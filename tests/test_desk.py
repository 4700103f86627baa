"""The desk: what a caller gets, what the journal keeps, and what is refused with which status."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest
from desks import Clock, book_of, desk_of, events_of, replayed, text_of
from journals import FailingJournal
from served import FOREVER

import lighttail as lt
from lighttail.live import Journal, Office
from lighttail.live.awaiting import AsyncDesk
from lighttail.live.errors import Refused, status_of
from lighttail.live.memory import MemoryJournal
from lighttail.live.requests import Look, Ticket, Told, ask_for, tell_of


def refused(call: Any, status: int, field: str | None, words: str = "") -> lt.BadInput:
    with pytest.raises(lt.BadInput) as caught:
        call()
    assert (status_of(caught.value), caught.value.field) == (status, field)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    return caught.value


# Asks and tells


def test_a_desk_plays_like_an_experiment_with_the_same_seed(journal: Journal) -> None:
    """Over every kind of journal."""
    twin = lt.Experiment(lt.UCB(lt.AnyTime(0.3)), ["A", "B", "C"], horizon=500, seed=3)
    with desk_of(journal) as desk:
        for turn in range(6):
            served, trials = desk.ask(5), twin.ask(5)
            assert [(one.id, one.arm, one.by) for one in served] == [(t.id, t.arm, "policy") for t in trials]
            told = [(trial.id, float((trial.id * 7) % 3)) for trial in trials[: 3 + turn % 3]]
            assert desk.tell(told) == Told(len(told), 0, 0)
            for id, reward in told:
                twin.tell(id, reward)
        assert desk.state() == twin.to_json(told=False)
        book = book_of(desk)
    assert replayed(journal) == book


def test_events_are_those_of_the_page() -> None:
    journal, clock = MemoryJournal(), Clock()
    with desk_of(journal, clock) as desk:
        (one,) = desk.ask(key="k", unit="u")
        clock.now += 1.5
        desk.tell({str(one.id): True})
    made, asked, told = events_of(journal)
    assert list(made) == ["seq", "time", "kind", "name", "policy", "arms", "horizon", "seed", "settings"]
    assert asked == {
        **{"seq": 2, "time": 1000.0, "kind": "ask", "id": "1", "arm": one.arm, "by": "policy"},
        **{"key": "k", "unit": "u"},
    }
    assert told == {"seq": 3, "time": 1001.5, "kind": "tell", "id": "1", "reward": 1.0}


def test_a_key_gives_the_same_trials_for_ever_and_writes_nothing(journal: Journal) -> None:
    with desk_of(journal) as desk:
        first = desk.ask(3, key="k")
        desk.ask(2)
        assert desk.ask(3, key="k") == first
        refused(lambda: desk.ask(2, key="k"), 409, "count", "must be 3, as before with the key 'k'")
        refused(lambda: desk.ask(1, key="k", unit="u"), 409, "count")
        (one,) = desk.ask(key="other", unit="u")
        refused(lambda: desk.ask(key="other", unit="w"), 409, "unit", "must be as before")
        refused(lambda: desk.ask(key="other"), 409, "unit")
        assert desk.ask(key="other", unit="u") == [one]
    with desk_of(journal) as desk:  # another server
        assert desk.ask(3, key="k") == first
    assert len(events_of(journal)) == 1 + 3 + 2 + 1


def test_a_reward_counts_once(journal: Journal) -> None:
    with desk_of(journal) as desk:
        desk.ask(3)
        assert desk.tell([(1, 0.5), ("2", 1)]) == Told(2, 0, 0)
        assert desk.tell([(1, 0.5), (2, 1.0), (3, 0.0)]) == Told(1, 2, 0)
        assert desk.tell([(3, False), ("3", 0.0)]) == Told(0, 2, 0)
        refused(lambda: desk.tell([(1, 0.75)]), 409, "reward", "the reward that was told before for trial 1")
        assert desk.summary()["heard"] == desk.summary()["tries"]
    assert [event["kind"] for event in events_of(journal)] == ["create", *["ask"] * 3, *["tell"] * 3]


def test_a_list_of_rewards_counts_whole_or_not_at_all(journal: Journal) -> None:
    with desk_of(journal) as desk:
        desk.ask(3)
        desk.tell([(1, 1.0)])
        before, lines = book_of(desk), len(events_of(journal))
        refused(lambda: desk.tell([(2, 1.0), (9, 1.0)]), 404, "id", "(1 to 3)")
        refused(lambda: desk.tell([(2, 1.0), (1, 0.0)]), 409, "reward")
        refused(lambda: desk.tell([(2, 1.0), (2, 0.0)]), 409, "reward", "as before in the same list")
        refused(lambda: desk.tell([(2, 1.0), (3, math.nan)]), 400, "reward")
        assert (book_of(desk), len(events_of(journal))) == (before, lines)
        assert desk.tell([(2, 1.0), (2, 1.0), (3, 0.0)]) == Told(2, 1, 0)


def test_a_reward_that_the_policy_refuses_undoes_the_whole_list() -> None:
    """EXP3-IX refuses a reward that makes a score infinite, after it took in the reward before."""
    with desk_of(policy="exp3ix:reward") as desk:
        desk.ask(40)
        desk.tick()
        assert desk._book is not None
        desk._book.player.standing.params = (1.0, 1e-300, 0.0)  # type: ignore[attr-defined]
        memos = desk._book.ledger._memos
        for place in range(len(memos)):
            memos[place] = 1e-250
        before = text_of(desk._book)
        refused(lambda: desk.tell([(1, 1.0), (2, 1e60)]), 400, "reward", "notes of Exp3IX stay finite")
        assert text_of(desk._book) == before
        assert desk.tell([(1, 1.0), (2, 1.0)]) == Told(2, 0, 0)


@pytest.mark.parametrize(
    ("call", "status", "field"),
    [
        (lambda desk: desk.ask(0), 400, "count"),
        (lambda desk: desk.ask(1001), 400, "count"),
        (lambda desk: desk.ask(1.5), 400, "count"),
        (lambda desk: desk.ask(2, unit="u"), 400, "count"),
        (lambda desk: desk.ask(key=""), 400, "key"),
        (lambda desk: desk.ask(key="x" * 201), 400, "key"),
        (lambda desk: desk.ask(key="a\0"), 400, "key"),
        (lambda desk: desk.ask(key="\ud800"), 400, "key"),
        (lambda desk: desk.ask(unit=7), 400, "unit"),
        (lambda desk: desk.ask(actions=[[1.0]]), 400, "actions"),
        (lambda desk: desk.tell([]), 400, "the number of rewards"),
        (lambda desk: desk.tell([(1, 1.0)] * 1001), 400, "the number of rewards"),
        (lambda desk: desk.tell("1"), 400, "rewards"),
        (lambda desk: desk.tell(None), 400, "rewards"),
        (lambda desk: desk.tell([(1, "1")]), 400, "reward"),
        (lambda desk: desk.tell([(1, 1e101)]), 400, "reward"),
        (lambda desk: desk.tell([(1.0, 1.0)]), 400, "id"),
        (lambda desk: desk.tell([(True, 1.0)]), 400, "id"),
        (lambda desk: desk.tell([(None, 1.0)]), 400, "id"),
        *(
            (lambda desk, id=id: desk.tell([(id, 1.0)]), 404, "id")
            for id in (0, -1, 2, "0", "01", "x", "²", "")
        ),
        (lambda desk: desk.tell([(10**30, 1.0)]), 404, "id"),
        (lambda desk: desk.tell([("9" * 5000, 1.0)]), 404, "id"),
        (lambda desk: desk.set(None), 400, "settings"),
        (lambda desk: desk.set({"shares": {"D": 0.1}}), 400, "an arm of settings.shares"),
    ],
)
def test_a_bad_request_is_refused_and_changes_nothing(call: Any, status: int, field: str) -> None:
    with desk_of() as desk:
        desk.ask()
        before = book_of(desk)
        refused(lambda: call(desk), status, field)
        assert book_of(desk) == before


def test_the_summary_adds_up() -> None:
    with desk_of() as desk:
        desk.ask(10)
        desk.tell([(id, 1.0) for id in range(1, 5)])
        found = desk.summary()
    assert found["arms"] == ["A", "B", "C"]
    assert (sum(found["tries"].values()), sum(found["heard"].values()), found["open"]) == (10, 4, 6)
    assert set(found["means"].values()) <= {1.0, None}
    assert (found["paused"], found["stopped"], found["horizon"], found["settings"]) == (False, False, 500, {})
    assert (found["asked"]["policy"], found["events"]["tell"], found["seq"]) == (10, 4, 15)


def test_nothing_heard_is_no_mean() -> None:
    with desk_of() as desk:
        assert desk.summary()["means"] == {"A": None, "B": None, "C": None}


# Experiments of an office


def test_the_same_experiment_again_is_no_other() -> None:
    office = Office(MemoryJournal(), Clock())
    given = {"policy": "ucb:anytime:0.5", "arms": ["A", "B"], "settings": {"sticky": True}}
    one, made = office.create("one", **given)
    again, made_again = office.create("one", **given)
    assert (made, made_again, one is again) == (True, False, True)
    for change in ({"arms": ["A", "C"]}, {"policy": "ts:1"}, {"horizon": 9}, {"settings": {}}, {"seed": 1}):
        error = refused(
            lambda change=change: office.create("one", **{**given, **change}), 409, next(iter(change))
        )
        assert "as before in the experiment 'one'" in str(error)
    assert office.names() == ["one"]
    refused(lambda: office.desk("two"), 404, "name")
    office.close()
    refused(lambda: office.desk("one"), 503, "server")
    refused(one.ask, 503, "server")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        *(
            ({"name": name}, "name")
            for name in ("", ".", "..", "a/b", "a b", "<b>", "é", "x" * 101, 3, "a\n")
        ),
        ({"policy": "my.py:Policy(1)"}, "policy"),
        ({"policy": "os:system('x')"}, "policy"),
        ({"policy": "nothing"}, "policy"),
        ({"policy": None}, "policy"),
        ({"policy": "lints:1"}, "arms"),
        ({"policy": "lints:1", "arms": None}, "dim"),
        ({"dim": 3}, "dim"),
        ({"arms": ["A"]}, "arms"),
        ({"arms": ["A", "\ud800"]}, "arms"),
        ({"arms": None}, "arms"),
        ({"horizon": 1}, "horizon"),
        ({"policy": "ucb:lighttailed:0.2"}, "horizon"),
        ({"seed": -1}, "seed"),
        ({"settings": []}, "settings"),
        ({"settings": {"shars": {}}}, "the name of a setting"),
        ({"settings": {"shares": {"A": 0.0}}}, "settings.shares.A"),
        ({"settings": {"shares": {"A": 0.6, "B": 0.6}}}, "the sum of settings.shares"),
        ({"settings": {"holdout": {"arm": "A"}}}, "the fields of settings.holdout"),
        ({"settings": {"holdout": {"arm": "D", "share": 0.1}}}, "settings.holdout.arm"),
        ({"settings": {"sticky": 1}}, "settings.sticky"),
        ({"settings": {"window": 0, "default": 0}}, "settings.window"),
        ({"settings": {"window": 60}}, "settings.default"),
        ({"settings": {"default": 0}}, "settings.default"),
        ({"settings": {"late": "amend"}}, "settings.late"),
        ({"settings": {"window": 1, "default": 0, "late": "never"}}, "settings.late"),
        ({"settings": {"fallback": "D"}}, "settings.fallback"),
        ({"settings": {"risk": {"loss": 1, "chance": 2, "then": "warn"}}}, "settings.risk.chance"),
        ({"policy": "exp3ix:loss:1", "horizon": 9, "settings": {"shares": {"A": 0.1}}}, "policy"),
        ({"policy": "exp3ix:loss:1", "horizon": 9, "settings": {"sticky": True}}, "policy"),
        ({"policy": "etc:3", "settings": {"window": 1, "default": 0, "late": "amend"}}, "policy"),
        ({"policy": "lints:1", "arms": None, "dim": 2, "settings": {"sticky": True}}, "settings.sticky"),
    ],
)
def test_a_bad_experiment_is_refused_and_not_made(change: dict[str, Any], field: str) -> None:
    office = Office(MemoryJournal(), Clock())
    given = {"name": "one", "policy": "ucb:anytime:0.5", "arms": ["A", "B"]}
    refused(lambda: office.create(**{**given, **change}), 400, field)
    assert office.names() == []
    office.create(**given)  # the control is accepted
    office.close()


# Guard rails


def test_floors_have_their_share_and_the_policy_learns_from_them() -> None:
    """z = 4 standard errors of a binomial count, fixed seed."""
    share, asks = 0.3, 1_000
    with desk_of(settings={"shares": {"C": share}}) as desk:
        served = desk.ask(asks)
        found = desk.summary()
        state = lt.Experiment.from_json(desk.state())
    floors = [one for one in served if one.by == "floor"]
    assert {one.arm for one in floors} == {"C"}
    assert abs(len(floors) - share * asks) < 4.0 * math.sqrt(asks * share * (1.0 - share))
    assert found["asked"]["floor"] == len(floors)
    assert found["tries"] == dict(Counter(one.arm for one in served)) == state.pulls
    assert found["pulls"] == asks


def test_floors_of_all_arms() -> None:
    with desk_of(settings={"shares": {"A": 0.25, "B": 0.25, "C": 0.5}}) as desk:
        assert {one.by for one in desk.ask(200)} == {"floor"}


def test_the_holdout_is_a_share_of_the_units_that_the_policy_never_sees() -> None:
    """z = 4 standard errors."""
    share, units = 0.25, 400
    with desk_of(settings={"holdout": {"arm": "B", "share": share}}) as desk:
        refused(desk.ask, 400, "unit", "because the experiment has the setting holdout")
        served = {f"u{n}": desk.ask(unit=f"u{n}")[0] for n in range(units)}
        out = {unit for unit, one in served.items() if one.by == "holdout"}
        assert all(served[unit].arm == "B" for unit in out)
        assert abs(len(out) - share * units) < 4.0 * math.sqrt(units * share * (1.0 - share))
        again = {f"u{n}" for n in range(units) if desk.ask(unit=f"u{n}")[0].by == "holdout"}
        assert again == out  # a unit stays in or out
        desk.tell([(served[unit].id, 1.0) for unit in sorted(out)[:10]])
        found, state = desk.summary(), lt.Experiment.from_json(desk.state())
    assert found["holdout"]["tries"] == {"A": 0, "B": 2 * len(out), "C": 0}
    assert found["holdout"]["heard"]["B"] == 10
    assert found["holdout"]["means"] == {"A": None, "B": 1.0, "C": None}
    assert found["holdout"]["open"] == 2 * len(out) - 10
    assert sum(found["heard"].values()) == 0
    assert (
        sum(state.pulls.values()) == sum(found["tries"].values()) == found["open"] == 2 * (units - len(out))
    )


def test_a_unit_sticks_to_its_arm(journal: Journal) -> None:
    with desk_of(journal, settings={"sticky": True}) as desk:
        refused(desk.ask, 400, "unit")
        arms = {f"u{n}": desk.ask(unit=f"u{n}")[0].arm for n in range(8)}
        for unit, arm in arms.items():
            (one,) = desk.ask(unit=unit)
            assert (one.arm, one.by) == (arm, "sticky")
        assert desk.summary()["pulls"] == 16
    with desk_of(journal, settings={"sticky": True}) as desk:  # another server
        assert {unit: desk.ask(unit=unit)[0].arm for unit in arms} == arms
        book = book_of(desk)
    assert replayed(journal) == book


def test_a_paused_experiment_serves_its_fallback_and_takes_rewards() -> None:
    with desk_of(settings={"fallback": "B", "sticky": True}) as desk:
        (before,) = desk.ask(unit="u")
        assert [desk.pause(), desk.pause()] == [True, False]
        assert {(desk.ask(unit=f"v{n}")[0].arm, desk.ask(unit="u")[0].by) for n in range(3)} == {
            ("B", "fallback")
        }
        assert desk.tell([(1, 1.0), (2, 1.0)]) == Told(2, 0, 0)
        found = desk.summary()
        assert (found["paused"], found["pulls"], found["fallback"]["tries"]["B"]) == (True, 1, 6)
        assert found["fallback"]["heard"]["B"] == 1
        assert [desk.resume(), desk.resume()] == [True, False]
        assert desk.ask(unit="u")[0][1:3] == (before.arm, "sticky")  # the arm that the policy gave it
        assert desk.ask(unit="v0")[0].by == "policy"


def test_without_a_fallback_the_first_arm_serves() -> None:
    with desk_of() as desk:
        desk.pause()
        assert desk.ask(2)[1][1:3] == ("A", "fallback")


def test_stop_is_for_good_and_rewards_still_count() -> None:
    with desk_of() as desk:
        desk.ask(2, key="k")
        assert [desk.stop(), desk.stop()] == [True, False]
        refused(desk.ask, 409, "experiment", "was stopped for good")
        refused(desk.resume, 409, "experiment")
        refused(desk.pause, 409, "experiment")
        assert len(desk.ask(2, key="k")) == 2  # an answer that was given stays
        assert desk.tell([(1, 1.0)]) == Told(1, 0, 0)
        assert desk.summary()["stopped"] is True


def test_settings_can_change() -> None:
    journal = MemoryJournal()
    with desk_of(journal) as desk:
        desk.ask(3)
        assert [desk.set({"shares": {"A": 0.5}}), desk.set({"shares": {"A": 0.5}})] == [True, False]
        assert {one.by for one in desk.ask(40)} == {"policy", "floor"}
        assert desk.set({"sticky": True})
        refused(desk.ask, 400, "unit")
        desk.ask(unit="u")
        desk.alarm(loss=3.0)
        book = book_of(desk)
    assert replayed(journal) == book
    assert [e["kind"] for e in events_of(journal) if e["kind"] not in ("ask", "create")] == [
        *("settings", "settings", "alarm")
    ]


# Windows and clocks

WINDOW = {"window": 60, "default": 0.25}


def test_a_window_closes_trials_with_the_default_and_keeps_late_rewards() -> None:
    journal, clock = MemoryJournal(), Clock()
    with desk_of(journal, clock, settings=WINDOW) as desk:
        desk.ask(2)
        clock.now += 30
        desk.ask()
        desk.tell([(1, 1.0)])
        clock.now += 30
        assert desk.summary()["open"] == 1
        assert desk.tell([(2, 1.0)]) == Told(0, 0, 1)
        assert desk.tell([(2, 1.0)]) == Told(0, 1, 0)
        refused(lambda: desk.tell([(2, 0.5)]), 409, "reward", "told before")
        assert desk.tell([(1, 1.0), (3, 1.0)]) == Told(1, 1, 0)
        found, book = desk.summary(), book_of(desk)
    assert sum(found["heard"].values()) == 3
    assert (found["open"], found["events"]) == (0, {"tell": 2, "default": 1, "late": 1, "amend": 0})
    story = [(e["kind"], e.get("reward")) for e in events_of(journal) if e.get("id") == "2"]
    assert story == [("ask", None), ("default", 0.25), ("late", 1.0)]
    assert replayed(journal) == book


def test_a_late_reward_replaces_the_default_if_it_may(journal: Journal) -> None:
    clock = Clock()
    amends = {**WINDOW, "late": "amend", "holdout": {"arm": "C", "share": 0.3}}
    with desk_of(journal, clock, settings=amends) as desk:
        served = [desk.ask(unit=f"u{n}")[0] for n in range(20)]
        clock.now += 61
        desk.tick()
        assert desk.tell([(one.id, float(one.id)) for one in served[:15]]) == Told(15, 0, 0)
        assert desk.tell([(one.id, float(one.id)) for one in served[:15]]) == Told(0, 15, 0)
        refused(lambda: desk.tell([(1, 7.0)]), 409, "reward", "told before")
        found, book = desk.summary(), book_of(desk)
        state = lt.Experiment.from_json(desk.state())
    right: dict[Any, list[float]] = {}
    for one in served:
        section = ("holdout" if one.by == "holdout" else "", one.arm)
        right.setdefault(section, []).append(float(one.id) if one.id <= 15 else 0.25)
    assert len({by for by, _ in right}) == 2
    for (by, arm), rewards in right.items():
        means = found["holdout"]["means"] if by else found["means"]
        assert means[arm] == pytest.approx(np.mean(rewards), rel=1e-12)
    assert state.means["A"] == pytest.approx(found["means"]["A"], rel=1e-15)
    assert found["events"]["amend"] == 15
    assert replayed(journal) == book


def test_a_linear_experiment_chooses_among_the_actions_that_it_is_offered(journal: Journal) -> None:
    rows, labels = [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], ["x", "y", "z"]
    twin = lt.LinearExperiment(lt.LinearThompson(1.0), 2, seed=3)
    clock = Clock()
    amends = {**WINDOW, "late": "amend"}
    with desk_of(journal, clock, "lints:1", arms=None, dim=2, horizon=None, settings=amends) as desk:
        for _ in range(8):
            (one,) = desk.ask(actions=rows, labels=labels)
            assert (one.id, one.arm, one.action) == twin.ask(rows, labels)
        refused(desk.ask, 400, "actions")
        refused(lambda: desk.ask(actions=[[1.0]]), 400, "actions")
        refused(lambda: desk.ask(actions=[[1.0, math.nan]]), 400, "actions[0][1]")
        assert desk.ask(2, key="k", actions=rows) == desk.ask(2, key="k", actions=rows)
        refused(lambda: desk.ask(2, key="k", actions=rows[:2]), 409, "actions")
        twin.ask(rows, count=2)
        desk.tell([(1, 1.0), (2, 0.5)])
        twin.tell(1, 1.0), twin.tell(2, 0.5)
        assert desk.state() == twin.to_json(told=False)  # with the labels of the open trials
        clock.now += 61
        desk.tick()
        desk.tell([(3, 2.0), (10, 1.5)])
        for id in range(3, 11):
            twin.tell(id, 0.25)
        twin.amend(3, 2.0), twin.amend(10, 1.5)
        assert lt.LinearExperiment.from_json(desk.state()).estimate.tolist() == twin.estimate.tolist()
        assert desk.ask(actions=rows)[0].action == twin.ask(rows).action
        desk.pause()
        refused(lambda: desk.ask(actions=rows), 409, "experiment", "is paused")
        book = book_of(desk)
    assert replayed(journal) == book


def test_a_snapshot_keeps_the_labels_of_open_trials() -> None:
    journal = MemoryJournal()
    with desk_of(journal, policy="lints:1", arms=None, dim=1, horizon=None) as desk:
        desk.ask(3, actions=[[1.0], [0.5]], labels=["x", "y"])
        desk.ask(actions=[[1.0], [0.5]])
        desk.tell([(2, 1.0)])
        text = desk.state()
    assert journal.snapshot("one") is not None
    office = Office(journal)
    assert office.desk("one").state() == text
    office.close()
    labels = json.loads(text)["history"]["open"]["label"]
    assert {*labels[:2]} <= {"x", "y"}
    assert labels[2] in (0, 1)


def test_a_clock_that_is_set_back_breaks_nothing() -> None:
    journal, clock = MemoryJournal(), Clock(5_000.0)
    with desk_of(journal, clock, settings=WINDOW) as desk:
        desk.ask()
        clock.now = 10.0
        desk.ask()
        desk.tell([(2, 1.0)])
        clock.now = 4_999.0
        desk.ask()
        assert desk.summary()["events"]["default"] == 0
        clock.now = 5_060.0
        assert desk.summary()["events"]["default"] == 2
        book = book_of(desk)
    times = [event["time"] for event in events_of(journal)]
    assert times == sorted(times)
    assert replayed(journal) == book


def test_a_timer_closes_what_is_due_without_any_request() -> None:
    """The clock of the machine; the wait has no bound, so no slow machine can fail."""
    journal = MemoryJournal()
    with desk_of(journal, time.time, settings={"window": 0.02, "default": 0.0}) as desk:
        desk.ask(3)
        while len(events_of(journal)) < 7:
            time.sleep(0.01)
    assert [event["kind"] for event in events_of(journal)][-3:] == ["default"] * 3


def test_windows_end_after_a_restart_although_nobody_asks() -> None:
    journal, clock = MemoryJournal(), Clock()
    with desk_of(journal, clock, settings=WINDOW) as desk:
        desk.ask(3)
    clock.now += 100
    office = Office(journal, clock)
    office.wake()
    office.close()
    assert [event["kind"] for event in events_of(journal)][-3:] == ["default"] * 3


def came(journal: Journal, count: int) -> bool:
    """Whether a journal gets so many events although nobody asks."""
    end = time.monotonic() + FOREVER
    while len(events_of(journal)) < count and time.monotonic() < end:
        time.sleep(0.01)
    return len(events_of(journal)) == count


def test_windows_end_after_a_failure_although_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lighttail.live.desk.FIRST_PAUSE", 0.01)
    journal, clock = FailingJournal(), Clock()
    with desk_of(journal, clock, settings={"window": 0.05, "default": 0.0}) as desk:
        desk.ask(3)
        journal.broken = True
        clock.now += 1.0
        while desk._again is None:  # the window ends, and its events cannot be written
            time.sleep(0.01)
        assert len(events_of(journal)) == 4
        journal.broken = False
        assert came(journal, 7)
        assert desk.summary()["events"]["default"] == 3
        assert desk._again is None


def test_windows_end_after_a_start_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lighttail.live.desk.FIRST_PAUSE", 0.01)
    journal, clock = FailingJournal(), Clock()
    with desk_of(journal, clock, settings=WINDOW) as desk:
        desk.ask(3)
    clock.now += 100
    journal.broken = True
    office = Office(journal, clock)
    with pytest.raises(lt.BadInput, match="full"):
        office.desk("one").tick()
    journal.broken = False
    assert came(journal, 7)
    office.close()


def test_many_windows_at_once_are_closed_in_commits_of_a_bearable_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lighttail.live.play.MOST_CLOSED", 7)
    monkeypatch.setattr("lighttail.live.desk.MOST_CLOSED", 7)
    clock = Clock()
    with desk_of(clock=clock, settings=WINDOW) as desk:
        desk.ask(30)
        clock.now += 100
        assert desk.tell([(30, 1.0)]) == Told(0, 0, 1)
        assert desk.summary()["events"]["default"] == 30


# Commits that fail


def test_nothing_is_answered_and_nothing_changes_if_a_commit_fails() -> None:
    journal = FailingJournal()
    with desk_of(journal) as desk:
        desk.ask(5)
        before = book_of(desk)
        journal.broken = True
        refused(desk.ask, 503, "journal", "the disk is full")
        refused(lambda: desk.tell([(1, 1.0)]), 503, "journal")
        assert desk.summary()["open"] == 5  # a look needs no room on the disk
        journal.broken = False
        assert book_of(desk) == before
        assert desk.tell([(1, 1.0)]) == Told(1, 0, 0)
        assert desk.ask()[0].id == 6
        book = book_of(desk)
    assert replayed(journal) == book


def test_a_mistake_of_ours_hits_one_request_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from lighttail.live.play import Round

    right = Round._tell

    def wrong(self: Round, tell: Any) -> Told:
        if tell.rewards[0][2] == 13.0:
            self.book.player.pulls += 1  # half of the work
            raise RuntimeError("unlucky")
        return right(self, tell)

    monkeypatch.setattr(Round, "_tell", wrong)
    with desk_of() as desk:
        desk.ask(3)
        tickets = [desk.submit(request) for request in (_tell(1, 1.0), _tell(2, 13.0), _tell(3, 1.0))]
        assert tickets[0].result() == tickets[2].result() == Told(1, 0, 0)
        refused(tickets[1].result, 500, "server", "unlucky")
        assert desk.summary()["pulls"] == 3
        assert desk.tell([(2, 1.0)]) == Told(1, 0, 0)


def _tell(id: int, reward: float) -> Any:
    return tell_of([(id, reward)])


def test_too_many_that_wait_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lighttail.live.desk.MOST_WAITING", 0)
    with desk_of() as desk:
        error = refused(desk.ask, 503, "server", "too many requests are waiting")
        assert isinstance(error, Refused)


def test_a_callback_is_called_once_per_commit_when_the_answers_are_on_disk() -> None:
    journal, done = MemoryJournal(), threading.Event()
    seen: list[Any] = []

    def then(tickets: list[Any]) -> None:
        seen.append(([ticket.answer[0].id for ticket in tickets], [ticket.holder for ticket in tickets]))
        seen.append(len(events_of(journal)))
        if seen[-1] == 4:
            done.set()

    with desk_of(journal) as desk:
        for holder in "abc":
            desk.submit_all([Ticket(ask_for(), then, holder)])
        done.wait()
    ids = [id for answers, _ in seen[::2] for id in answers]
    assert (ids, [one for _, holders in seen[::2] for one in holders]) == ([1, 2, 3], ["a", "b", "c"])
    assert all(
        1 + max(answers) <= written for (answers, _), written in zip(seen[::2], seen[1::2], strict=True)
    )


def test_a_callback_that_fails_does_not_end_the_desk() -> None:
    def then(tickets: list[Any]) -> None:
        raise RuntimeError("somewhere else")

    with desk_of() as desk:
        ticket = Ticket(ask_for(), then)
        desk.submit_all([ticket])
        assert ticket.result()[0].id == 1
        assert desk.ask()[0].id == 2


def test_coroutines_wait_for_a_desk(journal: Journal) -> None:
    async def main() -> Any:
        waiting = AsyncDesk(desk)

        async def one(n: int) -> Any:
            (trial,) = await waiting.answer(ask_for(key=f"k{n}"))
            return trial.id, await waiting.answer(tell_of([(trial.id, 1.0)]))

        found = await asyncio.gather(*(one(n) for n in range(40)))
        with pytest.raises(lt.BadInput, match=r"^id must be"):
            await waiting.answer(tell_of([(99, 1.0)]))
        gone = asyncio.ensure_future(waiting.answer(ask_for()))
        await asyncio.sleep(0)
        gone.cancel()
        return found, await waiting.answer(Look("summary")), await waiting.answer(Look("state"))

    with desk_of(journal) as desk:
        found, summary, state = asyncio.run(main())
    assert sorted(id for id, _ in found) == list(range(1, 41))
    assert {told for _, told in found} == {Told(1, 0, 0)}
    assert sum(summary["heard"].values()) == 40
    assert sum(lt.Experiment.from_json(state).pulls.values()) == summary["pulls"] == 41
