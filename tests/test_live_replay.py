"""The journal is the only truth: any beginning of it gives the state at that time, to the bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from desks import Clock, book_of, desk_of, events_of, replay, replayed, text_of

from lighttail.live import checking
from lighttail.live.book import FORMAT, Book
from lighttail.live.checking import Checked, check_journal
from lighttail.live.errors import Damaged
from lighttail.live.journal import Event, Journal
from lighttail.live.memory import MemoryJournal
from lighttail.live.sqlite import SqliteJournal

EVERYTHING = {
    "shares": {"A": 0.1},
    "holdout": {"arm": "B", "share": 0.2},
    "sticky": True,
    "window": 50,
    "default": 0.1,
    "late": "amend",
    "fallback": "C",
}
PLAIN = {"window": 50, "default": 0.1}
CASES = [
    *(
        (policy, EVERYTHING)
        for policy in ("ucb:anytime:0.3", "ucb:lighttailed:0.2", "ts:0.5", "betats", "klucb")
    ),
    *((policy, EVERYTHING) for policy in ("egreedy:5:0.1", "inflated:0.5", "imed", "evensplit")),
    *((policy, PLAIN) for policy in ("se:lighttailed:0.1", "etc:3", "exp3ix:loss:1")),
]


def played(journal: Journal, policy: str, settings: dict[str, Any], steps: int = 40) -> dict[int, str]:
    """The books after each step of some life of an experiment, by the number of the last event."""
    clock = Clock()
    books = {}
    with desk_of(journal, clock, policy, settings=settings) as desk:
        for step in range(steps):
            clock.now += 7 * (step % 4)
            if step == 20:
                desk.pause()
            if step == 25:
                desk.resume()
            desk.ask(key=f"k{step}", unit=f"u{step % 17}")
            last = desk.summary()
            asked = sum(last["asked"].values())
            id = asked if step % 3 == 1 else 1 + step // 2  # a new trial, or one that may be closed
            if step % 3:
                desk.tell([(id, float(id % 3))])
            books[desk.summary()["seq"]] = book_of(desk)
    return books


@pytest.mark.parametrize(("policy", "settings"), CASES)
def test_any_beginning_of_a_journal_gives_the_state_of_that_time(
    policy: str, settings: dict[str, Any]
) -> None:
    journal = MemoryJournal()
    books = played(journal, policy, settings)
    events = events_of(journal)
    for length in range(1, len(events) + 1):
        book = replay(events[:length])
        assert book.seq == length
        if length in books:
            assert text_of(book) == books[length]
    assert len(books) > 20
    assert {event["kind"] for event in events} >= {"ask", "tell", "default", "pause"}
    if settings is EVERYTHING:
        assert {event.get("by") for event in events} >= {"policy", "floor", "holdout", "sticky", "fallback"}
        assert any(event["kind"] == "amend" for event in events)
    else:
        assert any(event["kind"] == "late" for event in events)


@pytest.mark.parametrize(("policy", "settings"), [CASES[0], CASES[1], CASES[2], CASES[-1]])
def test_a_replay_may_begin_at_any_snapshot(policy: str, settings: dict[str, Any]) -> None:
    journal = MemoryJournal()
    played(journal, policy, settings)
    events = events_of(journal)
    whole = text_of(replay(events))

    def story(id: int) -> list[Event]:
        return [event for event in events if event.get("id") == str(id)]

    for length in range(1, len(events), 7):
        book = Book.restored(json.loads(json.dumps(replay(events[:length]).to_plain())))
        assert book is not None
        for event in events[length:]:
            book.enter(event, story)
        assert text_of(book) == whole


def test_a_journal_that_was_changed_is_told_apart() -> None:
    """Negative control: another reward, another arm, another seed."""
    journal = MemoryJournal()
    played(journal, "ts:0.5", PLAIN)
    events = events_of(journal)
    whole = replay(events)
    assert whole.astray == 0
    told = next(place for place, event in enumerate(events) if event["kind"] == "tell")
    other = [*events[:told], {**events[told], "reward": 9.0}, *events[told + 1 :]]
    assert text_of(replay(other)) != text_of(whole)
    seeded = [{**events[0], "seed": 4}, *events[1:]]
    assert replay(seeded).astray > 0


def test_a_replay_follows_the_journal_where_the_policy_would_choose_another_arm() -> None:
    """As on a machine whose last bits differ: the counts are those of the journal."""
    journal = MemoryJournal()
    played(journal, "ts:0.5", {})
    events = events_of(journal)
    book = replay([{**events[0], "seed": 4}, *events[1:]])
    assert book.summary()["tries"] == replay(events).summary()["tries"]
    assert book.summary()["means"] == replay(events).summary()["means"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda events: events[1:], "the first event must create the experiment"),
        (lambda events: [*events[:3], *events[4:]], "event 4 is missing"),
        (lambda events: [events[0], {**events[1], "kind": "dance"}], "which this version does not know"),
        (lambda events: [events[0], {**events[1], "id": "7"}], "asks for trial 7 after trial 0"),
        (
            lambda events: [events[0], {"seq": 2, "time": 1.0, "kind": "tell", "id": "1", "reward": 1.0}],
            "not open",
        ),
    ],
)
def test_events_that_do_not_fit_are_named(change: Any, sentence: str) -> None:
    journal = MemoryJournal()
    played(journal, "ts:0.5", {}, 4)
    with pytest.raises(Damaged, match=sentence):
        replay(change(events_of(journal)))


def test_a_journal_that_lost_all_its_events_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = MemoryJournal()
    played(journal, "ts:0.5", {}, 4)
    check_journal(journal, "one")
    monkeypatch.setattr(checking, "checked_events", lambda journal, name: iter(()))
    with pytest.raises(Damaged, match="event 1 of one is missing: there is no event"):
        check_journal(journal, "one")


# Snapshots


def test_a_desk_continues_from_its_snapshot_and_from_none(journal: Journal) -> None:
    with desk_of(journal) as desk:
        desk.ask(20)
        desk.tell([(id, 1.0) for id in range(1, 11)])
        book = book_of(desk)
    kept = journal.snapshot("one")
    assert kept is not None
    assert kept.seq == 31
    with desk_of(journal) as desk:
        assert book_of(desk) == book == replayed(journal)
        assert desk._saved == 31  # it began there
        desk.ask(3)
        book = book_of(desk)
    with desk_of(WithoutSnapshots(journal)) as desk:  # type: ignore[arg-type]
        assert book_of(desk) == book
        assert desk._saved == 0


class WithoutSnapshots:
    """A journal that has lost its snapshots."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def snapshot(self, name: str) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.journal, name)


