"""`lighttail journal check` and `export`: damage is named, tables are whole, a running service goes on."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from desks import Clock, desk_of, events_of
from journals import new_schema
from test_cli import run

import lighttail as lt
from lighttail.live import Desk, Journal, Office, open_journal, open_reader
from lighttail.live.checking import check_journal
from lighttail.live.errors import Damaged
from lighttail.live.export import COLUMNS, export_trials

WINDOW = {"window": 60, "default": 0.25, "late": "amend"}


def lived(desk: Desk, clock: Clock) -> None:
    """Six trials: told, told by a unit, amended, defaulted, told, and open."""
    desk.ask(key="k")
    desk.ask(unit='a,\n"b"é')
    desk.ask(3)
    desk.tell([(1, 1.0), (2, 0.1)])
    clock.now += 10
    desk.tell([(5, 0.5)])
    clock.now += 60
    desk.ask()
    desk.tell([(3, 0.75)])


@contextmanager
def store_of(path: Path, **more: Any) -> Iterator[Path]:
    """A SQLite journal with a life, whose server is gone."""
    clock = Clock()
    journal = open_journal(str(path))
    with desk_of(journal, clock, settings=WINDOW, **more) as desk:
        lived(desk, clock)
    journal.close()
    yield path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    with store_of(tmp_path / "a.db") as path:
        yield path


def changed(store: Path, *statements: str) -> None:
    with closing(sqlite3.connect(store, isolation_level=None)) as link:
        for statement in statements:
            link.execute(statement)


# check


def test_a_whole_journal_is_said_to_be_whole(
    monkeypatch: pytest.MonkeyPatch, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = store.read_bytes()
    assert run(monkeypatch, "journal", "check", str(store)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "one: 13 events, 6 trials, 1 open",
        "The journal is whole: 1 experiment, 13 events, and a replay adds up to what the service knew.",
    ]
    assert store.read_bytes() == before


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (["UPDATE events SET body = replace(body, '0.1}', '0.2}')"], "event 8 of one was changed"),
        (["UPDATE events SET body = CAST(X'7BFF' AS TEXT) WHERE seq = 4"], "event 4 of one was changed"),
        (["UPDATE events SET body = 'no JSON' WHERE seq = 4"], "event 4 of one was changed"),
        (["UPDATE events SET digest = zeroblob(16) WHERE seq = 3"], "event 3 of one was changed"),
        (
            ["DELETE FROM events WHERE seq = 5"],
            "event 5 of one was changed, or an event before it is missing",
        ),
        (["DELETE FROM events WHERE seq = 13"], "event 13 of one is missing: there were 13 events"),
        (["DELETE FROM events"], "event 1 of one is missing"),
        (
            [
                "UPDATE events SET seq = 99 WHERE seq = 6",
                "UPDATE events SET seq = 6 WHERE seq = 7",
                "UPDATE events SET seq = 7 WHERE seq = 99",
            ],
            "event 6 of one was changed",
        ),
        (
            ["UPDATE events SET key = 'other' WHERE seq = 2"],
            "event 2 of one cannot be found by its trial, key",
        ),
        (["UPDATE events SET trial = 9 WHERE seq = 8"], "event 8 of one cannot be found by its trial"),
        (["UPDATE experiments SET digest = zeroblob(16)"], "event 13 of one is not the one that"),
    ],
)
def test_damage_is_named_by_the_experiment_and_the_event(
    monkeypatch: pytest.MonkeyPatch,
    store: Path,
    capsys: pytest.CaptureFixture[str],
    statements: list[str],
    words: str,
) -> None:
    changed(store, *statements)
    assert run(monkeypatch, "journal", "check", str(store)) == 1
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.count("\n") == 1
    assert said.out.splitlines() == ["one: damaged", "The journal is damaged."]


def test_a_damaged_experiment_hides_no_other_one(
    monkeypatch: pytest.MonkeyPatch, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    office = Office(open_journal(str(store)))
    office.create("two", "ts:1", ["A", "B"], seed=1)[0].ask(3)
    office.close()
    changed(store, "DELETE FROM events WHERE experiment = 1 AND seq = 2")
    assert run(monkeypatch, "journal", "check", str(store)) == 1
    assert "two: 4 events, 3 trials, 3 open" in capsys.readouterr().out


def test_lines_that_were_forged_with_their_digests_do_not_fit(store: Path) -> None:
    """Whoever can write the file can make digests, too; a replay still finds what cannot have been."""
    from lighttail.live.journal import NO_DIGEST, rows_of

    reader = open_reader(str(store))
    events = events_of(reader)  # type: ignore[arg-type]
    events[6]["id"] = "99"
    with closing(sqlite3.connect(store, isolation_level=None)) as link:
        for row in rows_of(events, NO_DIGEST):
            link.execute(
                "UPDATE events SET body = ?, digest = ?, trial = ? WHERE seq = ?",
                (row.body, row.digest, row.trial, row.seq),
            )
        link.execute("UPDATE experiments SET digest = ?", (row.digest,))
    with pytest.raises(Damaged, match=r"^event 7 of one does not fit .* trial 99, which is not open"):
        check_journal(reader, "one")


def test_a_snapshot_that_is_not_what_the_events_add_up_to_is_found(store: Path) -> None:
    from lighttail.live.journal import text_digest

    with closing(sqlite3.connect(store, isolation_level=None)) as link:
        (text,) = link.execute("SELECT text FROM snapshots").fetchone()
        other = text.replace('"last": 6', '"last": 7')
        assert other != text
        link.execute("UPDATE snapshots SET text = ?, digest = ?", (other, text_digest(other)))
    with pytest.raises(Damaged, match="the snapshot after event 13 of one is not"):
        check_journal(open_reader(str(store)), "one")


def test_bytes_that_change_on_the_disk_are_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A byte of the file is changed, at many places: no answer calls another file whole than one that adds up
    to the same, and every answer is plain words."""
    whole = store.read_bytes()
    other = tmp_path / "other.db"
    good = check_journal(open_reader(str(store)), "one")
    found = set()
    for place in range(0, len(whole), 1597):
        other.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        code = run(monkeypatch, "journal", "check", str(other))
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        if code == 0:  # a byte that nothing uses
            assert check_journal(open_reader(str(other)), "one") == good
        else:
            assert said.err.startswith("lighttail: ")
        found.add(code)
        for more in ("-wal", "-shm"):
            other.with_name(other.name + more).unlink(missing_ok=True)
    assert found >= {0, 1}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["check", "missing.db"], "is no file"),
        (["check", "text.db"], "store must be a journal of lighttail"),
        (["check", "other.db"], "store must be a journal of lighttail or a file that does not exist"),
        (["check", "."], "store must be a journal"),
        (["check", ""], "store must be the path of a file"),
        (["check", "memory"], "store must be a file or postgresql://..., but ends with its process"),
        (
            ["check", "postgresql://nobody@127.0.0.1:1/x"],
            "store must be the address of a PostgreSQL database",
        ),
        (["export", "a.db", "two", "--out", "a.csv"], "name must be the name of an experiment"),
        (["export", "a.db", "one", "--out", "a.txt"], "the ending of out must be '.parquet' or '.csv'"),
        (["export", "a.db", "one", "--out", "no/a.csv"], "there is no folder 'no'"),
        (["export", "a.csv", "one", "--out", "a.csv"], "out must be another file than the journal"),
    ],
)
def test_wrong_input_is_one_sentence_and_leaves_no_file(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.db").write_text("not a database, but a text that is longer than the head of one" * 9)
    changed(Path("other.db"), "CREATE TABLE mine (x)")
    for name in ("a.db", "a.csv"):
        with store_of(Path(name)):
            pass
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.suffix != ".lock"}
    assert run(monkeypatch, "journal", *words) in (1, 2)
    said = capsys.readouterr()
    assert sentence in said.err
    assert (said.err.count("\n"), said.out) == (1, "")
    for path, content in before.items():
        assert path.read_bytes() == content
    assert not [path for path in tmp_path.iterdir() if path.suffix in (".csv", ".txt") and path not in before]


