"""Forecasts of an experiment of the service: what they are made from, and what the route answers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import pytest
from desks import Clock
from served import FIRST, Client, client_of, refusal

import lighttail as lt
from lighttail.checks import BadInput
from lighttail.live import Office
from lighttail.live.book import Book, entered_all
from lighttail.live.journal import event_of
from lighttail.live.memory import MemoryJournal
from lighttail.live.outlook import Outlook, Wish
from lighttail.live.requests import Look
from lighttail.server.forecasts import Forecaster

ONE = "/v1/experiments/one"


@pytest.fixture(autouse=True)
def here(monkeypatch: Any) -> None:
    """Forecast in this process, which has loaded the kernels; `tests/test_alarms.py` has the other one."""
    monkeypatch.setattr(Forecaster, "forecast", lambda _, outlook, wish: outlook.forecast(wish).to_dict())


WISH: dict[str, Any] = FIRST | {"policy": "ucb:anytime:0.2", "horizon": 400}
PATHS = 200


def seen(desk: Any) -> Outlook:
    found: Outlook = desk.submit(Look("outlook")).result()
    return found


def begun(clock: Any, settings: Any = None, **more: Any) -> tuple[Office, Any]:
    office = Office(MemoryJournal(), clock)
    wish = {**WISH, "settings": settings, **more}
    return office, office.create(**wish)[0]


def play(client: Client, pulls: int, settings: Any = None, **more: Any) -> None:
    """An experiment after some pulls, each third of which is a success."""
    body = WISH | more | ({} if settings is None else {"settings": settings})
    assert client.post("/v1/experiments", json=body).status_code == 201
    trials = client.post(f"{ONE}/ask", json={"count": pulls}).json()["trials"]
    rewards = [{"id": trial["id"], "reward": int(trial["id"]) % 3 == 0} for trial in trials]
    client.post(f"{ONE}/tell", json={"rewards": rewards})


def test_the_route_answers_the_forecast_of_the_state() -> None:
    with client_of() as client:
        play(client, 60)
        found = client.get(f"{ONE}/forecast?loss=20.5&paths={PATHS}&low=0.1&high=0.6").json()
        state = lt.Experiment.from_json(json.dumps(client.get(f"{ONE}/state").json()))
        same = state.forecast(loss=20.5, paths=PATHS, seed=WISH["seed"], threads=1, between=(0.1, 0.6))
        assert found == same.to_dict()
        assert len(found["distribution"]["edges"]) == 31
        assert sum(found["distribution"]["shares"]) == pytest.approx(1.0)
        further = client.get(f"{ONE}/forecast?loss=20.5&paths={PATHS}&horizon=1000").json()
        assert further["horizon"] == 1000
        assert further["mean_loss"]["value"] > found["mean_loss"]["value"]


def test_the_same_question_about_the_same_state_is_answered_once(monkeypatch: Any) -> None:
    made: list[Wish] = []
    real = Outlook.forecast
    monkeypatch.setattr(Outlook, "forecast", lambda self, *ask: (made.append(ask[0]), real(self, *ask))[1])
    with client_of() as client:
        play(client, 30)
        first = client.get(f"{ONE}/forecast?loss=20&paths={PATHS}").json()
        assert client.get(f"{ONE}/forecast?loss=20&paths={PATHS}").json() == first
        assert len(made) == 1
        client.get(f"{ONE}/forecast?loss=21&paths={PATHS}")
        assert len(made) == 2
        client.post(f"{ONE}/ask", json={})
        client.get(f"{ONE}/forecast?loss=21&paths={PATHS}")
        assert len(made) == 3


def test_the_settings_say_what_is_not_asked() -> None:
    risk = {"loss": 25, "chance": 0.1, "then": "warn"}
    with client_of() as client:
        play(client, 30, {"risk": risk, "means": {"low": 0.2, "high": 0.4}})
        found = client.get(f"{ONE}/forecast?paths={PATHS}").json()
        assert (found["loss"], found["horizon"]) == (25.0, 400)
        assert all(0.2 <= mean <= 0.4 for mean in found["worst"]["means"].values())
        client.post(f"{ONE}/stop", json={})
        over = client.get(f"{ONE}/forecast?paths={PATHS}").json()
        assert over["horizon"] == 30  # a stopped experiment loses no more


def test_refusals_name_what_is_missing() -> None:
    with client_of() as client:
        play(client, 30)
        refusal(client.get(f"{ONE}/forecast"), 400, "loss")
        refusal(client.get(f"{ONE}/forecast?loss=many"), 400, "loss")
        refusal(client.get(f"{ONE}/forecast?loss=0"), 400, "loss")
        refusal(client.get(f"{ONE}/forecast?loss=5&low=0.1"), 400, "high")
        refusal(client.get(f"{ONE}/forecast?loss=5&low=0.6&high=0.1"), 400, "low and high")
        refusal(client.get(f"{ONE}/forecast?loss=5&horizon=3"), 400, "horizon")
        refusal(client.get(f"{ONE}/forecast?loss=5&paths=3"), 400, "paths")
        refusal(client.get(f"{ONE}/forecast?loss=5&horizon=900000&paths=10000"), 400, "paths")
        refusal(client.get(f"{ONE}/forecast?loss=5&horizon=900000000"), 400, "horizon")
        refusal(client.get(f"{ONE}/forecast?chance=5"), 400, "the query")
        refusal(client.get("/v1/experiments/two/forecast?loss=5"), 404, "name")
        client.post("/v1/experiments", json=WISH | {"name": "endless", "horizon": None})
        refusal(client.get("/v1/experiments/endless/forecast?loss=5"), 400, "horizon")
        client.post("/v1/experiments", json={"name": "line", "policy": "lints:1", "dim": 2})
        refusal(client.get("/v1/experiments/line/forecast?loss=5"), 409, "experiment")
        client.post(f"{ONE}/arms", json={"add": "C"})
        client.post(f"{ONE}/arms", json={"retire": "B"})
        assert "retired" in refusal(client.get(f"{ONE}/forecast?loss=5"), 409, "experiment")["message"]


def test_rewards_outside_their_limits_are_named() -> None:
    with client_of() as client:
        play(client, 30)
        client.post(f"{ONE}/ask", json={})
        client.post(f"{ONE}/tell", json={"rewards": [{"id": "31", "reward": 7}]})
        said = refusal(client.get(f"{ONE}/forecast?loss=5&paths={PATHS}"), 409, "settings.rewards")
        assert "the reward 7 was heard" in said["message"]
        for rewards in ({"low": -1, "high": 10}, {"sigma": 2.5}):
            client.post(f"{ONE}/settings", json={"settings": {"rewards": rewards}})
            assert client.get(f"{ONE}/forecast?loss=5&paths={PATHS}").status_code == 200


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"rewards": {"low": 1, "high": 1}}, "settings.rewards.high"),
        ({"rewards": {"low": 0}}, "the fields of settings.rewards"),
        ({"rewards": {"sigma": 0}}, "settings.rewards.sigma"),
        ({"rewards": 5}, "settings.rewards"),
        ({"means": {"low": "a", "high": 1}}, "settings.means.low"),
        ({"risk": {"loss": 0, "chance": 0.1, "then": "warn"}}, "settings.risk.loss"),
    ],
)
def test_settings_that_are_wrong(settings: Any, field: str) -> None:
    with client_of() as client:
        refusal(client.post("/v1/experiments", json=WISH | {"settings": settings}), 400, field)
        risk = {"loss": 5, "chance": 0.1, "then": "warn"}
        endless = WISH | {"horizon": None, "settings": {"risk": risk}}
        refusal(client.post("/v1/experiments", json=endless), 400, "settings.risk")


def test_only_trials_older_than_the_window_are_evidence() -> None:
    """Successes are told at once and failures are closed by the window, so that the rewards of young trials
    are all successes: as evidence they would double the means."""
    clock = Clock()
    office, desk = begun(clock, {"window": 100.0, "default": 0.0}, horizon=10_000)
    rng = np.random.default_rng(1)
    for _ in range(40):
        clock.now += 10.0
        trials = desk.ask(50)
        wins = [(trial.id, 1.0) for trial in trials if rng.random() < 0.3]
        desk.tell(wins)
    found = seen(desk)
    heard, every = found.heard, found.start.counts
    assert sum(one.times for one in heard) == 30 * 50  # the trials of ten rounds are younger
    share = sum(one.total for one in heard) / 1500
    assert abs(share - 0.3) < 4 * (0.3 * 0.7 / 1500) ** 0.5  # z = 4
    assert every[2].sum() / every[1].sum() > 0.35  # negative control: all rewards that were heard
    clock.now += 101.0
    assert sum(one.times for one in seen(desk).heard) == 2000
    office.close()


def test_a_snapshot_and_a_replay_know_what_is_young() -> None:
    clock = Clock()
    office, desk = begun(clock, {"window": 100.0, "default": 0.0})
    for place in range(30):
        clock.now += 10.0
        trials = desk.ask(10)
        desk.tell([(trial.id, float(place % 2)) for trial in trials[:4]])
        if place == 15:
            desk.set({"window": 50.0, "default": 0.0})
    rows = office.journal.rows("one")
    *_, replayed = entered_all(event_of(row.body) for row in rows)
    kept = json.loads(json.dumps(replayed.to_plain()))
    restored = Book.restored(kept)
    assert restored is not None
    assert restored.to_plain() == kept
    since = clock.now - 50.0
    times, sums = restored.hearing.young(2, since)
    assert times.sum() == 4 * 5
    assert sums.sum() in (4 * 2, 4 * 3)
    assert (restored.hearing.least, restored.hearing.most) == (0.0, 1.0)
    office.close()


def test_clients_have_it_too(monkeypatch: Any) -> None:
    from lighttail.client.awaiting import AsyncService
    from lighttail.client.wire import Wire

    asked: list[str] = []
    monkeypatch.setattr(Wire, "call", lambda self, method, path, **_: asked.append(path) or {})
    lt.connect("http://localhost:1")["one"].forecast(loss=30, between=(0.1, 0.2))

    async def later() -> None:
        service: AsyncService = lt.connect_async("http://localhost:1")
        await service["one"].forecast(horizon=5, paths=300)
        await service.close()

    asyncio.run(later())
    assert asked == [f"{ONE}/forecast?loss=30&low=0.1&high=0.2", f"{ONE}/forecast?horizon=5&paths=300"]
    with pytest.raises(BadInput, match="between"):
        lt.connect("http://localhost:1")["one"].forecast(loss=30, between=(0.1,))
