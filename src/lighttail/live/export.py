"""The trials of a journal as a table, one row per trial, for people who analyse an experiment elsewhere.

Trials are read in pages of ids and written at once, so that the memory does not grow with the journal. The
table is the one at the moment when the export began, also while servers go on."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import IO, Any

from lighttail.checks import file_path, one_of
from lighttail.live.errors import Damaged
from lighttail.live.journal import Event, Reader, event_of
from lighttail.system.files import whole_file

PAGE_OF_TRIALS = 5_000
ENDINGS = (".parquet", ".csv")
COLUMNS = {  # the columns, and their types in Parquet
    "id": "int64",
    "arm": "string",
    "by": "string",
    "unit": "string",
    "key": "string",
    "asked": "float64",
    "reward": "float64",
    "told": "float64",
    "how": "string",
    "counted": "float64",
    "about": "string",
    "action": "string",
}
STARTS = "=+-@\t\r\n'\uff1d\uff0b\uff0d\uff20"  # some programs read the wide signs as = + - @
WHOLE = re.compile(r"-[0-9]+")
Rows = Iterator[dict[str, list[Any]]]


def export_trials(journal: Reader, name: str, out: Any) -> int:
    """Write the trials of an experiment to a file that ends with .parquet or .csv; returns how many.

    The file takes its name when it is complete: a failure leaves no file, or the old one.

    id, arm, by, unit, key, about: as in the event `ask`. asked, told: seconds since 1970. reward: the last
    reward that came; None while the trial is open. how: the kind of event that brought it ("tell", "default",
    "late" or "amend"). counted: the reward that counts, which is the default if a late one is ignored.
    action: the vector that a linear policy chose, as JSON. In CSV, a text that a spreadsheet could run as a
    formula begins with an apostrophe (`plain_text`).
    """
    path = file_path("out", out)
    write = WRITERS[one_of("the ending of out", path.suffix.lower(), ENDINGS)]
    last, _ = journal.head(name)
    with whole_file(path, durable=True) as file:
        return write(file, _pages(journal, name, last))


def _pages(journal: Reader, name: str, last: int) -> Rows:
    """The columns of the trials that event `last` or an event before it asked for, page by page."""
    first = 1
    while found := journal.stories(name, first, first + PAGE_OF_TRIALS - 1):
        events = (event_of(row.body) for row in found if row.seq <= last)
        rows = [_row(list(story)) for _, story in groupby(events, key=lambda event: event["id"])]
        if not rows:
            break
        for id, row in enumerate(rows, first):
            if row["id"] != id:
                raise Damaged(f"trial {id} of {name} is missing")
        yield {column: [row.get(column) for row in rows] for column in COLUMNS}
        first += PAGE_OF_TRIALS


def _row(story: list[Event]) -> dict[str, Any]:
    """The row of a trial from its events, of which the first asks."""
    asked, *heard = story
    if asked["kind"] != "ask":
        raise Damaged(f"event {asked['seq']} has a reward for trial {asked['id']}, which nobody asked for")
    row = {column: asked.get(column) for column in ("by", "unit", "key")}
    row |= {"id": int(asked["id"]), "arm": str(asked["arm"]), "asked": asked["time"]}
    if "about" in asked:
        row["about"] = json.dumps(asked["about"], ensure_ascii=False)
    if "actions" in asked:
        labels = asked.get("labels")
        place = asked["arm"] if labels is None else labels.index(asked["arm"])
        row["action"] = json.dumps(asked["actions"][place])
    if heard:
        end = heard[-1]
        row |= {"reward": end["reward"], "told": end["time"], "how": end["kind"]}
        row["counted"] = next(one["reward"] for one in reversed(heard) if one["kind"] != "late")
    return row


def plain_text(text: str | None) -> str | None:
    """A text that no spreadsheet takes for a formula. A text that begins with one of the signs that may start
    one, or with an apostrophe, gets an apostrophe before it: whoever removes one apostrophe from the front of
    every text that has one gets the text of the journal. A whole number is no formula.

    >>> [plain_text(text) for text in ("blue", "=1+2", "-7", "-cmd", "'tis")]
    ['blue', "'=1+2", '-7', "'-cmd", "''tis"]
    """
    if text and text[0] in STARTS and not WHOLE.fullmatch(text):
        return f"'{text}"
    return text


def _write_csv(file: IO[bytes], pages: Rows) -> int:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    table, count = csv.writer(text), 0
    table.writerow(COLUMNS)
    for columns in pages:
        safe = (list(map(plain_text, cells)) if COLUMNS[name] == "string" else cells
                for name, cells in columns.items())  # fmt: skip
        table.writerows(zip(*safe, strict=True))
        count += len(columns["id"])
    text.detach()  # flushes, and leaves the file open
    return count


def _write_parquet(file: IO[bytes], pages: Rows) -> int:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError('Parquet needs pyarrow: pip install "lighttail[studies]", or use .csv') from None
    schema, count = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in COLUMNS.items()]), 0
    with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as table:
        for columns in pages:
            table.write_table(pyarrow.table(columns, schema=schema))
            count += len(columns["id"])
    return count


WRITERS: dict[str, Callable[[IO[bytes], Rows], int]] = {".csv": _write_csv, ".parquet": _write_parquet}
