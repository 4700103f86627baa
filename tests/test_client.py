"""The client: the two verbs over HTTP, tries until an answer comes, and the refusals of `Experiment`."""

from __future__ import annotations

import asyncio
import json
import math
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from desks import events_of
from fronts import Front, front_of
from served import FOREVER, kept_port, served

import lighttail as lt
from lighttail.client import wire
from lighttail.client.service import RemoteExperiment, Service
from lighttail.client.wire import TookTooLong, Unreachable
from lighttail.live.errors import Refused
from lighttail.live.memory import MemoryJournal
from lighttail.live.requests import Served, Told
from lighttail.server.keys import Keys, add_key


class Times:
    """A clock that pauses set, so that no test waits."""

    def __init__(self) -> None:
        self.now, self.pauses = 0.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    made = Times()
    monkeypatch.setattr(wire, "sleep", made.sleep)
    monkeypatch.setattr(wire, "clock", made.clock)
    monkeypatch.setattr(wire, "LEAST_TRY", FOREVER)  # sockets know the real time alone
    return made


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


@pytest.fixture
def front(journal: MemoryJournal) -> Iterator[Front]:
    with front_of(journal) as made:
        yield made


@pytest.fixture
def service(front: Front) -> Iterator[Service]:
    with lt.connect(front.url, timeout=FOREVER) as made:
        yield made


@pytest.fixture
def one(service: Service) -> RemoteExperiment:
    return service.create("one", "ucb:anytime:0.3", ["A", "B", "C"], seed=3, horizon=500)


# The verbs


def test_it_plays_like_an_experiment_with_the_same_seed(one: RemoteExperiment) -> None:
    twin = lt.Experiment(lt.UCB(lt.AnyTime(0.3)), ["A", "B", "C"], horizon=500, seed=3)
    for turn in range(12):
        trial, expected = one.ask(), twin.ask()
        assert (trial.id, trial.arm, trial.by) == (*expected, "policy")
        assert one.tell(trial.id, turn % 2) == Told(1, 0, 0)
        twin.tell(trial.id, turn % 2)
    several = one.ask(3)
    assert [(trial.id, trial.arm) for trial in several] == [tuple(trial) for trial in twin.ask(3)]
    assert one.tell([(several[0].id, 1.0), (str(several[1].id), True)]) == Told(2, 0, 0)
    assert one.tell({np.int64(several[0].id): 1.0}) == Told(0, 1, 0)
    twin.tell(13, 1.0), twin.tell(14, 1.0)
    state = one.state()
    assert isinstance(state, lt.Experiment)
    assert one.to_json() == twin.to_json(told=False) == state.to_json(told=False)
    assert one.summary()["tries"] == twin.pulls
    assert [event["kind"] for event in one.journal(28)] == ["tell", "tell"]


def test_everything_else(service: Service, one: RemoteExperiment) -> None:
    assert (list(service), service.names(), "one" in service) == (["one"], ["one"], True)
    assert service.create("one", "ucb:anytime:0.3", ["A", "B", "C"], seed=3, horizon=500).name == "one"
    assert [one.pause(), one.pause(), one.resume(), one.add("D"), one.add("D")] == [1, 0, 1, 1, 0]
    assert (one.retire("C"), one.summary()["retired"]) == (True, ["C"])
    assert [one.set({"fallback": "B"}), one.set({"fallback": "B"})] == [True, False]
    assert one.summary()["settings"] == {"fallback": "B"}
    with pytest.raises(lt.BadInput, match=r"^settings must be an object"):
        one.set("fallback")  # type: ignore[arg-type]
    trial = one.ask(key="k", unit="u", about={"page": 1})
    assert one.ask(key="k", unit="u", about={"page": 1}) == trial
    asked = one.journal()[-1]
    assert (asked["key"], asked["unit"], asked["about"]) == ("k", "u", {"page": 1})
    assert one.stop()
    assert ("one of http" in repr(one), "Service: http" in repr(service)) == (True, True)


def test_a_linear_experiment(service: Service) -> None:
    two = service.create("two", "linucb:lighttailed:0.2", dim=2, seed=1)
    twin = lt.LinearExperiment(lt.LinearUCB(lt.LinearLightTailed(0.2)), 2, seed=1)
    rows = np.array([[1.0, 0.0], [0.6, 0.8]])
    for _ in range(3):
        trial, expected = two.ask(actions=rows, labels=["A", "B"]), twin.ask(rows, ["A", "B"])
        assert (trial.id, trial.arm, trial.action) == expected
        two.tell(trial.id, 0.5)
        twin.tell(trial.id, 0.5)
    state = two.state()
    assert isinstance(state, lt.LinearExperiment)
    assert state.estimate.tolist() == twin.estimate.tolist()


