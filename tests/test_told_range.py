"""Rewards outside the range that the setting `rewards` says are refused, and so are settings that contradict
one another; journals that were written before hold such things, and are replayed."""

from __future__ import annotations

from typing import Any

import pytest
from desks import Clock, book_of, desk_of, events_of, replay, replayed
from served import FIRST, client_of, refusal

from lighttail.checks import BadInput
from lighttail.live import Office
from lighttail.live.errors import Refused
from lighttail.live.memory import MemoryJournal
from lighttail.live.outlook import Wish
from lighttail.live.requests import Look
from lighttail.live.settings import Settings

ONE = "/v1/experiments/one"
SHARES = {"rewards": {"low": 0, "high": 1}}
ALLOWED = "between 0 and 1, as settings.rewards says"


@pytest.fixture
def unchecked(monkeypatch: Any) -> pytest.MonkeyPatch:
    """A server that checks neither rewards nor settings, as servers once were."""
    patched: pytest.MonkeyPatch = monkeypatch
    patched.setattr(Settings, "check_reward", lambda *_: None)
    patched.setattr(Settings, "check_new", lambda *_: None)
    return patched


def test_a_reward_outside_the_stated_range_is_refused_over_http() -> None:
    with client_of() as client:
        client.post("/v1/experiments", json=FIRST | {"settings": SHARES})
        client.post(f"{ONE}/ask", json={"count": 3})
        before = client.get(f"{ONE}/journal").text
        error = refusal(
            client.post(f"{ONE}/tell", json={"rewards": [{"id": "1", "reward": 7.0}]}), 400, "reward"
        )
        assert error["message"] == f"reward must be {ALLOWED}, but is 7.0"
        assert (error["value"], error["allowed"]) == ("7.0", ALLOWED)
        several = [{"id": "1", "reward": 1}, {"id": "2", "reward": -0.5}]
        refusal(client.post(f"{ONE}/tell", json={"rewards": several}), 400, "reward")
        assert client.get(f"{ONE}/journal").text == before  # nothing was written, not even the first of two
        several[1]["reward"] = 0
        assert client.post(f"{ONE}/tell", json={"rewards": several}).json()["counted"] == 2


@pytest.mark.parametrize("late", ["ignore", "amend"])
def test_a_late_reward_outside_the_range_is_refused(late: str) -> None:
    clock, journal = Clock(), MemoryJournal()
    with desk_of(journal, clock, settings={**SHARES, "window": 10, "default": 0, "late": late}) as desk:
        desk.ask(count=2)
        clock.now += 20.0
        desk.tick()
        before = events_of(journal)
        with pytest.raises(BadInput, match=ALLOWED):
            desk.tell([(1, 7.0)])
        with pytest.raises(BadInput, match=ALLOWED):
            desk.tell([(1, 1.0), (2, 7.0)])
        assert events_of(journal) == before
        assert sum(desk.tell([(1, 1.0)])) == 1


@pytest.mark.parametrize("by", ["holdout", "fallback"])
def test_a_trial_that_the_policy_does_not_see_takes_no_such_reward_either(by: str) -> None:
    more = {"holdout": {"arm": "A", "share": 0.999}} if by == "holdout" else {}
    with desk_of(settings={**SHARES, **more}) as desk:
        if by == "fallback":
            desk.pause()
        (trial,) = desk.ask(unit="u")
        assert trial.by == by
        with pytest.raises(BadInput, match=ALLOWED):
            desk.tell([(trial.id, 1.5)])


def test_without_a_stated_range_every_reward_counts() -> None:
    for settings in ({}, {"rewards": {"sigma": 0.5}}):
        with desk_of(settings=settings) as desk:
            desk.ask()
            assert desk.tell([(1, 7.0)]).counted == 1


