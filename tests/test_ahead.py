"""Playing while the events before are being written: nobody is answered too early, a commit that fails takes
back all that was played on top of it, and threads are there while there is work."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from desks import Clock, book_of, desk_of, events_of, replayed
from journals import AheadJournal
from served import FOREVER
from test_desk import refused
from test_live_faults import reconciled, retried, reward_of

from lighttail.live import Office, open_journal
from lighttail.live import desk as desk_module
from lighttail.live.awaiting import AsyncDesk
from lighttail.live.journal import Snapshot
from lighttail.live.requests import Ticket, Told, ask_for, tell_of
from lighttail.live.worker import Timers
from lighttail.live.writer import Past


def played(desk: Any, count: int) -> None:
    """Wait until so many requests were played and wait for their commit."""
    while len(desk._group.tickets) < count:
        time.sleep(0.001)


def held(journal: AheadJournal, desk: Any, request: Any) -> Ticket:
    """The ticket of a request whose commit has begun and does not end before `journal.gate` is set."""
    journal.gate.clear()
    journal.begun.clear()
    ticket: Ticket = desk.submit(request)
    journal.begun.wait()
    return ticket


def test_requests_are_played_during_a_commit_and_answered_after_their_own() -> None:
    journal = AheadJournal()
    with desk_of(journal) as desk:
        first = held(journal, desk, ask_for())
        others = [desk.submit(ask_for(key=f"k{n}")) for n in range(50)]
        played(desk, 50)
        refused(lambda: others[0].result(0.01), 503, "timeout")
        assert len(events_of(journal)) == 1
        journal.gate.set()
        assert [ticket.result()[0].id for ticket in (first, *others)] == list(range(1, 52))
        assert journal.commits == [1, 50]
        book = book_of(desk)
        assert (desk.commits, desk.written) == (2, 51)
    assert replayed(journal) == book


def asked_in_flight(journal: AheadJournal, most: int = 6) -> list[Any]:
    """The answers to requests that are about trials whose events are still being written."""
    with desk_of(journal, settings={"sticky": True}) as desk:
        desk.ask(unit="a", key="before")
        first = held(journal, desk, ask_for(key="k", unit="u"))
        wishes = [
            ask_for(key="k", unit="u"),  # the same trial
            ask_for(key="k", unit="v"),  # refused: another unit
            ask_for(key="k2", unit="u"),  # the same arm
            tell_of([(2, 0.5)]),
            tell_of([(2, 0.5)]),  # known
            tell_of([(2, 0.25)]),  # refused
        ]
        others = []
        for count, wish in enumerate(wishes[:most], 1):  # one round of play for each
            others.append(desk.submit(wish))
            played(desk, count)
        journal.gate.set()
        found: list[Any] = [first.result()]
        for ticket in others:
            try:
                found.append(ticket.result())
            except Exception as error:
                found.append(getattr(error, "field", repr(error)))
        return found


def test_events_that_are_being_written_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a desk that looks into the journal alone gives a key a second trial."""
    first, again, unit, stuck, told, known, wrong = asked_in_flight(AheadJournal())
    assert first == again
    assert (unit, wrong) == ("unit", "reward")
    assert (stuck[0].arm, stuck[0].by) == (first[0].arm, "sticky")
    assert (told, known) == (Told(1, 0, 0), Told(0, 1, 0))
    plain = Past.__init__
    monkeypatch.setattr(Past, "__init__", lambda self, journal, groups=(): plain(self, journal))
    first, again = asked_in_flight(AheadJournal(), 1)
    assert first != again


def test_a_commit_that_fails_takes_back_what_was_played_on_top_of_it() -> None:
    broken = [False]
    journal = AheadJournal(lambda: broken[0])
    with desk_of(journal) as desk:
        desk.ask(3)
        before = book_of(desk)
        broken[0] = True
        first = held(journal, desk, ask_for(key="k"))
        others = [desk.submit(wish) for wish in (ask_for(key="k"), tell_of([(4, 1.0)]), tell_of([(1, 1.0)]))]
        played(desk, 3)
        journal.gate.set()
        for ticket in (first, *others):
            refused(ticket.result, 503, "journal", "the disk is full")
        broken[0] = False
        assert book_of(desk) == before
        refused(lambda: desk.tell([(4, 1.0)]), 404, "id")
        assert desk.ask(key="k")[0].id == 4
        assert desk.tell([(1, 1.0)]) == Told(1, 0, 0)
        book = book_of(desk)
    assert replayed(journal) == book