# Refusals


@pytest.mark.parametrize(
    ("call", "status", "field"),
    [
        (lambda s: s["no"].ask(), 404, "name"),
        (lambda s: s["a/../b"].summary(), 404, "path"),
        (lambda s: s["one"].tell(99, 1.0), 404, "id"),
        (lambda s: s["one"].tell("x", 1.0), 404, "id"),
        (lambda s: s["one"].tell(1, 0.5), 409, "reward"),
        (lambda s: s["one"].ask(2, key="k"), 409, "count"),
        (lambda s: s.create("one", "ts:1", ["A", "B"]), 409, "policy"),
        (lambda s: s.create("two", "ts:1", ["A"]), 400, "arms"),
        (lambda s: s["one"].retire("X"), 400, "arm"),
    ],
)
def test_the_server_refuses_with_the_four_parts(
    service: Service, one: RemoteExperiment, call: Any, status: int, field: str
) -> None:
    one.ask(key="k")
    one.tell(1, 1.0)
    with pytest.raises(lt.BadInput) as caught:
        call(service)
    error = caught.value
    assert isinstance(error, Refused)
    assert (error.status, error.field) == (status, field)
    assert str(error).startswith(f"{field} must be {error.allowed}")
    assert str(error).endswith(str(error.shown)) or "but " in str(error)
    assert set(error.to_dict()) == {"field", "value", "allowed", "message"}


def test_a_refusal_says_the_same_as_the_desk(service: Service, one: RemoteExperiment) -> None:
    from desks import desk_of

    one.ask()
    with pytest.raises(lt.BadInput) as caught:
        one.tell(7, 1.0)
    with desk_of() as desk:
        desk.ask()
        with pytest.raises(lt.BadInput) as expected:
            desk.tell([("7", 1.0)])
    assert caught.value.to_dict() == expected.value.to_dict()


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda one: one.ask(0), "count"),
        (lambda one: one.ask(2, unit="u"), "count"),
        (lambda one: one.ask(key=""), "key"),
        (lambda one: one.ask(about={"a": math.nan}), "about.a"),
        (lambda one: one.ask(actions=[[math.nan]]), "body"),
        (lambda one: one.ask(labels=[object()]), "body"),
        (lambda one: one.tell(1, math.nan), "reward"),
        (lambda one: one.tell(1, "1"), "reward"),
        (lambda one: one.tell([]), "the number of rewards"),
        (lambda one: one.tell("1"), "rewards"),
        (lambda one: one.tell(1.5, 1.0), "id"),
        (lambda one: one.add(None), "arm"),
        (lambda one: one.journal(-1), "after"),
    ],
)
def test_what_is_wrong_is_refused_before_it_is_sent(
    front: Front, one: RemoteExperiment, call: Any, field: str
) -> None:
    sent = len(front.seen)
    with pytest.raises(lt.BadInput) as caught:
        call(one)
    assert caught.value.field == field
    assert len(front.seen) == sent


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"url": "ftp://x"}, "url"),
        ({"url": "127.0.0.1:8710"}, "url"),
        ({"url": "http://"}, "url"),
        ({"url": "http://a:b"}, "url"),
        ({"url": "http://a?b"}, "url"),
        ({"url": "http://user:pass@a"}, "url"),
        ({"url": "http://a b"}, "url"),
        ({"url": "http://a\r\nX: y"}, "url"),
        ({"url": None}, "url"),
        ({"key": "a\r\nX: y"}, "key"),
        ({"key": ""}, "key"),
        ({"key": 7}, "key"),
        ({"timeout": 0}, "timeout"),
        ({"patience": -1}, "patience"),
    ],
)
def test_a_wrong_address_is_refused(given: dict[str, Any], field: str) -> None:
    for connect in (lt.connect, lt.connect_async):
        with pytest.raises(lt.BadInput) as caught:
            connect(**{"url": "http://localhost", **given})
        assert caught.value.field == field
    if field == "key" and given["key"]:
        assert str(given["key"]) not in str(caught.value)  # a key is not repeated
    with pytest.raises(lt.BadInput, match="at_once"):
        lt.connect_async("http://localhost", at_once=0)


def test_keys(tmp_path: Path) -> None:
    kept = tmp_path / "keys.json"
    key, weak = add_key(kept, "anna", "manage"), add_key(kept, "shop", "ask")
    with front_of(keys=Keys(kept)) as front:
        for given, status in ((None, 401), ("wrong", 401), (weak, 403)):
            with lt.connect(front.url, given, FOREVER) as service, pytest.raises(Refused) as caught:
                service.create("one", "ts:1", ["A", "B"])
            assert (caught.value.status, caught.value.field) == (status, "Authorization")
        with lt.connect(front.url, key, FOREVER) as service:
            service.create("one", "ts:1", ["A", "B"])
        with lt.connect(front.url, weak, FOREVER) as service:
            assert service["one"].ask().id == 1


