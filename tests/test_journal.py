"""The contract of a journal, held by every kind of journal: in memory, SQLite, and a real PostgreSQL."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from journals import Opener, new_schema

import lighttail as lt
from lighttail.checks import BadInput
from lighttail.live.errors import Refused
from lighttail.live.journal import (
    NO_DIGEST,
    PAGE,
    Event,
    Hint,
    Journal,
    Snapshot,
    digest_after,
    event_of,
)
from lighttail.live.postgres import PostgresJournal
from lighttail.live.sqlite import SqliteJournal


def first(name: str = "one") -> Event:
    return {"seq": 1, "time": 0.0, "kind": "create", "name": name}


def ask(seq: int, id: int, **more: Any) -> Event:
    return {"seq": seq, "time": float(seq), "kind": "ask", "id": str(id), "arm": "A", "by": "policy", **more}


def tell(seq: int, id: int, reward: float = 1.0) -> Event:
    return {"seq": seq, "time": float(seq), "kind": "tell", "id": str(id), "reward": reward}


def append(journal: Journal, expected: int, *events: Event, name: str = "one") -> None:
    with journal.turn(name) as turn:
        turn.append(expected, list(events))


def events(journal: Journal, name: str = "one", after: int = 0) -> list[Event]:
    return [event_of(body) for body, _ in journal.lines(name, after)]


class TestEveryJournal:
    def test_events_come_back_in_their_order_and_as_they_were(self, journal: Journal) -> None:
        made = [
            first(),
            ask(2, 1, key="ключ\x01\U0001f600", unit="a\nb'\"\\"),
            tell(3, 1, 0.1),
            tell(4, 1, 1e100),
        ]
        assert journal.create("one", made[0])
        append(journal, 1, made[1])
        append(journal, 2, *made[2:])
        assert events(journal) == made
        assert events(journal, after=2) == made[2:]
        assert [event_of(body) for body, _ in journal.lines("one", 1, 2)] == made[1:3]
        assert events(journal, after=4) == []
        with journal.turn("one") as turn:
            assert (turn.last, list(turn.events(0)), turn.bodies(4, 9)) == (4, made, [])

    def test_a_name_is_taken_once(self, journal: Journal) -> None:
        assert journal.create("one", first())
        assert not journal.create("one", {**first(), "time": 9.0})
        assert journal.create("two", first("two"))
        assert journal.names() == ["one", "two"]
        assert events(journal) == [first()]

    def test_experiments_do_not_mix(self, journal: Journal) -> None:
        for name in ("one", "two"):
            journal.create(name, first(name))
            append(journal, 1, ask(2, 1, key="k", unit="u"), name=name)
        append(journal, 2, tell(3, 1), name="two")
        assert [len(events(journal, name)) for name in ("one", "two")] == [2, 3]
        with journal.turn("one") as turn:
            assert (
                len(turn.bodies_with(["k"]))
                == len(turn.bodies_of_units(["u"]))
                == len(turn.bodies_of(1))
                == 1
            )

    def test_an_unexpected_number_is_refused_and_nothing_is_written(self, journal: Journal) -> None:
        journal.create("one", first())
        append(journal, 1, ask(2, 1))
        for expected in (0, 1, 3):
            with pytest.raises(Refused, match=r"^expected must be 2, the number of the last event") as caught:
                append(journal, expected, ask(expected + 1, 2))
            assert caught.value.status == 409
        with pytest.raises(ValueError, match="without gaps"):
            append(journal, 2, ask(3, 2), ask(5, 3))
        assert len(events(journal)) == 2

    def test_a_turn_that_fails_leaves_nothing(self, journal: Journal) -> None:
        journal.create("one", first())

        def failing() -> None:
            with journal.turn("one") as turn:
                turn.append(1, [ask(2, 1), ask(3, 2)])
                raise KeyError("somewhere else")

        with pytest.raises(KeyError):
            failing()
        assert len(events(journal)) == 1
        append(journal, 1, ask(2, 1))
        assert len(events(journal)) == 2

    def test_keys_units_and_trials_are_found(self, journal: Journal) -> None:
        journal.create("one", first())
        made = [
            ask(2, 1, key="k", unit="u"),
            ask(3, 2, key="k"),
            ask(4, 3, key="other", unit="u"),
            {**ask(5, 4, unit="w"), "by": "holdout"},
            tell(6, 2),
            tell(7, 1),
        ]
        append(journal, 1, *made)
        with journal.turn("one") as turn:
            assert [event_of(body)["seq"] for body in turn.bodies_with(["k", "nothing"])] == [2, 3]
            assert [event_of(body)["seq"] for body in turn.bodies_of_units(["u", "w", "x"])] == [2]
            assert [event_of(body)["seq"] for body in turn.bodies_of(1)] == [2, 7]
            assert turn.bodies_of(9) == turn.bodies_with([]) == turn.bodies_of_units([]) == []
            many = [f"key {n}" for n in range(1_500)]
            assert [event_of(body)["seq"] for body in turn.bodies_with([*many, "other"])] == [4]

    def test_a_hint_changes_no_answer(self, journal: Journal) -> None:
        journal.create("one", first())
        append(journal, 1, ask(2, 1, key="a"), ask(3, 2, key="b"), ask(4, 3, key="a"), tell(5, 1))

        def answers(hint: Hint | None) -> list[list[str]]:
            with journal.turn("one", hint) as turn:
                found = [turn.bodies(after, most) for after in (0, 1, 2, 5) for most in (2, PAGE)]
                wishes = (["a"], ["b"], ["a", "b"], ["a", "c"], ["c"], ["b", "c"])
                return [*found, *(turn.bodies_with(keys) for keys in wishes)]

        plain = answers(None)
        assert list(map(len, plain)) == [2, 5, 2, 4, 2, 3, 0, 0, 2, 1, 3, 2, 0, 1]
        for hint in (Hint(2, {"a"}), Hint(0, set()), Hint(5, {"a", "b"}), Hint(1, {"c"})):
            assert list(map(sorted, answers(hint))) == list(map(sorted, plain))

    def test_digests_are_those_of_all_lines_so_far(self, journal: Journal) -> None:
        journal.create("one", first())
        append(journal, 1, ask(2, 1), ask(3, 2))
        append(journal, 3, tell(4, 1))
        digest = NO_DIGEST
        for body, kept in journal.lines("one"):
            digest = digest_after(digest, body)
            assert kept == digest
        with journal.turn("one") as turn:
            assert turn.digest == digest

    def test_an_unknown_experiment_is_refused(self, journal: Journal) -> None:
        for call in (lambda: journal.lines("no"), lambda: append(journal, 0, name="no")):
            with pytest.raises(Refused) as caught:
                call()
            assert (caught.value.status, caught.value.field) == (404, "name")

    def test_a_newer_snapshot_replaces_the_older_one(self, journal: Journal) -> None:
        journal.create("one", first())
        assert journal.snapshot("one") is None
        journal.keep("one", Snapshot(1, '{"a": 1}'))
        journal.keep("one", Snapshot(7, '{"a": 2}'))
        assert journal.snapshot("one") == Snapshot(7, '{"a": 2}')
        journal.keep("one", Snapshot(7, '{"a": 3}'))  # of a newer version, which could not read the first
        assert journal.snapshot("one") == Snapshot(7, '{"a": 3}')

    def test_everything_is_there_when_it_is_opened_again(self, opener: Opener) -> None:
        journal = opener()
        journal.create("one", first())
        append(journal, 1, ask(2, 1))
        journal.keep("one", Snapshot(2, "{}"))
        journal.close()
        again = opener()
        assert (again.names(), len(events(again)), again.snapshot("one")) == (["one"], 2, Snapshot(2, "{}"))
        append(again, 2, tell(3, 1))
        again.close()

    def test_turns_of_threads_follow_one_another(self, journal: Journal) -> None:
        """Every thread appends after the last event that it sees; none is refused, and none is lost."""
        journal.create("one", first())

        def work() -> None:
            for _ in range(5):
                with journal.turn("one") as turn:
                    turn.append(turn.last, [ask(turn.last + 1, turn.last)])

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [event["seq"] for event in events(journal)] == list(range(1, 22))


# SQLite


def test_a_second_server_on_one_file_is_refused_and_told_of_postgresql(tmp_path: Path) -> None:
    one = SqliteJournal(tmp_path / "a.db")
    (tmp_path / "link.db").symlink_to(tmp_path / "a.db")
    for path in (tmp_path / "a.db", tmp_path / "link.db"):
        with pytest.raises(
            lt.BadInput, match=r"^store must be a file that no other server uses.*postgresql://"
        ):
            SqliteJournal(path)
    SqliteJournal(tmp_path / "b.db").close()  # control
    one.close()
    SqliteJournal(tmp_path / "a.db").close()  # once the first has ended


def test_a_reader_does_not_stop_the_writer(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "a.db")
    journal.create("one", first())
    reader = sqlite3.connect(f"{(tmp_path / 'a.db').as_uri()}?mode=ro", uri=True)
    reader.execute("BEGIN")
    assert reader.execute("SELECT COUNT(*) FROM events").fetchone() == (1,)
    append(journal, 1, ask(2, 1))
    assert reader.execute("SELECT COUNT(*) FROM events").fetchone() == (1,)  # it sees its own moment
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM events")
    reader.close()
    assert len(events(journal)) == 2
    journal.close()


@pytest.mark.parametrize("size", [100, 3_000])
def test_nothing_is_found_by_reading_all_events(tmp_path: Path, size: int) -> None:
    """Steps of SQLite's machine, counted by hundreds, and a negative control that reads everything."""
    journal = SqliteJournal(tmp_path / "a.db")
    journal.create("one", first())
    append(journal, 1, *(ask(2 + n, 1 + n, key=f"k{n}", unit=f"u{n}") for n in range(size)))
    steps = [0]

    def step() -> int:
        steps[0] += 1
        return 0

    def cost(look: Any) -> int:
        steps[0] = 0
        assert len(look()) == 3
        return steps[0]

    with journal.turn("one") as turn:
        journal._link.set_progress_handler(step, 100)
        assert cost(lambda: turn.bodies_with(["k7", "k8", "k9"])) < 10
        assert cost(lambda: turn.bodies_of_units(["u7", "u8", "u9"])) < 10
        assert cost(lambda: [*turn.bodies_of(7), *turn.bodies_of(8), *turn.bodies_of(9)]) < 10
        assert cost(lambda: turn.bodies(size - 2, 99)) < 10
        everything = cost(lambda: turn._found("body LIKE '%\"k7\"%' OR seq IN (3, 4)"))  # type: ignore[attr-defined]
        assert (everything > 50) == (size == 3_000)
    journal.close()