def test_commits_that_fail_now_and_then_lose_nothing_and_count_nothing_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every fifth commit fails, for eight callers that send again what was refused; snapshots are frequent
    and never ahead of the journal."""
    monkeypatch.setattr(desk_module, "SNAPSHOT_EVERY", 7)
    rng = random.Random(4)
    journal = AheadJournal(lambda: rng.random() < 0.2)
    asked: dict[str, int] = {}
    told: dict[int, float] = {}
    with desk_of(journal, policy="ts:0.5") as desk:

        def work(thread: int) -> None:
            for turn in range(25):
                key = f"{thread}-{turn}"
                (trial,) = retried(lambda key=key: desk.ask(key=key))
                asked[key] = trial.id
                if turn % 3:
                    retried(lambda id=trial.id: desk.tell([(id, reward_of(id))]))
                    told[trial.id] = reward_of(trial.id)
                kept = journal.snapshot("one")
                assert kept is None or kept.seq <= journal.head("one")[0]

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        book = book_of(desk)
    assert len(journal.commits) > desk.commits > 20  # some have failed
    reconciled(journal, asked, told)
    assert replayed(journal) == book


def test_a_mistake_of_ours_on_top_of_a_commit_hits_one_request_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from lighttail.live.play import Round

    right = Round._tell

    def wrong(self: Round, tell: Any) -> Told:
        if tell.rewards[0][2] == 13.0:
            self.book.player.pulls += 1  # half of the work
            raise RuntimeError("unlucky")
        return right(self, tell)

    monkeypatch.setattr(Round, "_tell", wrong)
    journal = AheadJournal()
    with desk_of(journal) as desk:
        desk.ask(3)
        first = held(journal, desk, ask_for())
        tickets = [desk.submit(tell_of([(id, reward)])) for id, reward in ((1, 1.0), (2, 13.0), (3, 1.0))]
        journal.gate.set()
        assert first.result()[0].id == 4
        assert tickets[0].result() == tickets[2].result() == Told(1, 0, 0)
        refused(tickets[1].result, 500, "server", "unlucky")
        assert desk.tell([(2, 1.0)]) == Told(1, 0, 0)
        book = book_of(desk)
    assert replayed(journal) == book


def test_what_was_accepted_is_written_before_a_desk_closes() -> None:
    journal = AheadJournal()
    with desk_of(journal) as desk:
        first = held(journal, desk, ask_for())
        others = [desk.submit(ask_for()) for _ in range(5)]
        closing = threading.Thread(target=desk.close)
        closing.start()
        journal.gate.set()
        closing.join()
        assert [ticket.result()[0].id for ticket in (first, *others)] == [1, 2, 3, 4, 5, 6]
        refused(desk.ask, 503, "server")
    kept = journal.snapshot("one")
    assert kept is not None
    assert kept.seq == journal.head("one")[0] == 7


@pytest.mark.parametrize(("often", "last"), [(40, 51), (100, 0)])
def test_a_book_that_took_long_to_add_up_is_kept_though_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, often: int, last: int
) -> None:
    """A server that is killed again and again must not replay a whole journal at every start."""
    journal = AheadJournal()
    with desk_of(journal) as desk:
        desk.ask(50)
        book = book_of(desk)
    journal.keep("one", Snapshot(0, "of a format that is too old"))
    monkeypatch.setattr(desk_module, "SNAPSHOT_EVERY", often)
    office = Office(journal)
    assert book_of(office.desk("one")) == book
    kept = journal.snapshot("one")
    assert kept is not None
    assert kept.seq == last
    office.close()


def test_windows_that_fill_commits_are_closed_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_module, "MOST_CLOSED", 10)
    monkeypatch.setattr("lighttail.live.play.MOST_CLOSED", 10)
    journal, clock = AheadJournal(), Clock()
    with desk_of(journal, clock, settings={"window": 60, "default": 0.25}) as desk:
        desk.ask(35)
        clock.now += 60
        assert desk.summary()["open"] == 0
        assert max(journal.commits[1:]) <= 10
        book = book_of(desk)
    assert replayed(journal) == book


def test_windows_that_cannot_be_closed_are_closed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit fails while more windows are over than one commit closes."""
    monkeypatch.setattr(desk_module, "MOST_CLOSED", 10)
    monkeypatch.setattr("lighttail.live.play.MOST_CLOSED", 10)
    broken = [False]
    journal, clock = AheadJournal(lambda: broken[0]), Clock()
    with desk_of(journal, clock, settings={"window": 60, "default": 0.25}) as desk:
        desk.ask(35)
        clock.now += 60
        broken[0] = True
        refused(desk.ask, 503, "journal")
        assert len(events_of(journal)) == 36
        assert not desk_module.NOBODY.rows
        broken[0] = False
        assert desk.summary()["open"] == 0
        book = book_of(desk)
    assert replayed(journal) == book