# Tries


@pytest.mark.parametrize("fault", ["lost", "dropped", "cut", 502, 503, 504])
def test_what_is_not_answered_is_sent_again_and_counts_once(
    front: Front, one: RemoteExperiment, times: Times, journal: MemoryJournal, fault: Any
) -> None:
    front.faults += [fault] * 3
    trial = one.ask()
    front.faults += [fault] * 3
    told = one.tell(trial.id, 1.0)
    assert told in (Told(1, 0, 0), Told(0, 1, 0))
    assert (told.repeated == 1) == (fault in ("dropped", "cut"))
    front.faults += [fault]
    assert (trial.id, one.ask().id) == (1, 2)
    front.faults += [fault]
    assert one.add("D") in (True, False)
    kinds = [event["kind"] for event in events_of(journal)]
    assert kinds == ["create", "ask", "tell", "ask", "add"]
    asks = [json.loads(body) for _, path, body in front.seen if path.endswith("ask")]
    assert [len({ask["key"] for ask in asks}), len(asks)] == [2, 4 + 2]  # a key per call, not per try
    assert len(asks[0]["key"]) == 32


def test_the_pauses_grow_and_are_not_all_alike(front: Front, one: RemoteExperiment, times: Times) -> None:
    front.faults += [503] * 9
    one.ask()
    usual = [0.05 * 2.0**n for n in range(9)]
    assert len(times.pauses) == 9
    for pause, longest in zip(times.pauses, usual, strict=True):
        assert 0.5 * min(longest, 2.0) <= pause <= min(longest, 2.0)
    assert len({pause / longest for pause, longest in zip(times.pauses[:5], usual, strict=False)}) == 5


def test_retry_after_is_heard(front: Front, one: RemoteExperiment, times: Times) -> None:
    front.later, front.faults = "7", [503, 503]
    one.ask()
    assert times.pauses == [7.0, 7.0]
    front.later, front.faults = "Wed, 21 Oct 2026 07:28:00 GMT", [503]
    one.ask()
    assert times.pauses[2] < 1.0


def test_patience_ends(front: Front, times: Times) -> None:
    service = lt.connect(front.url, timeout=FOREVER, patience=5.0)
    front.faults = [503] * 99
    with pytest.raises(Unreachable, match="no server of lighttail: it has answered 503"):
        service.names()
    assert 2.9 < times.now <= 5.0
    front.faults = ["lost"] * 99
    with pytest.raises(
        Unreachable, match=r"has not answered within 5 seconds \(RemoteDisconnected.*sent again"
    ):
        service.names()
    front.faults = []
    front.later = "60"
    front.faults = [503]
    pauses = len(times.pauses)
    with pytest.raises(Unreachable):
        service.names()  # 60 seconds are more than there are: it does not wait for nothing
    assert len(times.pauses) == pauses
    service.close()


def test_the_servers_own_503_is_its_sentence(times: Times) -> None:
    from journals import FailingJournal

    journal = FailingJournal()
    with front_of(journal) as front, lt.connect(front.url, None, FOREVER, 3.0) as service:
        one = service.create("one", "ts:1", ["A", "B"])
        journal.broken = True
        with pytest.raises(Refused, match="the disk is full") as caught:
            one.ask()
        assert caught.value.status == 503
        assert len(times.pauses) >= 2  # Retry-After: 1
        journal.broken = False
        assert one.ask().id == 1


def test_nobody_is_there(times: Times) -> None:
    with (
        kept_port() as port,
        lt.connect(f"http://127.0.0.1:{port}", patience=1.0) as service,
        pytest.raises(Unreachable, match="ConnectionRefused"),
    ):
        service["one"].ask()
    assert len(times.pauses) > 3
    with lt.connect(f"http://{'a' * 300}", patience=1.0) as service, pytest.raises(Unreachable):
        service.names()


@pytest.mark.parametrize("fault", ["html", 301, 404, 500])
def test_what_is_no_server_of_ours_is_said(front: Front, service: Service, fault: Any) -> None:
    front.faults = [fault]
    with pytest.raises(Unreachable, match="is no server of lighttail"):
        service.names()
    assert service.names() == []


def test_a_server_that_hangs_is_left_and_asked_again(front: Front, journal: MemoryJournal) -> None:
    """Real time: the first try ends after half a second, and its trial is the one that is found. A further
    try may end so, too, if the machine is busy."""
    with lt.connect(front.url, timeout=FOREVER) as service:
        service.create("one", "ts:1", ["A", "B"])
    with lt.connect(front.url, timeout=0.5, patience=FOREVER) as service:
        front.faults = ["hang"]
        assert service["one"].ask().id == 1
    assert len(events_of(journal)) == 2


