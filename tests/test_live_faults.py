"""What goes wrong around a service: kills, full disks, cut connections, many callers. The totals agree to
the unit."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from desks import Clock, book_of, desk_of, events_of, replayed
from journals import new_schema
from killed_desk import reward_of

import lighttail as lt
from lighttail.live import Desk, Journal, Office, open_journal
from lighttail.live.checking import check_journal
from lighttail.live.errors import UNAVAILABLE, status_of, unavailable
from lighttail.live.journal import NO_DIGEST, Hint, Turn, rows_of
from lighttail.live.memory import MemoryJournal
from lighttail.live.outlook import outlook
from lighttail.live.postgres import PostgresJournal
from lighttail.live.requests import Ticket, ask_for, tell_of
from lighttail.live.sqlite import SqliteJournal
from lighttail.live.writer import Group

SERVER = Path(__file__).with_name("killed_desk.py")


def retried(call: Callable[[], Any]) -> Any:
    """The answer of a client that sends its request again after 503."""
    while True:
        try:
            return call()
        except lt.BadInput as error:
            if status_of(error) != UNAVAILABLE:
                raise
            time.sleep(0.005)


def reconciled(journal: Journal, asked: dict[str, int], told: dict[int, float]) -> None:
    """Every answer is in the journal once, and nothing is in it that no client sent."""
    events = events_of(journal)
    asks = {event["key"]: int(event["id"]) for event in events if event["kind"] == "ask"}
    tells = {int(event["id"]): event["reward"] for event in events if event["kind"] == "tell"}
    assert len(events) == 1 + len(asks) + len(tells)
    assert (asks, tells) == (asked, told)
    assert check_journal(journal, "one").astray == 0


# Many callers


@pytest.mark.parametrize("servers", [1, 2])
def test_callers_at_once_get_trials_of_their_own_and_rewards_count_once(opener: Any, servers: int) -> None:
    """Each reward is told by two threads; on PostgreSQL, and in memory, two servers share the experiment."""
    journals = [opener()]
    if servers == 2:
        if isinstance(journals[0], SqliteJournal):
            with pytest.raises(lt.BadInput, match="postgresql://"):
                opener()
            journals[0].close()
            return
        journals.append(opener())
    desks = [Office(one).create("one", "ts:0.5", ["A", "B"], seed=1)[0] for one in journals]
    asked: dict[str, int] = {}
    told: dict[int, float] = {}
    counted: Counter[str] = Counter()
    lock = threading.Lock()

    def work(thread: int) -> None:
        for turn in range(12):
            key = f"{thread // 2}-{turn}"  # two threads share each key
            (trial,) = desks[thread % servers].ask(key=key)
            answer = desks[(thread + turn) % servers].tell([(trial.id, reward_of(trial.id))])
            with lock:
                assert asked.setdefault(key, trial.id) == trial.id
                told[trial.id] = reward_of(trial.id)
                counted.update(counted=answer.counted, repeated=answer.repeated)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert counted == {"counted": 48, "repeated": 48}
    books = [book_of(desk) for desk in desks]
    assert set(books) == {replayed(journals[0])}
    summary = desks[0].summary()
    assert (sum(summary["tries"].values()), sum(summary["heard"].values()), summary["open"]) == (48, 48, 0)
    reconciled(journals[0], asked, told)
    for desk in desks:
        desk.close()
    for one in journals:
        one.close()


def test_requests_that_wait_while_a_commit_does_share_the_next_one() -> None:
    journal = GatedJournal()
    with desk_of(journal) as desk:
        first = desk.submit(ask_for())
        journal.begun.wait()
        others = [desk.submit(ask_for(key=f"k{n}")) for n in range(50)]
        journal.gate.set()
        assert [ticket.result()[0].id for ticket in (first, *others)] == list(range(1, 52))
        assert journal.turns == 2


class GatedJournal(MemoryJournal):
    """A journal in memory whose first commit waits for a gate, as for a slow disk."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.gate, self.turns = threading.Event(), threading.Event(), 0

    @contextmanager
    def turn(self, name: str, hint: Hint | None = None) -> Iterator[Turn]:
        with super().turn(name, hint) as turn:
            yield turn
            self.begun.set()
            self.gate.wait()
        self.turns += 1


# Kills


