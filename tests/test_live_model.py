"""Any interleaving of requests on two servers, with failures and restarts, against a plain model.

The model is a list of trials and an `Experiment`, which is told what the service should have told its policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from desks import Clock, book_of, events_of, replayed
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from journals import FailingJournal

import lighttail as lt
from lighttail.live import Desk, Office
from lighttail.live.book import Book
from lighttail.live.errors import status_of
from lighttail.live.play import Round
from lighttail.online.standing import Standing

ARMS = ["A", "B", "C"]
WINDOW, DEFAULT = 20.0, 0.25
RAILS: list[dict[str, Any]] = [
    {},
    {"shares": {"A": 0.3}, "fallback": "C"},
    {"sticky": True, "holdout": {"arm": "B", "share": 0.3}},
    {"window": WINDOW, "default": DEFAULT},
    {"window": WINDOW, "default": DEFAULT, "late": "amend", "sticky": True, "shares": {"B": 0.2}},
]
rewards = st.sampled_from([0.0, 1.0, 0.5, 2.0])
places = st.integers(0, 40)


def outcome(call: Callable[[], Any]) -> tuple[Any, int | None]:
    """The answer to a request, or the status with which it was refused."""
    try:
        return call(), None
    except lt.BadInput as error:
        return None, status_of(error)


class Service(RuleBasedStateMachine):
    """Two offices on one journal, as two servers on one database."""

    choices: ClassVar[list[dict[str, Any]]] = RAILS

    def __init__(self) -> None:
        super().__init__()
        self.journal, self.clock = FailingJournal(), Clock()
        self.trials: list[dict[str, Any]] = []  # by, arm, time, state, reward, number in the experiment
        self.keys: dict[str, Any] = {}
        self.units: dict[str, str] = {}
        self.arms, self.retired = list(ARMS), set[str]()
        self.paused = self.stopped = False
        self.time = self.clock.now
        self.written = 1

    @initialize(which=st.integers(0, 99), policy=st.sampled_from(["ucb:anytime:0.3", "ts:0.5"]))
    def begin(self, which: int, policy: str) -> None:
        rails = self.choices[which % len(self.choices)]
        self.rails, self.given = rails, {"policy": policy, "arms": ARMS, "seed": 5, "settings": rails}
        made = lt.UCB(lt.AnyTime(0.3)) if policy.startswith("ucb") else lt.ThompsonSampling(0.5)
        self.policy = lt.Experiment(made, ARMS, seed=5)
        self.offices = [Office(self.journal, self.clock) for _ in range(2)]
        self.desks = [office.create("one", **self.given)[0] for office in self.offices]

    # What the model does

    def now(self) -> float:
        return max(self.time, self.clock.now)

    def wrote(self, events: int) -> None:
        if events:
            self.written += events
            self.time = self.now()

    def pass_time(self) -> None:
        """Close what is due."""
        if "window" not in self.rails:
            return
        due = [t for t in self.trials if t["state"] == "open" and t["time"] + WINDOW <= self.now()]
        for trial in due:
            trial.update(state="default", reward=DEFAULT)
            self.hear(trial, DEFAULT)
        self.wrote(len(due))

    def hear(self, trial: dict[str, Any], reward: float) -> None:
        if trial["number"] is not None:
            self.policy.tell(trial["number"], reward)

    def new_trial(self, one: Any, unit: str | None) -> None:
        """Check who chose, and let the experiment choose or take the same arm."""
        rails, expected = self.rails, None
        assert one.id == len(self.trials) + 1
        assert one.arm not in self.retired
        if one.by == "holdout":
            assert "holdout" in rails
            assert one.arm == "B"
        elif self.paused:
            assert (one.by, one.arm) == ("fallback", rails.get("fallback", "A"))
        elif rails.get("sticky") and unit in self.units:
            assert (one.by, one.arm) == ("sticky", self.units[unit])
            expected = self.policy.take(one.arm)
        elif one.by == "floor":
            assert one.arm in rails["shares"]
            expected = self.policy.take(one.arm)
        else:
            expected = self.policy.ask()
            assert (one.by, one.arm) == ("policy", expected.arm)
        if one.by in ("policy", "floor") and unit is not None:
            self.units.setdefault(unit, one.arm)
        number = None if expected is None else expected.id
        self.trials.append(
            {"arm": one.arm, "state": "open", "time": self.now(), "number": number, "reward": None}
        )

    # What callers do

    @rule(
        server=st.integers(0, 1),
        key=st.none() | st.sampled_from("klmno"),
        unit=st.none() | st.sampled_from("uvw"),
        count=st.sampled_from([1, 1, 2, 5]),
        note=st.booleans(),
    )
    def ask(self, server: int, key: str | None, unit: str | None, count: int, note: bool) -> None:
        if self.rails.get("sticky") or "holdout" in self.rails:
            unit = unit or "u"
        count = 1 if unit else count
        about = {"server": server} if note else None
        answer, status = outcome(lambda: self.desks[server].ask(count, key, unit, about=about))
        if status is not None:
            self.pass_time()
            before = self.keys.get(key or "")
            assert status == 409
            assert self.stopped or (before is not None and before[1:] != (count, unit, about))
            return
        self.pass_time()
        if key in self.keys:
            assert self.keys[key] == (answer, count, unit, about)
            return
        assert not self.stopped
        assert len(answer) == count
        for one in answer:
            self.new_trial(one, unit)
        self.wrote(count)
        if key is not None:
            self.keys[key] = (answer, count, unit, about)

    @precondition(lambda self: self.trials)
    @rule(server=st.integers(0, 1), some=st.lists(st.tuples(places, rewards), min_size=1, max_size=4))
    def tell(self, server: int, some: list[tuple[int, float]]) -> None:
        self.pass_time()
        told = [(1 + place % len(self.trials), reward) for place, reward in some]
        expected = self.expected(told)
        answer, status = outcome(lambda: self.desks[server].tell(told))
        assert status == (409 if expected is None else None)
        if expected is None:
            return
        kinds = [kind for kind, _, _ in expected]
        late = kinds.count("late")
        assert answer == (len(kinds) - late, len(told) - len(kinds), late)
        for kind, id, reward in expected:
            trial = self.trials[id - 1]
            if kind == "tell":
                self.hear(trial, reward)
            elif kind == "amend" and trial["number"] is not None:
                self.policy.amend(trial["number"], reward)
            trial.update(state=kind, reward=reward)
        self.wrote(len(kinds))

    def expected(self, told: list[tuple[int, float]]) -> list[tuple[str, int, float]] | None:
        """What each reward should do; None if one of them contradicts."""
        found: dict[int, tuple[str, int, float]] = {}
        seen: dict[int, float] = {}
        for id, reward in told:
            trial = self.trials[id - 1]
            if seen.setdefault(id, reward) != reward:
                return None
            if trial["state"] == "open":
                found[id] = ("tell", id, reward)
            elif trial["state"] == "default":
                found[id] = ("amend" if self.rails.get("late") == "amend" else "late", id, reward)
            elif trial["reward"] != reward:
                return None
        return list(found.values())

    @rule(server=st.integers(0, 1), id=st.sampled_from([0, -3, "x", 10**9]))
    def tell_of_nothing(self, server: int, id: Any) -> None:
        assert outcome(lambda: self.desks[server].tell([(id, 1.0)])) == (None, 404)
        self.pass_time()

    @rule(server=st.integers(0, 1), pause=st.booleans())
    def pause_or_resume(self, server: int, pause: bool) -> None:
        desk = self.desks[server]
        changed, status = outcome(desk.pause if pause else desk.resume)
        self.pass_time()
        assert status == (409 if self.stopped else None)
        if self.stopped:
            return
        assert changed == (pause != self.paused)
        self.paused = pause
        self.wrote(int(changed))

    @precondition(lambda self: len(self.trials) > 25)
    @rule(server=st.integers(0, 1))
    def stop(self, server: int) -> None:
        changed = self.desks[server].stop()
        self.pass_time()
        assert changed != self.stopped
        self.stopped = True
        self.wrote(int(changed))

    @rule(seconds=st.sampled_from([-15.0, 5.0, 10.0, 25.0]))
    def set_clock(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(server=st.integers(0, 1))
    def restart(self, server: int) -> None:
        """A server ends in order and begins again."""
        self.desks[server].close()
        self.pass_time()
        self.offices[server] = Office(self.journal, self.clock)
        self.desks[server] = self.offices[server].create("one", **self.given)[0]
        self.desks[server].tick()

    @precondition(lambda self: not self.stopped)
    @rule(server=st.integers(0, 1), key=st.sampled_from("klmno"))
    def fail(self, server: int, key: str) -> None:
        """A full disk: the request is refused, or it is one that writes nothing."""
        self.desks[1 - server].tick()  # what is due is closed before
        self.pass_time()
        self.journal.broken = True
        answer, status = outcome(lambda: self.desks[server].ask(1, key, "u"))
        self.journal.broken = False
        known, *asked = self.keys.get(key, (None,))
        same = asked == [1, "u", None]
        assert (answer, status) == ((known, None) if same else (None, 409 if asked else 503))

    # What must always hold

    @invariant()
    def the_books_agree(self) -> None:
        if not hasattr(self, "desks"):
            return
        books = [book_of(desk) for desk in self.desks]
        self.pass_time()
        assert books[0] == books[1] == replayed(self.journal)
        assert len(events_of(self.journal)) == self.written
        found = self.desks[0].summary()
        means = {arm: None if math.isnan(mean) else mean for arm, mean in self.policy.means.items()}
        assert (found["tries"], found["means"]) == (self.policy.pulls, means)
        assert (found["arms"], found["retired"]) == (self.arms, sorted(self.retired, key=self.arms.index))
        assert found["open"] == len(self.policy.open_trials)
        waiting = sum(trial["state"] == "open" for trial in self.trials)
        assert waiting == found["open"] + found["holdout"]["open"] + found["fallback"]["open"]
        assert sum(found["asked"].values()) == len(self.trials)

    def teardown(self) -> None:
        for desk in getattr(self, "desks", []):
            desk.close()


class Changing(Service):
    """A service whose arms join and leave."""

    choices: ClassVar[list[dict[str, Any]]] = [{}, {"sticky": True}, RAILS[1], RAILS[3]]

    @rule(server=st.integers(0, 1), arm=st.sampled_from("ABCDE"), join=st.booleans())
    def change_arms(self, server: int, arm: str, join: bool) -> None:
        desk = self.desks[server]
        changed, status = outcome(lambda: desk.add(arm) if join else desk.retire(arm))
        self.pass_time()
        assert (changed, status) == (self.joined(arm) if join else self.left(arm))
        if not changed:
            return
        if join:
            self.policy.add(arm)
            self.arms.append(arm)
        else:
            self.policy.retire(arm)
            self.retired.add(arm)
            self.units = {unit: one for unit, one in self.units.items() if one != arm}
        self.wrote(1)
        self.ask(server, None, None, 5, False)  # at once, when a mistake would show

    def joined(self, arm: str) -> tuple[bool | None, int | None]:
        """The answer to the wish that an arm joins."""
        if self.stopped or arm in self.retired:
            return None, 409
        return arm not in self.arms, None

    def left(self, arm: str) -> tuple[bool | None, int | None]:
        """The answer to the wish that an arm leaves."""
        rails = self.rails
        named = {*rails.get("shares", ()), rails.get("fallback", "A"), rails.get("holdout", {}).get("arm")}
        if self.stopped:
            return None, 409
        if arm not in self.arms:
            return None, 400
        if arm in self.retired:
            return False, None
        return (None, 409) if arm in named or len(self.arms) - len(self.retired) <= 2 else (True, None)


TestService, TestChanging = Service.TestCase, Changing.TestCase
TestService.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, derandomize=True, database=None
)


ONLY_LOOK = settings(TestService.settings, phases=[Phase.generate], report_multiple_bugs=False)
TestChanging.settings = settings(TestService.settings, max_examples=25)


@pytest.mark.parametrize(
    ("kind", "method", "wrong"),
    [
        (Round, "look_up", lambda self, requests: None),  # keys are forgotten
        (Round, "_arm_of", lambda self, unit: None),  # no unit sticks
        (Round, "close_due", lambda self: 0),  # no window ends
        (Book, "_amend", lambda self, event, story: None),  # a late reward is not learnt
        (Standing, "retire", lambda self, places: None),  # a retired arm is chosen again
        (Desk, "_fail", lambda self, tickets, error: None),  # a failed commit is answered
    ],
)
def test_a_service_that_errs_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, kind: Any, method: str, wrong: Any
) -> None:
    """Negative controls."""
    monkeypatch.setattr(kind, method, wrong)
    monkeypatch.setattr(Service, "choices", RAILS[-1:])
    monkeypatch.setattr(Changing, "choices", RAILS[:1])
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Changing if kind is Standing else Service, settings=ONLY_LOOK)