def test_a_journal_with_such_rewards_is_replayed_and_the_same_reward_again_is_known(unchecked: Any) -> None:
    journal = MemoryJournal()
    settings = {**SHARES, "window": 10, "default": 3, "risk": {"loss": 1e6, "chance": 0.1, "then": "warn"}}
    with desk_of(journal, settings=settings) as desk:
        desk.ask(count=2)
        desk.tell([(1, 7.0)])
        known = book_of(desk)
    unchecked.undo()
    assert replayed(journal) == known
    with desk_of(journal, settings=settings) as desk:  # the same request to begin it finds it
        assert desk.tell([(1, 7.0)]).repeated == 1
        with pytest.raises(BadInput, match=ALLOWED):
            desk.tell([(2, 7.0)])
        desk.set({"rewards": {"low": 0, "high": 10}})  # this is how it is corrected
        assert desk.tell([(2, 7.0)]).counted == 1
    assert replay(events_of(journal)).heard == 2


WRONG: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({**SHARES, "window": 5, "default": 2}, "settings.default", ALLOWED),
    (
        {"means": {"low": 0.03, "high": 0.05}, "risk": {"loss": 60, "chance": 0.1, "then": "warn"}},
        "settings.risk.loss",
        "at most 10, because no policy can lose more in 500 pulls with settings.means (0.03 to 0.05)",
    ),
    (
        {"rewards": {"low": 0, "high": 2}, "risk": {"loss": 1001, "chance": 0.1, "then": "warn"}},
        "settings.risk.loss",
        "at most 1,000, because no policy can lose more in 500 pulls with settings.rewards (0 to 2)",
    ),
)


@pytest.mark.parametrize(("settings", "field", "allowed"), WRONG)
def test_settings_that_contradict_one_another_are_refused(
    settings: dict[str, Any], field: str, allowed: str
) -> None:
    office = Office(MemoryJournal(), Clock())
    begin: dict[str, Any] = {"policy": "ts:0.5", "arms": ["A", "B"], "horizon": 500}
    with pytest.raises(BadInput) as refused:
        office.create("one", settings=settings, **begin)
    assert (refused.value.field, refused.value.allowed) == (field, allowed)
    assert office.names() == []
    desk, _ = office.create("one", **begin)
    with pytest.raises(BadInput) as refused:
        desk.set(settings)
    assert refused.value.field == field
    assert len(events_of(office.journal)) == 1
    office.close()


def test_a_loss_that_is_just_possible_is_accepted() -> None:
    risk = {"loss": 10, "chance": 0.1, "then": "warn"}
    with desk_of(settings={"means": {"low": 0.5, "high": 0.52}, "risk": risk}) as desk:
        assert desk.summary()["settings"]["risk"] == risk
    with desk_of(settings={"risk": risk | {"loss": 1e6}, "rewards": {"sigma": 1.0}}):
        pass  # nothing limits the loss


def test_a_forecast_refuses_a_loss_that_the_limits_of_the_means_exclude() -> None:
    """Before, the chance of such a loss was answered as 0, as if it had been simulated."""
    office = Office(MemoryJournal(), Clock())
    begin: dict[str, Any] = {"policy": "ts:0.5", "arms": ["A", "B"], "horizon": 500}
    desk, _ = office.create("one", settings={"means": {"low": 0.03, "high": 0.05}}, **begin)
    now = desk.submit(Look("outlook")).result()
    with pytest.raises(BadInput) as refused:
        now.forecast(Wish(loss=10.1))
    said = "at most 10, because no policy can lose more in 500 pulls with means from 0.03 to 0.05"
    assert (refused.value.field, refused.value.allowed) == ("loss", said)
    assert now.forecast(Wish(loss=10.0, paths=100)).chance.low == 0.0
    ids = [trial.id for trial in desk.ask(count=100)]
    desk.tell([(one, 1.0) for one in ids])  # the rewards contradict the limits, which is said first
    with pytest.raises(Refused, match="the rewards contradict"):
        desk.submit(Look("outlook")).result().forecast(Wish(loss=10.1))
    desk, _ = office.create("two", settings={"means": {"low": 0.03, "high": 0.05}}, **begin)
    desk.ask()
    desk.stop()  # after one pull, which cannot have lost 10
    assert desk.submit(Look("outlook")).result().forecast(Wish(loss=10.0, paths=100)).chance.value == 0.0
