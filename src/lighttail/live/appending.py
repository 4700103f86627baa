"""How rows get into a SQLite file: in one statement per commit.

Python hands the processor to another thread whenever SQLite works, and must wait until the other threads give
it back. A commit of several statements (begin, note the last event, insert, commit) would wait after each of
them while callers are busy. A view whose triggers do all of this makes them one statement, which SQLite
commits by itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import chain
from typing import Any

from lighttail.live.errors import conflict
from lighttail.live.journal import Batch, Row

Step = tuple[str, tuple[Any, ...]]  # a statement and its values
MOST_ROWS = 256  # per statement
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, MOST_ROWS)
ELSEWHERE = "another event is the last one"
# A row of the view is a head (`after` is given), an event (`seq` is given) or nothing, which fills up a size.
VIEW = f"""
PRAGMA temp_store = MEMORY;
CREATE TEMP VIEW appended AS
    SELECT number, seq AS after, digest AS before, NULL AS seq, NULL AS trial, NULL AS key, NULL AS unit,
        NULL AS body, NULL AS digest FROM experiments;
CREATE TEMP TRIGGER append_head INSTEAD OF INSERT ON appended WHEN NEW.after IS NOT NULL BEGIN
    UPDATE experiments SET seq = NEW.trial, digest = NEW.digest
        WHERE number = NEW.number AND seq = NEW.after AND digest = NEW.before;
    SELECT RAISE(ABORT, '{ELSEWHERE}') WHERE changes() != 1;
END;
CREATE TEMP TRIGGER append_event INSTEAD OF INSERT ON appended WHEN NEW.seq IS NOT NULL BEGIN
    INSERT INTO events
        VALUES (NEW.number, NEW.seq, NEW.trial, NEW.key, NEW.unit, NEW.body, NEW.digest);
END;
"""


def _statement(size: int) -> str:
    """The statement that appends so many rows of one experiment. Its values: the number of the experiment,
    the event and the digest after which the rows come, the last event and digest, and the rows."""
    rows = (", ".join(f"?{6 * row + more}" for more in range(6, 12)) for row in range(size))
    events = ", ".join(f"(?1, NULL, NULL, {six})" for six in rows)
    return f"INSERT INTO appended VALUES (?1, ?2, ?3, NULL, ?4, NULL, NULL, NULL, ?5), {events}"


STATEMENTS = {
    rows: (_statement(size), (None,) * 6 * (size - rows))
    for before, size in zip((0, *SIZES), SIZES, strict=False)
    for rows in range(before + 1, size + 1)
}


def steps(number: int, batch: Batch) -> Iterator[Step]:
    """The statements that append a batch to the experiment with this number."""
    _, after, digest, rows = batch
    head: tuple[Any, ...] = (number, after, digest, rows[-1].seq, rows[-1].digest)
    for first in range(0, len(rows), MOST_ROWS):
        some: list[Row] = rows[first : first + MOST_ROWS]
        statement, filled = STATEMENTS[len(some)]
        yield statement, (*head, *chain.from_iterable(some), *filled)
        head = (number, None, None, None, None)  # the first statement has moved on


def taken(link: sqlite3.Connection, found: list[Step]) -> None:
    """Take steps: one step commits by itself, and several begin a transaction, which the caller ends. Raises
    Refused (409) if an event after which a batch comes is not the last one of its experiment."""
    if len(found) > 1 and not link.in_transaction:
        link.execute("BEGIN IMMEDIATE")
    try:
        for statement, values in found:
            link.execute(statement, values)
    except sqlite3.IntegrityError as error:
        if str(error) != ELSEWHERE:
            raise
        raise conflict("expected", values[1], "the number of the last event", found="is not") from None