@pytest.mark.parametrize(
    ("wish", "more"),
    [(lambda one: one.forecast(10.0), "patience=1"), (lambda one: one.summary(), "timeout=0.6")],
    ids=["a forecast", "another request"],
)
def test_an_answer_that_takes_too_long_is_said_to_and_how_to_wait_longer(
    front: Front, wish: Any, more: str
) -> None:
    """Real time: half a second, of which another request may use 0.3 seconds per try."""
    with lt.connect(front.url, timeout=0.3, patience=0.5) as service:
        front.faults = ["hang"] * 99
        with pytest.raises(TookTooLong) as caught:
            wish(service["one"])
    said = rf"the answer of http://\S+ took longer than 0.[35] seconds; .* lt.connect\(url, {more}\)"
    assert re.match(said, str(caught.value))
    assert isinstance(caught.value, Unreachable)


# Connections


def test_connections_are_kept_and_opened_again(front: Front, service: Service, one: RemoteExperiment) -> None:
    for _ in range(10):
        one.ask()
    assert front.links == 1
    front.faults = ["lost"]  # as if an idle connection had been closed
    one.ask()
    assert front.links == 2
    service.close()
    one.ask()
    assert front.links == 3


def test_threads_share_a_service(front: Front, one: RemoteExperiment, journal: MemoryJournal) -> None:
    gate = threading.Barrier(8)

    def work(_: int) -> list[int]:
        gate.wait()
        ids = [one.ask().id for _ in range(6)]
        one.tell([(id, 1.0) for id in ids])
        return ids

    with ThreadPoolExecutor(8) as pool:
        found = [id for ids in pool.map(work, range(8)) for id in ids]
    assert sorted(found) == list(range(1, 49))
    assert front.links <= 9
    assert len(events_of(journal)) == 1 + 96


def test_coroutines(front: Front) -> None:
    async def main() -> Any:
        async with lt.connect_async(front.url, timeout=FOREVER) as service:
            one = await service.create("one", "ts:0.5", ["A", "B"], seed=1)
            unawaited = one.ask()
            assert unawaited.__qualname__ == "AsyncExperiment.ask"  # named in a warning
            unawaited.close()

            async def visit(n: int) -> Any:
                trial = await one.ask(key=f"k{n}", about={"n": n})
                assert isinstance(trial, Served)
                return trial.id, await one.tell(trial.id, 1.0)

            found = await asyncio.gather(*(visit(n) for n in range(20)))
            assert len(await service["one"].ask(2)) == 2
            with pytest.raises(lt.BadInput, match=r"^id must be"):
                await one.tell([(99, 1.0)])
            changed = [await one.pause(), await one.resume(), await one.add("C"), await one.retire("B")]
            state, text = await one.state(), await one.to_json()
            summary, events = await one.summary(), await one.journal(40)
            changed += [await one.set({"fallback": "C"}), await one.stop()]
            return found, changed, state, text, summary, events, await service.names()

    found, changed, state, text, summary, events, names = asyncio.run(main())
    assert sorted(id for id, _ in found) == list(range(1, 21))
    assert {told for _, told in found} == {Told(1, 0, 0)}
    assert (changed, names, state.to_json(told=False)) == ([True] * 6, ["one"], text)
    assert (summary["pulls"], summary["retired"], events[-1]["kind"]) == (22, ["B"], "retire")


# The real server


def test_a_real_server_in_its_own_process(tmp_path: Path) -> None:
    with (
        served(store=tmp_path / "a.db") as server,
        lt.connect(f"http://127.0.0.1:{server.port}", timeout=FOREVER) as service,
    ):
        one = service.create("one", "ucb:anytime:0.5", ["control", "blue"], settings={"fallback": "control"})
        trial = one.ask(unit="visitor é", about={"page": "/"})
        assert one.tell(trial.id, True) == Told(1, 0, 0)
        assert one.add("green")
        assert one.retire("blue")
        with pytest.raises(Refused, match="has it") as caught:
            one.add("red"), one.retire("control")
        assert caught.value.status == 409
        assert (one.summary()["arms"], one.summary()["retired"]) == (
            ["control", "blue", "green", "red"],
            ["blue"],
        )
        assert isinstance(one.state(), lt.Experiment)
        with pytest.raises(lt.BadInput, match="either add or retire"):
            one._post("arms", {})
        with pytest.raises(lt.BadInput, match="either add or retire"):
            one._post("arms", {"add": "x", "retire": "y"})
        assert server.end()[0] == 0
