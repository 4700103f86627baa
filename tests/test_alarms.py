"""The risk budget: forecasts become alarms, once, in the journal, and on a webhook."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from desks import Clock, book_of, events_of, replay, text_of
from journals import new_schema
from served import FIRST, FOREVER, client_of, kept_port

from lighttail.checks import BadInput
from lighttail.live import Office
from lighttail.live.alarms import Found
from lighttail.live.awaiting import AsyncDesk
from lighttail.live.checking import check_journal
from lighttail.live.errors import Damaged
from lighttail.live.export import export_trials
from lighttail.live.memory import MemoryJournal
from lighttail.live.outlook import Outlook, Wish
from lighttail.live.postgres import PostgresJournal
from lighttail.live.requests import Look, Weigh
from lighttail.server import watch as watch_module
from lighttail.server.forecasts import Forecaster, Forecasts
from lighttail.server.watch import FIRST as FIRST_REWARDS
from lighttail.server.watch import Watch, Webhook, address_of

RISK: dict[str, Any] = {"loss": 20, "chance": 0.1, "then": "warn"}
WISH: dict[str, Any] = FIRST | {"policy": "ucb:anytime:0.2", "horizon": 400}
HIGH, LOW, BETWEEN = (0.3, 0.25, 0.35), (0.01, 0.0, 0.02), (0.12, 0.09, 0.15)


@contextmanager
def begun(then: str = "warn", journal: Any = None) -> Iterator[tuple[Office, Any]]:
    office = Office(MemoryJournal() if journal is None else journal, Clock())
    wish = WISH | {"settings": {"risk": RISK | {"then": then}, "fallback": "B"}}
    try:
        yield office, office.create(**wish)[0]
    finally:
        for desk in office._desks.values():
            desk.close()


def weigh(desk: Any, numbers: tuple[float, float, float], then: str = "warn") -> Any:
    return desk.submit(Weigh(Found(RISK | {"then": then}, *numbers, 1))).result()


def kinds(office: Office) -> list[str]:
    return [event["kind"] for event in events_of(office.journal)]


def test_an_alarm_begins_and_is_over_once() -> None:
    with begun() as (office, desk):
        desk.ask(3)
        assert weigh(desk, LOW) is None
        assert weigh(desk, BETWEEN) is None  # the interval has the limit in it
        event = weigh(desk, HIGH)
        assert (event["state"], event["chance"], event["limit"], event["then"]) == ("on", 0.3, 0.1, "warn")
        assert weigh(desk, HIGH) is None
        assert weigh(desk, BETWEEN) is None
        assert desk.summary()["alarm"]["state"] == "on"
        assert not desk.summary()["paused"]
        assert weigh(desk, LOW)["state"] == "over"
        assert weigh(desk, LOW) is None
        assert kinds(office)[-2:] == ["alarm", "alarm"]


def test_a_pause_is_in_the_same_commit_and_a_person_may_resume() -> None:
    with begun("pause") as (office, desk):
        commits = desk.commits
        weigh(desk, HIGH, "pause")
        assert desk.commits == commits + 1
        assert kinds(office)[-2:] == ["alarm", "pause"]
        (trial,) = desk.ask()
        assert (trial.arm, trial.by) == ("B", "fallback")
        assert desk.resume()
        assert weigh(desk, HIGH, "pause") is None  # the person knows
        assert not desk.summary()["paused"]
        weigh(desk, LOW, "pause")
        desk.pause()
        weigh(desk, HIGH, "pause")
        assert kinds(office)[-2:] == ["pause", "alarm"]  # it was paused already


def test_a_forecast_for_other_settings_is_not_weighed() -> None:
    with begun() as (_, desk):
        assert weigh(desk, HIGH, "pause") is None
        weigh(desk, HIGH)
        desk.set({"risk": RISK | {"loss": 30}})
        assert desk.summary()["alarm"] is None  # the alarm was about another loss
        assert weigh(desk, HIGH) is None
        desk.set({})
        assert weigh(desk, HIGH) is None
    with begun() as (_, desk):
        desk.stop()
        assert weigh(desk, HIGH) is None
        assert desk.submit(Look("risk")).result() == (None, 0)


def test_a_replay_and_a_snapshot_know_the_alarm_and_a_check_verifies_it(tmp_path: Path) -> None:
    journal = MemoryJournal()
    with begun("pause", journal) as (_, desk):
        desk.ask(4)
        weigh(desk, HIGH, "pause")
        desk.tell([(1, 1.0)])
        assert text_of(replay(events_of(journal))) == book_of(desk)
    with begun("pause", journal) as (_, again):  # from the snapshot
        assert again.summary()["alarm"]["state"] == "on"
        assert weigh(again, HIGH, "pause") is None
        weigh(again, LOW, "pause")
    assert check_journal(journal, "one").events == len(events_of(journal))
    assert export_trials(journal, "one", tmp_path / "one.csv") == 4


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"limit": 0.2}, "is not about the risk budget"),
        ({"then": "pause"}, "is not about the risk budget"),
        ({"low": 0.05}, "does not follow from its chance"),
        ({"state": "over"}, "does not follow from its chance"),
        ({"high": 0.2}, "has a chance outside its interval"),
        ({"chance": "much"}, "has no chance"),
    ],
)
def test_an_alarm_that_contradicts_is_damage(change: dict[str, Any], said: str) -> None:
    with begun() as (office, desk):
        weigh(desk, HIGH)
        events = events_of(office.journal)
    assert replay(events).alarm is not None
    with pytest.raises(Damaged, match=said):
        replay([*events[:-1], events[-1] | change])
    with pytest.raises(Damaged, match="does not follow"):
        replay([*events, events[-1] | {"seq": len(events) + 1}])  # twice


def test_two_servers_on_one_database_write_an_alarm_once(postgres: str) -> None:
    address = new_schema(postgres)
    one, other = PostgresJournal(address), PostgresJournal(address)
    with begun("pause", one) as (office, desk), begun("pause", other) as (_, too):
        found = [weigh(server, HIGH, "pause") for server in (desk, too, desk)]
        assert [event is not None for event in found] == [True, False, False]
        assert kinds(office) == ["create", "alarm", "pause"]
        assert too.summary()["paused"]
        assert weigh(too, LOW, "pause")["state"] == "over"
        assert weigh(desk, LOW, "pause") is None
        assert check_journal(office.journal, "one").events == 4
    one.close()
    other.close()


def watched(office: Office, numbers: list[tuple[float, float, float]], hook: Any = None) -> Any:
    """A watch whose forecasts are these chances, and a function that looks once."""
    desks: dict[str, AsyncDesk] = {}

    class Given(Forecasts):
        async def made(self, desk: AsyncDesk, question: Any = None) -> tuple[Any, dict[str, Any]]:
            outlook: Outlook = await desk.answer(Look("outlook"))
            chance = dict(zip(("value", "low", "high"), numbers.pop(0), strict=True))
            return outlook, {"chance": chance}

    async def look() -> None:
        async def opened(name: str) -> AsyncDesk:
            return AsyncDesk(office.desk(name))

        watch.opened = opened
        for seen in watch.seen.values():
            seen.next = 0.0
        await watch.look()

    watch = Watch(office, desks.get, Given(), hook)  # type: ignore[arg-type]
    return watch, lambda: asyncio.run(look())


class Posts(list[dict[str, Any]]):
    post = list.append

    def lines(self) -> list[str]:
        return []


def test_the_watch_looks_when_rewards_have_come_and_two_servers_raise_one_alarm() -> None:
    journal, posted = MemoryJournal(), Posts()
    with begun("pause", journal) as (office, desk), begun("pause", journal) as (other, _):
        watch, look = watched(office, [HIGH, LOW], posted)
        second, look_too = watched(other, [HIGH], posted)
        look()
        assert watch.seen["one"].chance is None  # too few rewards
        trials = desk.ask(FIRST_REWARDS)
        desk.tell([(trial.id, 1.0) for trial in trials])
        look()
        look_too()
        assert [one["state"] for one in posted] == ["on"]
        assert posted[0]["experiment"] == "one"
        assert kinds(office).count("alarm") == 1
        assert second.seen["one"].chance == 0.3
        look()  # no new rewards: no forecast is left to make
        desk.resume()
        desk.tell([(trial.id, 0.0) for trial in desk.ask(25)])
        look()
        assert [one["state"] for one in posted] == ["on", "over"]
        assert 'lighttail_experiment_forecast_chance{experiment="one"} 0.01' in list(watch.lines())


@pytest.mark.parametrize("meanwhile", [True, False])
def test_settings_that_change_during_a_forecast_are_looked_at_soon(meanwhile: bool) -> None:
    with begun() as (office, desk):
        watch, look = watched(office, [LOW])
        desk.tell([(trial.id, 1.0) for trial in desk.ask(FIRST_REWARDS)])
        made = watch.forecasts.made

        async def made_slowly(*asked: Any) -> Any:
            if meanwhile:
                watch.changed("one")
            return await made(*asked)

        watch.forecasts.made = made_slowly
        look()
        assert watch.seen["one"].chance == LOW[0]
        assert (watch.seen["one"].next == 0.0) == meanwhile  # the control waits


def test_what_cannot_be_forecast_is_said() -> None:
    with begun() as (office, desk):
        watch, look = watched(office, [])
        desk.tell([(trial.id, 3.0) for trial in desk.ask(FIRST_REWARDS)])
        look()
        assert "settings.rewards" in watch.seen["one"].failed
        assert 'lighttail_experiment_unwatched{experiment="one"} 1' in list(watch.lines())


def test_a_server_forecasts_raises_and_shows_the_alarm(monkeypatch: Any) -> None:
    from lighttail.server import watch as module

    monkeypatch.setattr(module, "EVERY", 0.02)
    risk = {"loss": 1, "chance": 0.1, "then": "pause"}  # a loss that nobody avoids
    with client_of() as client:
        client.post("/v1/experiments", json=WISH | {"settings": {"risk": risk}})
        assert client.get("/v1/experiments/one").json()["alarm"] is None
        trials = client.post("/v1/experiments/one/ask", json={"count": 60}).json()["trials"]
        rewards = [{"id": one["id"], "reward": one["arm"] == "B"} for one in trials]
        client.post("/v1/experiments/one/tell", json={"rewards": rewards})
        end = time.monotonic() + FOREVER
        while (found := client.get("/v1/experiments/one").json())["alarm"] is None and time.monotonic() < end:
            time.sleep(0.05)
        assert found["alarm"]["state"] == "on"
        assert found["paused"]
        numbers = client.get("/metrics").text
        assert 'lighttail_experiment_alarm{experiment="one"} 1' in numbers
        assert 'lighttail_experiment_forecast_chance{experiment="one"}' in numbers


def test_the_process_that_forecasts_refuses_starts_again_and_ends() -> None:
    forecaster = Forecaster()
    with begun() as (_, desk):
        desk.tell([(trial.id, 1.0) for trial in desk.ask(30)])
        outlook: Outlook = desk.submit(Look("outlook")).result()
    found = forecaster.forecast(outlook, Wish(paths=100))
    assert found == outlook.forecast(Wish(paths=100)).to_dict()
    with pytest.raises(BadInput, match="paths must be"):
        forecaster.forecast(outlook, Wish(paths=1))
    process = forecaster._process
    assert process is not None
    process.kill()
    process.wait()
    assert forecaster.forecast(outlook, Wish(paths=100)) == found
    process = forecaster._process
    forecaster.close()
    assert process is not None
    assert process.poll() is not None
    with pytest.raises(BadInput, match="closing"):
        forecaster.forecast(outlook, Wish(paths=100))


@contextmanager
def answering(statuses: list[int]) -> Iterator[tuple[str, list[Any]]]:
    """A server that keeps what is posted, and answers with these statuses."""
    taken: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append((self.path, json.loads(body)))
            self.send_response(statuses.pop(0))
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/hook?team=4", taken
        server.shutdown()
        thread.join()


def test_a_webhook_tries_again_and_counts_what_fails(monkeypatch: Any) -> None:
    monkeypatch.setattr(watch_module, "sleep", lambda _: None)
    monkeypatch.setattr(watch_module, "PATIENCE", FOREVER)
    with answering([500, 200, 302, 500, 404]) as (url, taken):
        hook = Webhook(url)
        hook.post({"experiment": "one", "state": "on"})
        hook.post({"experiment": "two", "state": "on"})
        hook.close()
    assert (hook.sent, hook.failed) == (1, 1)
    assert [path for path, _ in taken] == ["/hook?team=4"] * 5
    assert taken[1][1] == {"experiment": "one", "state": "on"}
    assert "lighttail_webhook_failed_total 1" in list(hook.lines())
    with kept_port() as port:  # nobody listens
        gone = Webhook(f"http://127.0.0.1:{port}/hook")
        gone.post({"experiment": "one"})
        gone.close()
    assert gone.failed == 1


WRONG: dict[Any, str] = {
    "ftp://a/hidden": "'ftp://a...'",
    "me.org": "'me.org'",
    "me.org/hidden?hidden": "'me.org...'",
    "http://": "'http://'",
    "http://u:hidden@a/": "'http://a...'",
    "http://a b": "'http://a b'",
    3: "3",
}


@pytest.mark.parametrize(("url", "named"), WRONG.items())
def test_an_address_that_is_none_is_refused_and_named_without_its_secrets(url: Any, named: str) -> None:
    with pytest.raises(BadInput, match="webhook must be an address") as error:
        address_of(url)
    assert str(error.value).endswith(f", but is {named}")
    assert "hidden" not in str(error.value)