def test_the_desk_waits_longer_after_each_commit_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_module, "FIRST_PAUSE", 0.01)
    broken = [False]
    journal, clock = AheadJournal(lambda: broken[0]), Clock()
    with desk_of(journal, clock, settings={"window": 60, "default": 0.25}) as desk:
        desk.ask()
        clock.now += 60
        broken[0] = True
        refused(desk.tick, 503, "journal")
        while len(journal.commits) < 6:
            time.sleep(0.01)
        assert desk._pause >= 0.01 * 2**3
        broken[0] = False
        assert desk.summary()["open"] == 0
        desk.tick()
        assert desk._again is None


def test_a_desk_that_only_reads_after_a_failure_comes_to_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_module, "FIRST_PAUSE", FOREVER)  # it does not read by itself
    broken = [True]
    with desk_of(AheadJournal(lambda: broken[0])) as desk:
        refused(desk.ask, 503, "journal")
        assert desk._again is not None
        assert desk.summary()["pulls"] == 0
        desk.tick()
        assert desk._again is None


# Threads, and experiments that share commits


def threads_of(*names: str) -> int:
    return sum(thread.name.startswith(names) for thread in threading.enumerate())


def test_threads_end_when_there_is_no_work_and_windows_end_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_module, "IDLE", 0.05)
    monkeypatch.setattr("lighttail.live.writer.IDLE", 0.05)
    before = threads_of("desk of", "writer")
    office = Office(open_journal(str(tmp_path / "a.db")))
    for n in range(20):
        window = {"settings": {"window": 0.4, "default": 0.5}} if n == 7 else {}
        office.create(f"e{n}", "evensplit", ["A", "B"], **window)[0].ask()
    while threads_of("desk of", "writer") > before:
        time.sleep(0.01)
    desk = office.desk("e7")
    while desk.written < 2:  # nobody asks, and the window ends
        time.sleep(0.01)
    assert office.desk("e3").ask()[0].id == 2
    assert office.desk("e7").summary()["events"]["default"] == 1
    office.close()
    assert threads_of("desk of e") == 0


