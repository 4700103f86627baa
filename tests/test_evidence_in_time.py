"""What is evidence, and when: windows, units that come back, arms that join, and limits of work."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from typing import Any

import numpy as np
import pytest
from desks import Clock, book_of, events_of, replay, text_of

import lighttail as lt
from lighttail.checks import BadInput
from lighttail.course import Beginning
from lighttail.inference import BoundedRewards, confidence_sequences, lead
from lighttail.inference.evidence import Heard
from lighttail.inference.sequences import part_of_pair, parts_of_error
from lighttail.live import Office, outlook
from lighttail.live.alarms import Found
from lighttail.live.awaiting import AsyncDesk
from lighttail.live.book import Book
from lighttail.live.errors import unavailable
from lighttail.live.memory import MemoryJournal
from lighttail.live.outlook import Outlook, Wish, known_of
from lighttail.live.requests import Look, Weigh
from lighttail.running.continued import Window, continued
from lighttail.server import looks
from lighttail.server.forecasts import MOST_WAITING, Forecaster, Forecasts
from lighttail.server.reading import Gone, while_there

RISK: dict[str, Any] = {"loss": 20, "chance": 0.1, "then": "warn"}
DAY = 86_400.0
KINDS = ("tell", "default", "amend")  # events with a reward that counts


def begun(clock: Any, journal: Any = None, arms: str = "AB", **settings: Any) -> tuple[Office, Any]:
    office = Office(MemoryJournal() if journal is None else journal, clock)
    more: dict[str, Any] = {"policy": "ucb:anytime:0.2", "horizon": 4000, "seed": 1}
    return office, office.create("one", arms=list(arms), settings=settings, **more)[0]


def seen(desk: Any) -> Outlook:
    found: Outlook = desk.submit(Look("outlook")).result()
    return found


# The watch counts evidence


@pytest.mark.parametrize("told", ["young", "holdout"])
def test_the_watch_counts_evidence_and_no_other_rewards(told: str) -> None:
    clock = Clock()
    young = {"window": 7 * DAY, "default": 0.0}
    held = {"holdout": {"arm": "A", "share": 0.99}}
    office, desk = begun(clock, risk=RISK, **(young if told == "young" else held))
    for visit in range(60):
        clock.now += 18.0
        trials = desk.ask(unit=f"unit {visit}")
        desk.tell([(trials[0].id, 1.0)])
    risk, heard = desk.submit(Look("risk")).result()
    assert risk == RISK
    assert heard == sum(one.times for one in seen(desk).heard) < 5
    if told == "young":
        clock.now += 8 * DAY
        assert desk.submit(Look("risk")).result()[1] == 60  # control: all of them are old now
    office.close()


# A window in the simulation


def state_of(policy: Any, pulls: int, opened: int) -> Beginning:
    experiment = lt.Experiment(policy, ["A", "B"], horizon=4000, seed=1)
    for place in range(pulls):
        trial = experiment.ask()
        if place < pulls - opened:
            experiment.tell(trial.id, float(place % 3 == 0))
    return experiment.beginning()


@pytest.mark.parametrize("policy", [lt.UCB(lt.AnyTime(0.2)), lt.ThompsonSampling(0.5)], ids=str)
@pytest.mark.parametrize(("wait", "opened"), [(0, 0), (40, 5), (40, 0)])
def test_a_window_that_keeps_all_rewards_back_alike_is_a_fixed_delay(
    policy: Any, wait: int, opened: int
) -> None:
    """The mean pulls agree with those of a delay within z = 4.5 standard errors; with another delay they
    do not."""
    start, means = state_of(policy, 60, opened), np.tile([0.3, 0.6], (1500, 1))

    def pulls(window: Window | None, delay: int | None, seed: int) -> Any:
        return continued(start, lt.Bernoulli(), means, 600, seed=seed, window=window, delay=delay)[:, 0]

    found = pulls(Window(0.0, np.full((2, 8), float(wait))), None, 3)
    same, other = pulls(None, wait, 4), pulls(None, wait + 150, 5)
    assert abs(apart(found, same)) < 4.5
    assert abs(apart(found, other)) > 4.5


def apart(one: Any, other: Any) -> float:
    return float((one.mean() - other.mean()) / math.sqrt(one.var() / one.size + other.var() / other.size))


def test_an_open_trial_does_not_draw_a_success_that_would_have_been_told() -> None:
    """A policy that is greedy from what is told: 30 open trials of arm A, which looks as good as B. Had they
    successes at the full rate, A would look better than it does."""
    policy = lt.UCB(lt.AnyTime(0.02))
    experiment = lt.Experiment(policy, ["A", "B"], horizon=4000, seed=1)
    start = experiment.beginning()
    counts = np.array([[40.0, 10.0], [10.0, 10.0], [5.0, 4.9], [5.0, 4.9]])
    opened = np.array([[0, place] for place in range(20, 50)])
    start = start._replace(rounds=50, counts=counts, opened=opened, memos=np.zeros((30, 0)))
    means = np.tile([0.9, 0.5], (400, 1))
    told_at_once, told_late = (Window(0.0, np.array([[60.0], [late]])) for late in (0.0, 60.0))
    first, last = (
        continued(start, lt.Bernoulli(), means, 100, seed=2, window=window)[:, 0]
        for window in (told_at_once, told_late)
    )
    assert first.min() >= 40
    assert apart(last, first) > 4.5  # negative control: the successes are still to come


def test_delays_are_those_of_old_trials_and_a_snapshot_keeps_them() -> None:
    clock, journal = Clock(0.0), MemoryJournal()
    office, desk = begun(clock, journal, window=160.0, default=0.0)
    for _ in range(40):
        clock.now += 10.0
        trials = desk.ask(10)
        desk.tell([(trials[0].id, 1.0)])  # at once; the window closes the others
    found = seen(desk)
    assert found.window is not None
    assert found.window.waits[1].max() == 0.0
    assert set(found.window.waits[0]) == {found.window.waits[0].max()} == {160.0}  # pulls per window
    assert len(found.start.opened) == 9 * 16
    assert (found.start.rounds - found.start.opened[:, 1]).max() == 150
    assert text_of(replay(events_of(journal))) == book_of(desk)
    kept = json.loads(json.dumps(replay(events_of(journal)).to_plain()))
    restored = Book.restored(kept)
    assert restored is not None
    assert (restored.hearing.delays(240.0) == replay(events_of(journal)).hearing.delays(240.0)).all()
    before = found.stamp
    clock.now += 10.0
    assert seen(desk).stamp != before  # nothing happened, and the trials are older
    office.close()


def test_young_trials_count_for_the_means_as_far_as_they_would_have_been_told() -> None:
    """Successes are told at once, or after half of the window: an open trial speaks against its arm if a
    success would have been told. The limits of the means use old trials alone."""
    for late in (0.0, 80.0):
        clock, due = Clock(0.0), list[tuple[float, int]]()
        office, desk = begun(clock, window=160.0, default=0.0)
        for _ in range(40):
            clock.now += 10.0
            due += [(clock.now + late, trial.id) for trial in desk.ask(10)[:1]]
            if ready := [(id, 1.0) for at, id in due if at <= clock.now]:
                desk.tell(ready)
            due = [(at, id) for at, id in due if at > clock.now]
        found = seen(desk)
        assert sum(one.times for one in found.heard) == 24 * 10
        assert found.drawn_from is not None
        every = 40 * 10 if late == 0.0 else 32 * 10  # the trials of eight rounds cannot say anything yet
        assert sum(one.times for one in found.drawn_from) == pytest.approx(every)
        assert sum(one.total for one in found.drawn_from) == pytest.approx(every / 10)
        office.close()


@pytest.mark.parametrize("rates", [(0.02, 0.08), (0.2, 0.6), (0.6, 0.98)])
def test_means_from_young_trials_are_as_certain_as_they_say(rates: tuple[float, float]) -> None:
    """300 rates, each with 200 old trials and 600 young ones, whose successes are told at uniform times: one
    in twenty rates lies outside the middle 95 % of its law, within z = 4 standard errors. Control: to count
    an open trial as a part of a failure, as is right for small rates, makes high rates far too small."""
    rng, against, runs = np.random.default_rng(5), np.arange(1, 17) / 16, 300
    outside = {"law": 0, "part of a failure": 0}
    for rate in rng.uniform(*rates, runs):
        part = rng.integers(16, size=600)
        told = (rng.random(600) < rate) & (rng.random(600) < against[part])
        old, young = float(rng.binomial(200, rate)), float(told.sum())
        opened = np.bincount(part[~told], minlength=16).astype(np.float64)
        found = {
            "law": outlook.with_open(200 + young, old + young, opened, against),
            "part of a failure": Heard(200 + young + float(opened @ against), old + young),
        }
        for name, heard in found.items():
            below = (BoundedRewards().posterior([heard], rng, 1000)[:, 0] < rate).mean()
            outside[name] += not 0.025 <= below <= 0.975
    assert abs(outside["law"] - 0.05 * runs) < 4.0 * math.sqrt(0.05 * 0.95 * runs)
    if rates[0] > 0.1:
        assert outside["part of a failure"] > 0.2 * runs


@pytest.mark.parametrize("trials", [1, 30, 10_000_000])
def test_open_trials_that_say_all_or_nothing_count_as_failures_or_not_at_all(trials: int) -> None:
    """With against = 1 an open trial is a failure, and the law is a Beta law without approximation."""
    none = outlook.with_open(7, 3.0, np.array([float(trials)]), np.array([0.0]))
    assert none == Heard(7, 3.0)
    all_of_them = outlook.with_open(7, 3.0, np.array([float(trials), 0.0]), np.array([1.0, 0.3]))
    assert all_of_them == pytest.approx(Heard(7 + trials, 3.0), rel=1e-5)
    early = outlook.with_open(0, 0.0, np.array([float(trials)]), np.array([1e-9]))
    assert 0.0 <= early.total <= early.times < 0.1  # nothing is known yet


def test_a_forecast_with_a_window_plays_the_window() -> None:
    """A window of 1,500 of 6,000 pulls: the mean loss is another one than without a window, by more than
    z = 4.5 standard errors, and the largest losses are larger."""
    clock, rng = Clock(), np.random.default_rng(2)
    office, desk = begun(clock, window=1500.0, default=0.0, means={"low": 0.02, "high": 0.08})
    for _ in range(20):
        clock.now += 100.0
        trials = desk.ask(100)
        won = rng.random(100) < 0.05
        desk.tell([(one.id, 1.0) for one, win in zip(trials, won, strict=True) if win])
    found = seen(desk)._replace(horizon=6000)
    assert found.window is not None
    late, none, again = (
        found._replace(window=window, seed=seed).forecast(Wish(loss=50.0, paths=1000)).losses
        for window, seed in ((found.window, 1), (None, 1), (found.window, 2))
    )
    assert abs(apart(late, none)) > 4.5
    assert late[-10:].mean() > 1.2 * none[-10:].mean()
    assert abs(apart(late, again)) < 4.5  # control: another seed
    office.close()


# Units that come back


def test_the_first_visit_of_a_unit_is_evidence_and_later_visits_are_not() -> None:
    clock, journal = Clock(), MemoryJournal()
    office, desk = begun(clock, journal, sticky=True, window=100.0, default=0.0, late="amend")
    for _ in range(5):
        for unit in range(8):
            (trial,) = desk.ask(unit=f"unit {unit}")
            if unit % 2:
                desk.tell([(trial.id, 1.0)])
    clock.now += 200.0
    found = seen(desk)
    assert (sum(one.times for one in found.heard), sum(one.total for one in found.heard)) == (8, 4.0)
    assert found.start.counts[1].sum() == 40  # the policy hears all of them
    (again,) = (one for one in events_of(journal) if one["kind"] == "ask" and one["id"] == "9")
    assert again["by"] == "sticky"
    desk.tell([(9, 1.0)])  # amends the default of a later visit
    found = seen(desk)
    assert sum(one.total for one in found.heard) == 4.0
    assert found.start.counts[2].sum() == 21.0
    assert text_of(replay(events_of(journal))) == book_of(desk)
    office.close()


def test_limits_from_first_visits_hold_although_visits_of_a_unit_are_alike() -> None:
    """Units whose own rates differ come back 100 times. With all visits the limits of equal arms miss in far
    more than 5 % of the experiments, and with first visits in at most 5 % + 4 standard errors."""
    rng, missed = np.random.default_rng(1), np.zeros(2)
    for _ in range(100):
        rates = rng.beta(0.25, 4.75, size=(2, 100))
        for place, visits in enumerate((1, 100)):
            won = rng.binomial(visits, rates).sum(axis=1)
            heard = {arm: (100 * visits, float(won[arm])) for arm in (0, 1)}
            now = confidence_sequences(heard, BoundedRewards())
            missed[place] += any(not one.low <= 0.05 <= one.high for one in now.means.values())
    assert missed[0] <= 100 * 0.05 + 4 * math.sqrt(100 * 0.05 * 0.95)
    assert missed[1] > 30  # negative control


# Arms that join


def test_the_error_is_spent_once_however_many_arms_join() -> None:
    assert parts_of_error(3) == [1 / 3] * 3
    for first in (2, 5):
        for arms in (first + 1, first + 3, 300):
            assert sum(parts_of_error(arms, first)) <= 1.0
            pairs = (part_of_pair(later, arms, first) * later for later in range(1, arms))
            assert sum(pairs) <= 1.0 + 1e-12
        assert parts_of_error(9, first)[: first + 1] == parts_of_error(first + 1, first)  # for good
    assert sum(1 / 2 for _ in range(2)) + sum(1 / 4 for _ in range(2)) == 1.5  # control: the present number


def test_limits_without_added_arms_are_as_before() -> None:
    heard = {"A": (5000, 150.0), "B": (5000, 250.0), "C": (900, 30.0)}
    now, known = (
        confidence_sequences(heard, BoundedRewards()),
        confidence_sequences(heard, BoundedRewards(), first=3),
    )
    assert now == known
    joined = confidence_sequences(heard, BoundedRewards(), first=2)
    assert joined.means["A"].low < now.means["A"].low
    assert lead(heard, BoundedRewards(), first=2).means == joined.means
    best = lead(heard, BoundedRewards(), first=2)
    assert best.ahead["A"] == joined.differences["A", "B"]
    with pytest.raises(BadInput, match="first must be"):
        lead(heard, BoundedRewards(), first=4)


def test_an_outlook_knows_the_arms_of_the_beginning() -> None:
    office, desk = begun(Clock())
    desk.add("C")
    assert (seen(desk).first, len(seen(desk).labels)) == (2, 3)
    office.close()


# Limits of work


@pytest.mark.parametrize(
    ("arms", "wish", "field"),
    [
        (1000, {"paths": 100_000, "horizon": 2_000}, "paths"),
        (1000, {"paths": 100, "horizon": 20_000}, "horizon"),
        (10_000, {"paths": 100}, "experiment"),
        (2, {"paths": 100, "horizon": 3_000_000}, "horizon"),
        (2, {"paths": 20_000, "horizon": 100_000}, "paths"),
    ],
)
def test_a_forecast_that_is_too_much_work_is_refused_before_any_work(
    arms: int, wish: dict[str, Any], field: str, monkeypatch: Any
) -> None:
    office, desk = begun(Clock())
    found = seen(desk)._replace(labels=[str(arm) for arm in range(arms)])
    monkeypatch.setattr(outlook, "forecast_from", lambda *_, **more: more["paths"])
    with pytest.raises(BadInput) as error:
        found.forecast(Wish(loss=5.0, **wish))
    assert error.value.field == field
    assert found._replace(labels=["A", "B"]).forecast(Wish(loss=5.0)) == 10_000  # control
    assert found._replace(labels=list("ABCDEFGHIJKL")).forecast(Wish(loss=5.0, horizon=200_000)) == 1_000
    office.close()


# Who waits, and what is kept


def test_people_who_wait_do_not_keep_the_watch_back_and_leave_when_they_go(monkeypatch: Any) -> None:
    block = threading.Event()

    def forecast(self: Any, outlook: Any, wish: Any) -> dict[str, Any]:
        if wish != Wish():
            assert block.wait(30.0)
        return {"chance": {}}

    monkeypatch.setattr(Forecaster, "forecast", forecast)

    async def main() -> None:
        office, desk = begun(Clock(), risk=RISK)
        asker, forecasts = AsyncDesk(desk), Forecasts()
        waiting = [
            asyncio.ensure_future(forecasts.made(asker, Wish(loss=3.0 + place)))
            for place in range(MOST_WAITING)
        ]
        while forecasts._asked._waiting.get("one", 0) < MOST_WAITING:
            await asyncio.sleep(0.01)
        with pytest.raises(BadInput, match="too many forecasts"):
            await forecasts.made(asker, Wish(loss=2.0))
        assert (await forecasts.made(asker))[1] == {"chance": {}}  # the watch does not wait
        for one in waiting[1:]:
            one.cancel()
        await asyncio.gather(*waiting[1:], return_exceptions=True)
        last = asyncio.ensure_future(forecasts.made(asker, Wish(loss=2.0)))
        while forecasts._asked._waiting["one"] < 2:  # those who left wait no longer
            await asyncio.sleep(0.01)
        block.set()
        assert (await last)[1] == {"chance": {}}
        await waiting[0]
        forecasts.close()
        office.close()

    try:
        asyncio.run(main())
    finally:
        block.set()


def test_work_ends_when_its_client_has_gone() -> None:
    ended: list[str] = []

    async def work(name: str, seconds: float) -> str:
        try:
            await asyncio.sleep(seconds)
            return name
        except asyncio.CancelledError:
            ended.append(name)
            raise

    async def stays() -> Any:
        await asyncio.sleep(60.0)

    async def goes() -> Any:
        return {"type": "http.disconnect"}

    async def main() -> None:
        assert await while_there(work("one", 0.0), stays) == "one"
        with pytest.raises(Gone):
            await while_there(work("two", 60.0), goes)
        await asyncio.sleep(0.0)

    asyncio.run(main())
    assert ended == ["two"]


def test_a_page_asks_again_after_a_refusal_that_is_soon_over(monkeypatch: Any) -> None:
    monkeypatch.setattr(looks, "LEAST_PAUSE", 0.0)
    monkeypatch.setattr(looks, "PAUSE", 0.0)
    answers: list[Any] = [unavailable("too many", "server"), BadInput(field="loss"), None]

    async def ask(name: str, **_: Any) -> Any:
        answer = answers.pop(0)
        raise answer if answer is not None else AssertionError

    async def main() -> None:
        outlooks, asked = looks.Outlooks(ask), looks.Asked("one", 5.0, 100)
        for left in (2, 1, 1):  # the second refusal is kept: the state is the same
            await outlooks.look(asked, 7, 1.0)
            await asyncio.sleep(0.01)
            assert len(answers) == left
        monkeypatch.setattr(looks, "OLDEST", 0.0)
        await outlooks.look(asked, 7, 1.0)
        await asyncio.sleep(0.01)
        assert not answers

    asyncio.run(main())


def test_an_older_forecast_does_not_undo_a_newer_alarm() -> None:
    office, desk = begun(Clock(), risk=RISK)
    desk.ask(5)

    def weigh(chance: float, after: int) -> Any:
        return desk.submit(Weigh(Found(RISK, chance, chance - 0.01, chance + 0.01, after))).result()

    assert weigh(0.5, 5)["state"] == "on"
    assert weigh(0.02, 3) is None  # it began before the forecast that raised the alarm
    assert desk.summary()["alarm"]["state"] == "on"
    assert weigh(0.02, 5)["state"] == "over"
    office.close()


def test_a_page_knows_the_arms_of_the_beginning() -> None:
    from lighttail.dashboard.view import arms_view

    heard = {"A": (5000, 150.0), "B": (5000, 250.0), "C": (900, 30.0)}
    tries = dict.fromkeys(heard, 9000)
    now, joined = (arms_view(tries, heard, BoundedRewards(), first=first)["arms"] for first in (None, 2))
    assert joined[0]["low"] < now[0]["low"]


def known(desk: Any) -> tuple[dict[str, Heard], str | None]:
    found: tuple[dict[str, Heard], str | None] = desk.submit(Look("heard")).result()
    return found


@pytest.mark.parametrize("sticky", [True, False])
def test_visits_of_units_whose_arm_was_retired_are_no_evidence(sticky: bool) -> None:
    """The policy chooses again for them, so that the journal does not say that such visits are later ones."""
    office, desk = begun(Clock(), arms="ABC", **({"sticky": True} if sticky else {}))
    for unit in "abcdefghi" * 2:
        desk.tell([(desk.ask(unit=unit)[0].id, 1.0)])
    before, why = known(desk)
    assert why is None
    assert sum(one.times for one in before.values()) == (9 if sticky else 18)
    desk.retire("C")
    assert known(desk) == (before, None)  # no unit came since
    for unit in "abcdefghi":
        desk.tell([(desk.ask(unit=unit)[0].id, 1.0)])
    after, why = known(desk)
    assert (why is not None) is sticky
    assert not sticky or "later visits of the same units may repeat" in str(why)
    assert sum(one.times for one in after.values()) == 27  # without evidence, all rewards are counted
    desk.set({})  # the visits of units whose arm was retired stay in the sums
    assert (known(desk)[1] is not None) is sticky
    again = Book.restored(json.loads(json.dumps(desk._book.to_plain())))
    assert again is not None
    assert again.rechosen is sticky
    office.close()


def test_a_retirement_hides_no_evidence_if_no_unit_sticks_to_an_arm() -> None:
    office, desk = begun(Clock(), arms="ABC")
    for trial in desk.ask(30):
        desk.tell([(trial.id, 1.0)])
    desk.retire("C")
    desk.set({"sticky": True})
    desk.set({})
    for trial in desk.ask(5):
        desk.tell([(trial.id, 1.0)])
    heard, why = known(desk)
    assert why is None
    assert sum(one.times for one in heard.values()) == 35
    office.close()


@pytest.mark.parametrize("late", ["ignore", "amend"])
def test_limits_after_a_retirement_are_those_of_the_trials_that_are_older_than_the_window(late: str) -> None:
    """Held against the journal, against the same experiment a moment before the retirement, and against an
    experiment that never had the arm."""
    clock, journal, window, draws = Clock(), MemoryJournal(), 100.0, np.random.default_rng(5)
    settings: dict[str, Any] = {"window": window, "default": 0.0, "late": late}
    office, desk = begun(clock, journal, arms="ABC", **settings)
    opened: list[tuple[float, int]] = []
    before = None
    for turn in range(1500):
        clock.now += 1.0
        if turn == 700:
            before = known(desk)
            desk.retire("C")
            assert known(desk) == before
        (trial,) = desk.ask()
        if draws.random() < {"A": 0.3, "B": 0.6, "C": 0.4}[str(trial.arm)]:
            opened.append((clock.now + 150.0 * draws.random(), trial.id))
        desk.tell(told) if (told := [(id, 1.0) for at, id in opened if at <= clock.now]) else desk.tick()
        opened = [one for one in opened if one[0] > clock.now]
    found, why = known(desk)
    assert why is None
    events = events_of(journal)
    arms = {event["id"]: event["arm"] for event in events if event["kind"] == "ask"}
    old = {event["id"] for event in events if event["kind"] == "ask" and event["time"] <= clock.now - window}
    rewards = {event["id"]: event["reward"] for event in events if event["kind"] in KINDS}
    for arm, heard in found.items():
        mine = [reward for id, reward in rewards.items() if arms[id] == arm and id in old]
        assert heard == Heard(len(mine), sum(mine))
        assert heard.times > 20
    assert sum(one.times for one in found.values()) < len(rewards)  # control: young rewards are left out
    without = replay(without_arm(events, "C"))
    assert known_of(without, clock.now) == ({arm: found[arm] for arm in "AB"}, None)
    assert known_of(without, clock.now + window) != known_of(without, clock.now)  # control
    limits = lead(found, BoundedRewards()).means
    every = confidence_sequences({arm: found[arm] for arm in "AB"}, BoundedRewards()).means
    for arm in "AB":  # the error is divided by one arm more
        assert limits[arm].value == every[arm].value
        assert limits[arm].low < every[arm].low < every[arm].high < limits[arm].high
    office.close()


def without_arm(events: list[Any], arm: str) -> list[Any]:
    """The journal of an experiment that never had an arm: without its trials, and numbered anew."""
    ids: dict[str, str] = {}
    found: list[Any] = []
    for event in events:
        more: dict[str, Any] = {"seq": len(found) + 1}
        if event["kind"] == "create":
            more["arms"] = [one for one in event["arms"] if one != arm]
        else:
            if event["kind"] == "ask" and event["arm"] != arm:
                ids[event["id"]] = str(len(ids) + 1)
            if event.get("id") not in ids:
                continue
            more["id"] = ids[event["id"]]
        found.append({**event, **more})
    return found