def test_snapshots_are_kept_every_so_often_and_do_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lighttail.live.desk.SNAPSHOT_EVERY", 100)
    journal = MemoryJournal()
    seqs, sizes = set(), []
    with desk_of(journal, horizon=None) as desk:
        for _ in range(30):
            told = [(one.id, 1.0) for one in desk.ask(20)]
            desk.tell(told)
            desk.tick()
            kept = journal.snapshot("one")
            if kept is not None and kept.seq not in seqs:
                seqs.add(kept.seq)
                sizes += [len(kept.text)] if kept.seq % 40 == 1 else []  # 20 trials may be open at others
    assert len(seqs) >= 8
    assert len(sizes) >= 3
    assert max(sizes) < min(sizes) + 100


@pytest.mark.parametrize(
    "change", [{"format": 99}, {"order": "other"}, {"player": None}, {"open": {"id": "x"}}]
)
def test_a_snapshot_of_another_version_is_ignored(change: dict[str, Any]) -> None:
    journal = MemoryJournal()
    with desk_of(journal) as desk:
        desk.ask(5)
        book = book_of(desk)
    kept = journal.snapshot("one")
    assert kept is not None
    journal.keep("one", kept._replace(text=json.dumps({**json.loads(kept.text), **change})))
    with desk_of(journal) as desk:
        assert book_of(desk) == book


def test_snapshots_with_other_fields_have_another_format() -> None:
    """A snapshot of the same format is held against a replay, so that a field more would look like damage.
    Whoever changes these fields gives FORMAT a new number."""
    with desk_of(MemoryJournal()) as desk:
        plain = json.loads(book_of(desk))
    parts = plain, plain["hearing"], plain["open"], plain["player"], plain["player"]["rule"]
    assert FORMAT == 6
    assert [" ".join(sorted(part)) for part in parts] == [
        "alarm apart astray counts first format hearing last names noted open order paused player rechosen "
        "retired seq settings stopped time",
        "asked counts least most place returns reward took",
        "apart id memo place time",
        "pulls rng rule taken",
        "arms heard note replaced retired total tried",
    ]


# Checks


def test_a_whole_journal_passes_and_a_changed_line_does_not(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "a.db")
    played(journal, "ts:0.5", PLAIN, 12)
    events = events_of(journal)
    trials = sum(event["kind"] == "ask" for event in events)
    closed = sum(event["kind"] in ("tell", "default") for event in events)
    assert check_journal(journal, "one") == Checked(len(events), trials, trials - closed, 0)
    link = journal._link
    (body,) = link.execute("SELECT body FROM events WHERE seq = 5").fetchone()
    link.execute("UPDATE events SET body = replace(body, '\"time\":1', '\"time\":2') WHERE seq = 5")
    with pytest.raises(Damaged, match="event 5 of one was changed"):
        check_journal(journal, "one")
    link.execute("UPDATE events SET body = ? WHERE seq = 5", (body,))
    assert check_journal(journal, "one").events == len(events)
    link.execute("DELETE FROM events WHERE seq = 7")
    with pytest.raises(Damaged, match="event 7 of one was changed, or an event before it is missing"):
        check_journal(journal, "one")
    journal.close()