def test_a_server_that_is_killed_loses_nothing_that_it_answered(tmp_path: Path) -> None:
    """kill -9 at random moments; the clients send again what was not answered."""
    store, rng = tmp_path / "a.db", random.Random(5)
    asked: dict[str, tuple[str, str]] = {}
    finished = [0, 0, 0, 0]
    for _ in range(4):
        command = [sys.executable, str(SERVER), str(store), *map(str, finished)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            lines = [server.stdout.readline() for _ in range(rng.randrange(1, 60))]
            time.sleep(rng.random() * 0.02)
            server.kill()
            lines += server.stdout.read().splitlines(keepends=True)
            lines = [line for line in lines if line.endswith("\n")]  # the kill may have cut the last one
        for line in lines:
            what, key, id, word = line.split()
            if what == "asked":
                assert asked.setdefault(key, (id, word)) == (id, word)  # the same key, the same trial
            else:
                assert word == "1"
                thread, turn = map(int, key.split("-"))
                finished[thread] = max(finished[thread], turn + 1)
    journal = SqliteJournal(store)
    events = events_of(journal)
    asks = {e["key"]: (e["id"], e["arm"]) for e in events if e["kind"] == "ask"}
    tells = Counter(e["id"] for e in events if e["kind"] == "tell")
    assert sum(finished) > 20
    assert asked.items() <= asks.items()  # every answer is in the journal
    allowed = {f"{thread}-{turn}" for thread, done in enumerate(finished) for turn in range(done + 1)}
    assert set(asks) <= allowed  # nothing that no client sent
    assert len(events) == 1 + len(asks) + len(tells)  # nothing twice
    answered = {asked[f"{thread}-{turn}"][0] for thread, done in enumerate(finished) for turn in range(done)}
    assert answered <= set(tells)
    assert all(e["reward"] == reward_of(int(e["id"])) for e in events if e["kind"] == "tell")
    assert check_journal(journal, "one") == (len(events), len(asks), len(asks) - len(tells), 0)
    desk = Office(journal).desk("one")
    assert book_of(desk) == replayed(journal)
    desk.close()
    journal.close()


# Disks


def test_a_full_disk_refuses_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "a.db")
    with desk_of(journal, horizon=None) as desk:
        desk.ask(10)
        (pages,) = journal._link.execute("PRAGMA page_count").fetchone()
        journal._link.execute(f"PRAGMA max_page_count = {pages + 2}")
        refusals: list[lt.BadInput] = []
        while not refusals:
            try:
                desk.ask(50)
            except lt.BadInput as error:
                refusals.append(error)
        assert (status_of(refusals[0]), refusals[0].field) == (503, "journal")
        assert "disk is full" in str(refusals[0])
        assert len(events_of(journal)) % 50 == 11  # nothing is half-written
        before = desk.summary()
        with pytest.raises(lt.BadInput, match="disk is full"):
            desk.ask(1000)
        assert desk.summary() == before
        journal._link.execute("PRAGMA max_page_count = 1000000")
        assert desk.tell([(id, 1.0) for id in range(1, 11)]).counted == 10
        assert desk.ask()[0].id == before["pulls"] + 1
        book = book_of(desk)
    assert replayed(journal) == book
    assert journal._link.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    journal.close()


def test_a_damaged_journal_is_said_and_not_played(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "a.db")
    with desk_of(journal) as desk:
        desk.ask(5)
    journal._link.execute("DELETE FROM snapshots")
    journal._link.execute("DELETE FROM events WHERE seq = 3")
    with (
        desk_of(journal) as desk,
        pytest.raises(lt.BadInput, match=r"journal of one is damaged: event 3 is mi"),
    ):
        desk.ask()
    journal.close()