# export


def rows_of_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_table_has_a_row_per_trial(
    monkeypatch: pytest.MonkeyPatch, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "trials.csv"
    assert run(monkeypatch, "journal", "export", str(store), "one", "--out", str(out)) == 0
    assert capsys.readouterr() == (f"{out}: 6 trials of one\n", "")
    assert run(monkeypatch, "journal", "export", str(store), "one", "--out", str(out)) == 0
    assert capsys.readouterr().err == f"lighttail: {out} was there already, and was replaced\n"
    rows = rows_of_csv(out)
    assert list(rows[0]) == list(COLUMNS)
    assert [row["id"] for row in rows] == list("123456")
    assert [row["how"] for row in rows] == ["tell", "tell", "amend", "default", "tell", ""]
    assert [row["reward"] for row in rows] == ["1.0", "0.1", "0.75", "0.25", "0.5", ""]
    assert [row["counted"] for row in rows] == [row["reward"] for row in rows]
    assert (rows[0]["key"], rows[0]["unit"], rows[1]["unit"]) == ("k", "", 'a,\n"b"é')
    assert {row["by"] for row in rows} == {"policy"}
    assert [float(row["asked"]) for row in rows] == [1000.0] * 5 + [1070.0]
    assert [row["told"] for row in rows] == ["1000.0", "1000.0", "1070.0", "1070.0", "1010.0", ""]


def test_a_late_reward_is_shown_and_the_default_counts() -> None:
    journal, clock = open_journal("memory"), Clock()
    with desk_of(journal, clock, settings={"window": 60, "default": 0.25}) as desk:
        desk.ask()
        clock.now += 60
        desk.tell([(1, 1.0)])
    from lighttail.live.export import _pages

    (page,) = _pages(journal, "one", journal.head("one")[0])
    assert (page["reward"], page["counted"], page["how"]) == ([1.0], [0.25], ["late"])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_every_journal_gives_the_same_table_while_its_service_runs(
    journal: Journal, tmp_path: Path, ending: str
) -> None:
    import pandas as pd

    out, clock = tmp_path / f"a.{ending}", Clock()
    with desk_of(journal, clock, settings=WINDOW) as desk:
        lived(desk, clock)
        assert export_trials(journal, "one", out) == 6
        desk.ask()  # the service goes on
    table = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    state = events_of(journal)
    assert list(table.columns) == list(COLUMNS)
    assert table["arm"].tolist() == [event["arm"] for event in state if event["kind"] == "ask"][:6]
    assert table["reward"].sum() == 1.0 + 0.1 + 0.75 + 0.25 + 0.5
    assert table["reward"].isna().tolist() == [False] * 5 + [True]


def test_pages_are_put_together_and_end_where_the_export_began(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("lighttail.live.export.PAGE_OF_TRIALS", 7)
    journal = open_journal("memory")
    with desk_of(journal) as desk:
        desk.ask(30)
        last = journal.head("one")[0]
        monkeypatch.setattr(type(journal), "head", lambda self, name: (last, b""))
        desk.tell([(id, 1.0) for id in range(1, 11)])
        desk.ask(5)
        assert export_trials(journal, "one", tmp_path / "a.csv") == 30
    rows = rows_of_csv(tmp_path / "a.csv")
    assert [int(row["id"]) for row in rows] == list(range(1, 31))
    assert {row["reward"] for row in rows} == {""}


def test_no_cell_of_a_csv_file_is_a_formula_and_no_text_is_lost(tmp_path: Path) -> None:
    """Negative control: Parquet, which no spreadsheet runs, keeps the texts as they are."""
    units = [
        "=cmd|' /C calc'!A1",
        "+1+1",
        "-2+3",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "'=1",
        "\uff1d1",
        "-7",
        "a=1",
    ]
    journal = open_journal("memory")
    with desk_of(journal, arms=["=1+2", -7]) as desk:
        for unit in units:
            desk.ask(unit=unit, key=f"@{unit}")
    export_trials(journal, "one", tmp_path / "a.csv")
    rows = rows_of_csv(tmp_path / "a.csv")
    for column in ("arm", "unit", "key"):
        assert all(row[column][0] not in "=+@\t\r\n\uff1d" for row in rows)
        assert {row[column] for row in rows if row[column][0] == "-"} <= {"-7"}
    assert [row["unit"].removeprefix("'") for row in rows] == units
    assert {row["arm"] for row in rows} == {"'=1+2", "-7"}
    export_trials(journal, "one", tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet")["unit"].to_pylist() == units


def test_a_failure_leaves_the_old_file(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    out.write_text("old")
    changed(store, "DELETE FROM events WHERE seq = 4")
    with pytest.raises(Damaged, match="trial 3"):
        export_trials(open_reader(str(store)), "one", out)
    assert out.read_text() == "old"
    assert not list(tmp_path.glob(".a.csv.*"))


def test_both_commands_work_beside_a_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, postgres: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The server holds the lock of its file, or is one of several on a database."""
    for store in (str(tmp_path / "a.db"), new_schema(postgres)):
        office = Office(open_journal(store))
        desk, _ = office.create("one", "linucb:lighttailed:0.2", dim=2)
        desk.ask(actions=[[1.0, 0.0], [0.6, 0.8]], labels=["A", "B"])
        assert run(monkeypatch, "journal", "check", store) == 0
        assert run(monkeypatch, "journal", "export", store, "one", "--out", str(tmp_path / "a.csv")) == 0
        assert "2 events, 1 trial, 1 open" in capsys.readouterr().out
        (row,) = rows_of_csv(tmp_path / "a.csv")
        assert json.loads(row["action"]) == {"A": [1.0, 0.0], "B": [0.6, 0.8]}[row["arm"]]
        desk.ask(actions=[[1.0, 0.0]])
        office.close()


def test_a_reader_cannot_write(tmp_path: Path, postgres: str) -> None:
    import psycopg

    from lighttail.live.postgres import PostgresReader

    address = new_schema(postgres)
    with pytest.raises(lt.BadInput, match="a PostgreSQL database with a journal"):
        PostgresReader(address)  # makes no tables
    open_journal(address).close()
    reader = PostgresReader(address)
    with reader._link() as link, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        link.execute("DELETE FROM lighttail_events")
    reader.close()