def test_every_commit_waits_for_the_disk(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "a.db")
    modes = [journal._link.execute(f"PRAGMA {name}").fetchone() for name in ("journal_mode", "synchronous")]
    assert modes == [("wal",), (2,)]
    journal.close()


@pytest.mark.parametrize("content", [b"hello" * 100, b""])
def test_a_file_of_somebody_else_is_not_touched(tmp_path: Path, content: bytes) -> None:
    foreign = tmp_path / "foreign.db"
    if content:
        foreign.write_bytes(content)
    else:
        link = sqlite3.connect(foreign)
        link.execute("CREATE TABLE mine (x)")
        link.close()
    before = foreign.read_bytes()
    with pytest.raises(lt.BadInput, match=r"^store must be ") as caught:
        SqliteJournal(foreign)
    assert "\n" not in str(caught.value)
    assert foreign.read_bytes() == before


@pytest.mark.parametrize("path", ["", "a\0b", "/no/such/folder/a.db", 3])
def test_a_bad_path_is_refused(path: Any) -> None:
    with pytest.raises(lt.BadInput, match=r"^store must be "):
        SqliteJournal(path)


def test_an_sqlite_without_its_json_functions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Without(sqlite3.Connection):
        def execute(self, query: str, *given: Any) -> sqlite3.Cursor:
            return super().execute(query.replace("json_each", "no_such_table"), *given)

    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: real(*given, factory=Without, **named))
    with pytest.raises(BadInput, match="store must be of an SQLite with its JSON functions, but is of"):
        SqliteJournal(tmp_path / "a.db")
    assert not list(tmp_path.iterdir())