def test_a_read_that_fails_within_a_request_leaves_no_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One read after another fails while three amends are played; the next requests are answered, and the
    journal stays whole."""
    reads, fails = [0], [0]
    found = SqliteJournal._looked

    def failing(self: SqliteJournal, query: str, values: tuple[Any, ...]) -> list[Any]:
        reads[0] += 1
        if reads[0] == fails[0]:
            raise unavailable("disk I/O error")
        return found(self, query, values)

    monkeypatch.setattr(SqliteJournal, "_looked", failing)
    journal, clock = SqliteJournal(tmp_path / "a.db"), Clock()
    settings = {"window": 10, "default": 0, "late": "amend"}
    with desk_of(journal, clock, settings=settings) as desk:
        for turn in range(1, 20):
            ids = [trial.id for trial in desk.ask(3)]
            clock.now += 20
            desk.tick()
            reads[0], fails[0] = 0, turn
            tickets = [Ticket(tell_of([(id, 1.0) for id in ids])), Ticket(ask_for())]
            desk.submit_all(tickets)
            if turn <= 6:  # each story is read twice
                for ticket in tickets:
                    with pytest.raises(lt.BadInput, match="disk I/O error"):
                        ticket.result()
                assert desk.tell([(id, 1.0) for id in ids]).counted == 3
                assert desk.ask()[0].id == ids[-1] + 1
            else:
                assert tickets[0].result().counted == 3
                break
        book = book_of(desk)
    assert turn == 7
    assert replayed(journal) == book
    journal.close()


def test_an_arm_that_joins_later_does_not_change_an_outlook() -> None:
    with desk_of() as desk:
        desk.ask(3)
        assert desk._book is not None
        made = outlook(desk._book, 1000.0)
        desk.add("D")
        assert made.labels == ["A", "B", "C"]


def test_a_group_takes_no_events_with_a_gap() -> None:
    group = Group("one", lambda group: None, 4, NO_DIGEST)
    group.add(rows_of([{"seq": 5, "time": 1.0, "kind": "stop"}], group.end))
    with pytest.raises(ValueError, match="without gaps"):
        group.add(rows_of([{"seq": 7, "time": 1.0, "kind": "stop"}], group.end))
    assert [row.seq for row in group.rows] == [5]


# Databases


def test_connections_that_are_cut_lose_nothing(postgres: str) -> None:
    """The database ends all connections, 25 times, as a cut network does; clients send again."""
    import psycopg

    address = new_schema(postgres)
    journals = [PostgresJournal(address) for _ in range(2)]
    desks = [Office(one).create("one", "ucb:anytime:0.3", ["A", "B"], seed=1)[0] for one in journals]
    asked: dict[str, int] = {}
    told: dict[int, float] = {}
    ended = threading.Event()

    def cut() -> None:
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        with psycopg.connect(postgres, autocommit=True) as link:
            for _ in range(25):
                if ended.wait(0.03):
                    break
                link.execute(f"{query} AND backend_type = 'client backend'")

    def work(thread: int) -> None:
        desk = desks[thread % 2]
        for turn in range(20):
            key = f"{thread}-{turn}"
            (trial,) = retried(lambda key=key: desk.ask(key=key))
            retried(lambda id=trial.id: desk.tell([(id, reward_of(id))]))
            asked[key], told[trial.id] = trial.id, reward_of(trial.id)

    cutter = threading.Thread(target=cut)
    cutter.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
    finally:
        ended.set()
        cutter.join()
    retried(lambda: reconciled(journals[0], asked, told))  # the last cut may come late
    assert {retried(lambda desk=desk: book_of(desk)) for desk in desks} == {replayed(journals[0])}
    for desk in desks:
        desk.close()
    for one in journals:
        one.close()


def test_a_turn_that_is_taken_is_waited_for_once_and_costs_no_connection(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    plain = PostgresJournal._connected
    monkeypatch.setattr(PostgresJournal, "_connected", lambda self: made.append(1) or plain(self))
    monkeypatch.setattr(PostgresJournal, "session", "SET lock_timeout = '50ms'")
    monkeypatch.setattr("lighttail.live.desk.FIRST_PAUSE", 600.0)  # it does not try again by itself
    journal = PostgresJournal(new_schema(postgres))
    office = Office(journal)
    desk, _ = office.create("one", "ts:0.5", arms=["A", "B"], seed=1)
    with journal._link(), journal._link(), journal._link():
        pass
    with journal.turn("one"):
        before = len(made), journal._idle.qsize()
        with pytest.raises(lt.BadInput, match="lock timeout"):
            desk.ask()
        assert (len(made), journal._idle.qsize()) == before
    assert desk.ask()[0].id == 1
    office.close()


@pytest.mark.parametrize("transaction", ["IDLE", "ACTIVE", "INERROR"])
@pytest.mark.parametrize("pipeline", ["OFF", "ABORTED"])
def test_a_connection_is_used_again_only_if_it_is_idle(transaction: str, pipeline: str) -> None:
    import psycopg

    status = psycopg.pq.TransactionStatus[transaction], psycopg.pq.PipelineStatus[pipeline]
    info = SimpleNamespace(transaction_status=status[0], pipeline_status=status[1])
    link = SimpleNamespace(rollback=lambda: None, closed=False, broken=False, info=info)
    reader = PostgresJournal.__new__(PostgresJournal)
    reader._psycopg = psycopg
    assert reader._usable(link) == ((transaction, pipeline) == ("IDLE", "OFF"))


def test_servers_that_create_at_once_make_one_experiment(postgres: str) -> None:
    address = new_schema(postgres)
    gate = threading.Barrier(4)

    def work(_: int) -> tuple[bool, Desk]:
        office = Office(PostgresJournal(address))  # makes the tables, too
        gate.wait()
        desk, made = office.create("one", "ts:0.5", ["A", "B"])
        desk.ask()
        return made, desk

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    assert sorted(made for made, _ in found) == [False, False, False, True]
    assert len(events_of(found[0][1].journal)) == 5
    for _, desk in found:
        desk.close()
        desk.journal.close()


def test_a_store_is_named_by_a_text(tmp_path: Path, postgres: str) -> None:
    for store in ("memory", str(tmp_path / "a.db"), new_schema(postgres)):
        office = Office(open_journal(store))
        assert office.create("one", "evensplit", ["A", "B"])[0].ask()[0].id == 1
        office.close()