class NoThreads:
    """Lets the first `times` starts of threads fail whose names begin with `prefix`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, prefix: str, times: int = 1) -> None:
        self.left, plain = times, threading.Thread.start

        def start(thread: threading.Thread) -> None:
            if self.left and thread.name.startswith(prefix):
                self.left -= 1
                raise RuntimeError("can't start new thread")
            plain(thread)

        monkeypatch.setattr(threading.Thread, "start", start)


@pytest.mark.parametrize("which", ["desk of", "writer"])
def test_a_thread_that_cannot_be_started_refuses_and_is_started_later(
    which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = AheadJournal()
    with desk_of(journal) as desk:
        failing = NoThreads(monkeypatch, which)
        refused(lambda: desk.submit(ask_for()).result(FOREVER), 503, "server", "can't start new thread")
        assert failing.left == 0
        assert desk.waiting == 0
        assert desk.submit(ask_for()).result(FOREVER)[0].id == 1
        book = book_of(desk)
    assert replayed(journal) == book


def test_a_desk_without_a_thread_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    with desk_of(AheadJournal()) as desk:
        NoThreads(monkeypatch, "desk of")
        closing = threading.Thread(target=desk.close, daemon=True)
        closing.start()
        closing.join(FOREVER)
        assert not closing.is_alive()
        refused(desk.ask, 503, "server", "closing")


def test_coroutines_are_refused_if_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    async def asked(desk: Any) -> Any:
        return await asyncio.wait_for(AsyncDesk(desk).answer(ask_for()), FOREVER)

    with desk_of(AheadJournal()) as desk:
        NoThreads(monkeypatch, "desk of")
        refused(lambda: asyncio.run(asked(desk)), 503, "server", "can't start new thread")
        assert asyncio.run(asked(desk))[0].id == 1


def window_ends(desk: Any) -> bool:
    """Whether the window of the first trial ends although nobody asks."""
    end = time.monotonic() + FOREVER
    while desk.written < 2 and time.monotonic() < end:
        time.sleep(0.01)
    return bool(desk.written == 2)


@pytest.mark.parametrize("which", ["timers", "desk of"])
def test_windows_end_although_a_thread_could_not_be_started(
    which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The desk leaves because its clock stands still, and a timer is to wake it; the clock goes on when the
    thread of the timers could not be started, or when no desk can be started."""
    monkeypatch.setattr(desk_module, "IDLE", 0.05)
    monkeypatch.setattr(desk_module, "FIRST_PAUSE", 0.05)
    clock = Clock()
    with desk_of(AheadJournal(), clock, settings={"window": 0.4, "default": 0.5}) as desk:
        failing = NoThreads(monkeypatch, which, 1 if which == "timers" else 0)
        desk.ask()
        while failing.left or desk._worker.thread is not None:
            time.sleep(0.01)
        if which == "desk of":
            failing.left = 1
        clock.now += 1.0
        assert window_ends(desk)
        assert failing.left == 0


def test_a_mistake_of_one_function_does_not_end_the_timers() -> None:
    timers, called = Timers(), threading.Event()
    timers.set(0.0, lambda: 1 // 0)  # type: ignore[arg-type, return-value]
    timers.set(0.01, called.set)
    assert called.wait(FOREVER)


def test_a_timer_that_is_over_before_the_desk_has_left_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_module, "IDLE", 0.05)
    plain = Timers.set

    def slow(self: Timers, seconds: float, wake: Any) -> None:
        plain(self, seconds, wake)
        if threading.current_thread().name.startswith("desk of"):
            time.sleep(seconds + 0.05)  # the desk waits for a processor

    monkeypatch.setattr(Timers, "set", slow)
    with desk_of(AheadJournal(), time.time, settings={"window": 0.3, "default": 0.5}) as desk:
        desk.ask()
        assert window_ends(desk)


def test_experiments_of_a_file_share_commits(tmp_path: Path) -> None:
    """One experiment whose rows do not fit hits no other."""
    journal = open_journal(str(tmp_path / "a.db"))
    office = Office(journal)
    desks = [office.create(f"e{n}", "evensplit", ["A", "B"])[0] for n in range(4)]
    for desk in desks:
        desk.ask()
    traced: list[str] = []
    link = journal._link  # type: ignore[attr-defined]
    with journal._lock:  # type: ignore[attr-defined]
        tickets = [desk.submit(ask_for()) for desk in desks]
        link.execute("UPDATE experiments SET seq = 9 WHERE name = 'e2'")
        link.set_trace_callback(traced.append)
        while any(desk._flying is None for desk in desks):
            time.sleep(0.001)
    for n, ticket in enumerate(tickets):
        if n == 2:
            refused(ticket.result, 503, "journal", "another desk")
        else:
            assert ticket.result()[0].id == 2
    link.set_trace_callback(None)
    assert sum(line.startswith("COMMIT") for line in traced) <= 4
    link.execute("UPDATE experiments SET seq = 2 WHERE name = 'e2'")
    assert desks[2].summary()["pulls"] == 1
    with journal._lock:  # type: ignore[attr-defined]
        tickets = [desk.submit(ask_for()) for desk in desks]
        while any(desk._flying is None for desk in desks):
            time.sleep(0.001)
        traced.clear()
        link.set_trace_callback(traced.append)
    assert [ticket.result()[0].id for ticket in tickets] == [3, 3, 2, 3]
    assert sum(line.startswith("COMMIT") for line in traced) <= 2  # the first may have gone ahead alone
    link.set_trace_callback(None)
    office.close()