def test_a_snapshot_that_was_damaged_is_not_used(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "a.db")
    journal.create("one", first())
    journal.keep("one", Snapshot(1, '{"a": 1}'))
    journal._link.execute("UPDATE snapshots SET text = ?", ('{"a": 2}',))
    assert journal.snapshot("one") is None
    journal.close()


# PostgreSQL


def test_an_address_where_no_database_answers_is_refused() -> None:
    from lighttail.live.postgres import PostgresJournal

    with pytest.raises(lt.BadInput, match=r"^store must be the address of a PostgreSQL database") as caught:
        PostgresJournal("postgresql://nobody@127.0.0.1:1/nothing")
    assert "\n" not in str(caught.value)


def test_a_hint_sees_what_another_server_wrote_while_the_turn_was_waited_for(postgres: str) -> None:
    address = new_schema(postgres)
    mine, other = PostgresJournal(address), PostgresJournal(address)
    mine.create("one", first())
    found: list[Any] = []

    def wait() -> None:
        with other.turn("one", Hint(1, {"k"})) as turn:
            with patch.object(turn, "_found", None):  # all is there: nothing more is asked for
                found.extend([turn.last, turn.bodies(1, PAGE), turn.bodies_with(["k"])])
            turn.append(3, [ask(4, 2, key="k")])  # what came with the turn is old now
            found.extend([len(turn.bodies(1, PAGE)), len(turn.bodies_with(["k"]))])

    thread = threading.Thread(target=wait)
    with mine.turn("one") as turn:
        thread.start()
        waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
        while not mine._read(waiting):
            time.sleep(0.01)
        turn.append(1, [ask(2, 1, key="k"), tell(3, 1)])
    thread.join()
    lines = [body for body, _ in mine.lines("one")]
    assert found == [3, lines[1:3], lines[1:2], 3, 2]
    mine.close()
    other.close()
