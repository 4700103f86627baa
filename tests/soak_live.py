"""A service under load whose servers are killed again and again; afterwards the totals agree to the unit.

    python tests/soak_live.py --minutes 30 --seed 1
    python tests/soak_live.py --minutes 30 --store postgresql://user@host/database    # two servers
    python tests/soak_live.py --faults 20    # two servers, on a PostgreSQL of its own

With --faults, this PostgreSQL is killed so many times, and the network to it is cut so many times, besides
the kills of the servers.

Clients ask and tell over HTTP through `lighttail.connect` and send again what is not answered; some trials
are never told, so that their window closes them, and some of these are told late. A manager pauses, resumes,
adds and retires arms. `kill -9` comes at random moments. Then:

- every answer that a client got is in the journal, once, and nothing is in it that no client sent;
- asked = told + closed by the window + open, to the unit;
- a replay of the journal is what a server knows, to the bit."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from databases import Database, Network
from desks import book_of, replayed
from killed_desk import reward_of
from served import Server, kept_port

import lighttail as lt
from lighttail.live import Office, open_journal, open_reader
from lighttail.live.checking import check_journal
from lighttail.live.journal import Event, event_of

SETTINGS = {"shares": {"A": 0.05}, "sticky": True, "fallback": "A", "late": "amend"}
WINDOW, DEFAULT = 2.0, 0.125  # no client tells such a reward
PATIENCE = 600.0  # seconds in which a killed server must be back


@dataclass
class Said:
    """What clients sent and were answered: trials by key, rewards by trial, and changes of arms."""

    asked: dict[str, tuple[int, Any]] = field(default_factory=dict)
    told: dict[int, float] = field(default_factory=dict)
    arms: list[tuple[str, str]] = field(default_factory=list)
    kills: int = 0  # of servers, of the database, and cuts of the network to it
    database_kills: int = 0
    cuts: int = 0
    lock: Any = field(default_factory=threading.Lock)


class Fleet:
    """Servers on one store, at ports that stay."""

    def __init__(self, store: str, count: int) -> None:
        self.store, self._kept = store, ExitStack()
        ports = [self._kept.enter_context(kept_port()) for _ in range(count)]
        self.servers = [Server(store=store, port=port, limits=None) for port in ports]
        self.urls = [f"http://127.0.0.1:{server.port}" for server in self.servers]

    def kill(self, which: int) -> None:
        """End a server without a warning, and start it again."""
        server = self.servers[which]
        server.process.kill()
        server.process.communicate()
        self.servers[which] = Server(store=self.store, port=server.port, limits=None)
        assert self.servers[which].port == server.port, self.servers[which].process.communicate()

    def end(self) -> None:
        for server in self.servers:
            status, said = server.end()
            assert status == 0, (status, said)
        self._kept.close()


def client(url: str, number: int, seed: int, said: Said, ended: threading.Event) -> None:
    """Ask and tell until the end. Some trials are told late, and some never."""
    rng, waiting = random.Random(f"{seed} {number}"), list[tuple[float, int]]()
    with lt.connect(url, patience=PATIENCE, timeout=20.0) as service:
        one, turn = service["one"], 0
        while not ended.is_set():
            key, unit = f"{number}-{turn}", f"{number}-{rng.randrange(200)}"
            trial = one.ask(key=key, unit=unit, about={"turn": turn})
            with said.lock:
                said.asked[key] = (trial.id, trial.arm)
            turn += 1
            if rng.random() < 0.8:
                tell(one, trial.id, said)
            elif rng.random() < 0.5:
                waiting.append((time.monotonic() + 2.0 * WINDOW, trial.id))
            while waiting and waiting[0][0] < time.monotonic():
                tell(one, waiting.pop(0)[1], said)


def tell(one: Any, id: int, said: Said) -> None:
    answer = one.tell(id, reward_of(id))
    assert sum(answer) == 1
    with said.lock:
        said.told[id] = reward_of(id)


def manager(url: str, seed: int, said: Said, ended: threading.Event) -> None:
    """Change the experiment now and then. It ends with an experiment that is not paused."""
    rng = random.Random(f"{seed} manager")
    with lt.connect(url, patience=PATIENCE) as service:
        one, arms = service["one"], ["B", "C"]
        while not ended.wait(0.2 + rng.random()):
            one.pause() if rng.random() < 0.5 else one.resume()
            if len(said.arms) < 40 and len(arms) < 4:
                arms.append(f"new {len(said.arms)}")
                one.add(arms[-1])
                said.arms.append(("add", arms[-1]))
            elif len(arms) > 2:
                gone = arms.pop(rng.randrange(len(arms)))
                one.retire(gone)
                said.arms.append(("retire", gone))
        one.resume()


@dataclass
class Around:
    """A database and a network to it that fail, too."""

    database: Database
    network: Network

    @property
    def store(self) -> str:
        return f"postgresql://postgres:@127.0.0.1:{self.network.port}/postgres"

    def harm(self, rng: random.Random, said: Said) -> None:
        """Kill the database, or cut the network, and bring it back."""
        if said.database_kills <= said.cuts:
            self.database.kill(rng.random())
            said.database_kills += 1
        else:
            self.network.cut(silent=rng.random(), gone=rng.random())
            said.cuts += 1


@contextmanager
def faulty() -> Iterator[Around]:
    """A database of its own, behind a network of its own."""
    around = Around(made := Database(), Network(made.socket))
    try:
        yield around
    finally:
        around.network.end()
        made.end()


def soak(
    store: str,
    seed: int,
    enough: Callable[[Said, float], bool],
    clients: int = 6,
    around: Around | None = None,
) -> Said:
    """Play until `enough(said, seconds)`, kill servers and what is around them meanwhile, and end in
    order."""
    said, ended, rng, begun = Said(), threading.Event(), random.Random(seed), time.monotonic()
    fleet = Fleet(store, 2 if "://" in store else 1)
    rails = {**SETTINGS, "window": WINDOW, "default": DEFAULT}
    with lt.connect(fleet.urls[0]) as service:
        service.create("one", "ts:0.5", ["A", "B", "C"], seed=seed, settings=rails)
    errors: list[BaseException] = []

    def work(what: Callable[..., None], *given: Any) -> None:
        try:
            what(*given, seed, said, ended)
        except BaseException as error:
            errors.append(error)

    urls = fleet.urls
    jobs = [(manager, urls[0]), *((client, urls[n % len(urls)], n) for n in range(clients))]
    threads = [threading.Thread(target=work, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    while not enough(said, time.monotonic() - begun) and not errors:
        time.sleep(rng.random() * 3.0)
        if around is None or rng.random() < 0.2:
            fleet.kill(rng.randrange(len(urls)))
            said.kills += 1
        else:
            around.harm(rng, said)
    ended.set()
    for thread in threads:
        thread.join()
    fleet.end()
    if errors:
        raise errors[0]
    return said


def reconcile(store: str, said: Said) -> dict[str, int]:
    """Hold the journal against what clients said. Raises AssertionError if a unit is missing or too many."""
    reader = open_reader(store)
    events: list[Event] = []
    while rows := reader.rows("one", len(events)):
        events += [event_of(row.body) for row in rows]
    checked = check_journal(reader, "one")
    reader.close()
    asks = {event["key"]: event for event in events if event["kind"] == "ask"}
    kinds = Counter(event["kind"] for event in events)
    closed = Counter(event["id"] for event in events if event["kind"] in ("tell", "default"))
    heard = {int(e["id"]): e["reward"] for e in events if e["kind"] in ("tell", "amend")}
    assert len(asks) == kinds["ask"] == checked.trials  # no key twice
    assert {key: (int(e["id"]), e["arm"]) for key, e in asks.items()} == said.asked
    assert all(e["about"] == {"turn": int(key.partition("-")[2])} for key, e in asks.items())
    assert len(heard) == kinds["tell"] + kinds["amend"]  # no reward twice
    assert heard == said.told
    assert set(closed.values()) <= {1}
    assert all(e["reward"] == DEFAULT for e in events if e["kind"] == "default")
    assert kinds["ask"] == kinds["tell"] + kinds["default"] + checked.open
    assert [(e["kind"], e["arm"]) for e in events if e["kind"] in ("add", "retire")] == said.arms
    assert checked.astray == 0
    journal = open_journal(store)
    office = Office(journal, clock=lambda: events[-1]["time"])  # no window ends while we look
    desk = office.desk("one")
    assert book_of(desk) == replayed(journal)
    assert lt.Experiment.from_json(desk.state()).to_json(told=False) == desk.state()
    office.close()
    counts = {kind: kinds[kind] for kind in ("ask", "tell", "default", "amend", "add", "retire", "pause")}
    harm = {"kills": said.kills, "database kills": said.database_kills, "cuts": said.cuts}
    return {"events": len(events), **counts, "open": checked.open, **harm}


def soak_faults(count: int, seed: int, clients: int) -> int:
    """So many kills of a database, and as many cuts of the network to it."""
    with faulty() as around:
        said = soak(around.store, seed, lambda said, _: said.cuts >= count, clients, around)
        print("; ".join(f"{name} {count:,}" for name, count in reconcile(around.store, said).items()))
    return 0


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--minutes", type=float, default=30.0)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--clients", type=int, default=6)
    options.add_argument(
        "--store", help="an empty PostgreSQL database; otherwise a SQLite file that is removed"
    )
    options.add_argument("--faults", type=int, default=0, help="kills of a database, and cuts of its network")
    chosen = options.parse_args()
    if chosen.faults:
        return soak_faults(chosen.faults, chosen.seed, chosen.clients)
    with tempfile.TemporaryDirectory() as folder:
        store = chosen.store or str(Path(folder) / "soak.db")
        said = soak(store, chosen.seed, lambda _, seconds: seconds > 60.0 * chosen.minutes, chosen.clients)
        print("; ".join(f"{name} {count:,}" for name, count in reconcile(store, said).items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
