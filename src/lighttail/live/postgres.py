"""The journal in a PostgreSQL database, which several servers on several machines may share.

A turn locks the row of its experiment (`SELECT ... FOR UPDATE`), so that turns of one experiment follow one
another, whatever process they are in. Should two ever overlap, the primary key (experiment, seq) refuses the
second."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from queue import Empty, LifoQueue
from threading import BoundedSemaphore
from typing import Any

from lighttail.checks import refuse
from lighttail.live.errors import unavailable, unknown
from lighttail.live.journal import (
    NO_DIGEST,
    PAGE,
    Event,
    Hint,
    Journal,
    Row,
    Snapshot,
    TableReader,
    Turn,
    text_digest,
)

Query = tuple[str, Any]  # with its values
FORMAT = 1
MOST_LINKS = 8  # connections per server
LOCK = 0x6C747461  # of the tables while they are made
TABLES = """
CREATE TABLE IF NOT EXISTS lighttail_format (format INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS lighttail_experiments (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL UNIQUE, seq BIGINT NOT NULL,
    digest BYTEA NOT NULL);
CREATE TABLE IF NOT EXISTS lighttail_events (
    experiment BIGINT NOT NULL REFERENCES lighttail_experiments, seq BIGINT NOT NULL, trial BIGINT, key TEXT,
    unit TEXT, body TEXT NOT NULL, digest BYTEA NOT NULL, PRIMARY KEY (experiment, seq));
CREATE INDEX IF NOT EXISTS lighttail_events_trial ON lighttail_events (experiment, trial)
    WHERE trial IS NOT NULL;
CREATE INDEX IF NOT EXISTS lighttail_events_key ON lighttail_events (experiment, key) WHERE key IS NOT NULL;
CREATE INDEX IF NOT EXISTS lighttail_events_unit ON lighttail_events (experiment, unit, seq)
    WHERE unit IS NOT NULL;
CREATE TABLE IF NOT EXISTS lighttail_snapshots (
    experiment BIGINT PRIMARY KEY REFERENCES lighttail_experiments, seq BIGINT NOT NULL, text TEXT NOT NULL,
    digest BYTEA NOT NULL);
"""
# The rows are one text of JSON: psycopg takes 50 µs per row to write them as arrays, while all others wait.
WRITE = """WITH written AS (
    INSERT INTO lighttail_events SELECT %(number)s::bigint, seq, trial, key, unit, body, decode(digest, 'hex')
    FROM json_to_recordset(%(rows)s::json)
        AS row (seq bigint, trial bigint, key text, unit text, body text, digest text))
    UPDATE lighttail_experiments SET seq = %(last)s, digest = %(after)s WHERE number = %(number)s"""
_encode = json.JSONEncoder(ensure_ascii=False).encode
# What a hint asks for. It is sent together with the lock, and sees what is there when the lock is got.
NEW, KEYED = 0, 1
HINTED = f"""WITH mine AS (SELECT number FROM lighttail_experiments WHERE name = %(name)s)
    (SELECT {NEW}, seq, body FROM lighttail_events WHERE experiment = (SELECT number FROM mine)
        AND seq > %(after)s ORDER BY seq LIMIT {PAGE})
    UNION ALL SELECT {KEYED}, seq, body FROM lighttail_events WHERE experiment = (SELECT number FROM mine)
        AND key = ANY(%(keys)s)"""
KEEP = """INSERT INTO lighttail_snapshots SELECT number, %s, %s, %s FROM lighttail_experiments WHERE name = %s
    ON CONFLICT (experiment) DO UPDATE SET seq = EXCLUDED.seq, text = EXCLUDED.text, digest = EXCLUDED.digest
    WHERE lighttail_snapshots.seq <= EXCLUDED.seq"""
PATIENCE = {  # a server that is gone is noticed, and a lock that its network cut left behind is let go
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
SESSION = """SET synchronous_commit = on; SET lock_timeout = '20s';
    SET idle_in_transaction_session_timeout = '20s'; SET statement_timeout = '60s'"""


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        more = ": pip install 'lighttail[serve]' for PostgreSQL"
        raise refuse("store", "postgresql://...", "a SQLite file", more=more) from None
    return psycopg


class _PostgresTurn(Turn):
    """hint, hinted: what came with the lock, as rows of `HINTED`; it holds until something is written."""

    def __init__(self, link: Any, head: Any, hint: Hint | None = None, hinted: Any = ()) -> None:
        self.link, (self.number, self.last, digest) = link, head
        self.digest = bytes(digest)
        self._rows: list[Row] = []  # what is to be written
        self._hint, self._hinted = hint, sorted(hinted)

    def _found(self, where: str, *values: Any) -> list[str]:
        self.flush()
        query = f"SELECT body FROM lighttail_events WHERE experiment = %s AND {where}"
        return [body for (body,) in self.link.execute(query, (self.number, *values))]

    def bodies(self, after: int, most: int) -> list[str]:
        if self._hint is not None and (after, most) == (self._hint.after, PAGE):
            return [body for which, _, body in self._hinted if which == NEW]
        return self._found("seq > %s ORDER BY seq LIMIT %s", after, most)

    def bodies_with(self, keys: list[str]) -> list[str]:
        if self._hint is None or not self._hint.keys.issubset(keys):
            return self._found("key = ANY(%s) ORDER BY seq", keys)
        more = list(set(keys) - self._hint.keys)  # of requests that came while the lock was waited for
        found = self._found("key = ANY(%s) ORDER BY seq", more) if more else []
        return [body for which, _, body in self._hinted if which == KEYED] + found

    def bodies_of_units(self, units: list[str], after: int = 0) -> list[str]:
        which = "WHERE experiment = %s AND unit = ANY(%s) AND seq > %s GROUP BY unit"
        firsts = f"SELECT MIN(seq) FROM lighttail_events {which}"
        return self._found(f"seq IN ({firsts})", self.number, units, after)

    def bodies_of(self, trial: int) -> list[str]:
        return self._found("trial = %s ORDER BY seq", trial)

    def _write(self, rows: list[Row]) -> None:
        self._rows += rows
        self._hint = None

    def flush(self) -> None:
        """Send the rows."""
        if rows := self._rows:
            self._rows = []
            text = _encode([{**row._asdict(), "digest": row.digest.hex()} for row in rows])
            last = {"last": rows[-1].seq, "after": rows[-1].digest}
            self.link.execute(WRITE, {"number": self.number, "rows": text, **last})


class PostgresReader(TableReader):
    """The journal in the database at an address such as `postgresql://user@host/name`, read-only."""

    prefix = "lighttail_"
    session = f"{SESSION}; SET default_transaction_read_only = on"
    fit = "the address of a PostgreSQL database with a journal of lighttail"

    def __init__(self, address: str) -> None:
        self._psycopg = _psycopg()
        self._address = address
        self._idle: LifoQueue[Any] = LifoQueue()
        self._room = BoundedSemaphore(MOST_LINKS)
        try:
            self._begin()
        except self._psycopg.Error as error:
            self.close()
            more = f": {_reason(error)}"
            raise refuse("store", "postgresql://...", self.fit, found="is not", more=more) from None
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        with self._link() as link:
            self._check_format(link.execute("SELECT format FROM lighttail_format").fetchall())

    def _check_format(self, formats: list[Any]) -> None:
        if formats != [(FORMAT,)]:
            found = f"is of format {formats[0][0]}" if formats else "has none"
            raise refuse("store", "the database", f"of format {FORMAT}", found=found)

    def _connected(self) -> Any:
        link = self._psycopg.connect(self._address, **PATIENCE)
        link.execute(self.session)
        link.commit()
        return link

    @contextmanager
    def _link(self, *first: Query) -> Iterator[Any]:
        """A connection in a transaction, which is committed at the end, or rolled back if the block raises.

        first: queries that are sent together, and tried again on a new connection if an idle one was cut
        meanwhile; the connection then comes with their answers."""
        with self._room:
            link, answers = self._begun(first or (("SELECT 1", ()),))
            try:
                yield (link, *answers) if first else link
                link.commit()
            finally:
                if self._usable(link):  # rolls back what was not committed
                    self._idle.put(link)
                else:
                    link.close()

    def _begun(self, first: tuple[Query, ...]) -> tuple[Any, list[Any]]:
        while True:
            try:
                link, used = self._idle.get_nowait(), True
            except Empty:
                link, used = self._connected(), False
            try:
                with self._together(link):  # with the beginning of the transaction
                    found = [link.execute(query, values) for query, values in first]
                return link, [one.fetchall() for one in found]
            except self._psycopg.Error as error:
                if self._usable(link):  # the connection is well: a lock, for example, was not free in time
                    self._idle.put(link)
                    raise
                link.close()
                if not used or not isinstance(error, self._psycopg.OperationalError):
                    raise

    def _together(self, link: Any) -> AbstractContextManager[Any]:
        """Send the statements of the block at once, and wait once for all of their answers."""
        return link.pipeline() if self._psycopg.Pipeline.is_supported() else nullcontext()

    def _usable(self, link: Any) -> bool:
        """Whether a connection can be used again: it is well, in no transaction, and out of its pipeline.
        What was not committed is rolled back."""
        with suppress(self._psycopg.Error):
            link.rollback()
        pq, info = self._psycopg.pq, link.info
        idle = info.transaction_status == pq.TransactionStatus.IDLE
        return not (link.closed or link.broken) and idle and info.pipeline_status == pq.PipelineStatus.OFF

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        try:
            yield
        except self._psycopg.Error as error:
            why = f"the database cannot be reached or used at this moment ({_reason(error)})"
            raise unavailable(f"{why}; send the request again") from None

    def _read(self, query: str, *values: Any) -> list[Any]:
        with self._mapped(), self._link((query.replace("?", "%s"), values)) as (_, found):
            return list(found)

    def close(self) -> None:
        with suppress(Empty):
            while True:
                self._idle.get_nowait().close()


class PostgresJournal(PostgresReader, Journal):
    """A journal in the database at an address such as `postgresql://user@host/name`."""

    shared = True
    session = SESSION
    fit = "the address of a PostgreSQL database in which tables can be made"

    def _begin(self) -> None:
        with self._link() as link:
            link.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            link.execute(TABLES)
            if formats := link.execute("SELECT format FROM lighttail_format").fetchall():
                self._check_format(formats)
            else:
                link.execute("INSERT INTO lighttail_format VALUES (%s)", (FORMAT,))

    def create(self, name: str, event: Event) -> bool:
        query = """INSERT INTO lighttail_experiments (name, seq, digest) VALUES (%s, 0, %s)
            ON CONFLICT (name) DO NOTHING RETURNING number"""
        with self._mapped(), self._link() as link:
            found = link.execute(query, (name, NO_DIGEST)).fetchone()
            if found is None:
                return False
            turn = _PostgresTurn(link, (*found, 0, NO_DIGEST))
            turn.append(0, [event])
            turn.flush()
            return True

    @contextmanager
    def turn(self, name: str, hint: Hint | None = None) -> Iterator[Turn]:
        lock = "SELECT number, seq, digest FROM lighttail_experiments WHERE name = %s FOR UPDATE"
        queries: list[Query] = [(lock, (name,))]
        if hint is not None:
            queries.append((HINTED, {"name": name, "after": hint.after, "keys": list(hint.keys)}))
        with self._mapped(), self._link(*queries) as (link, found, *hinted):
            if not found:
                raise unknown(name)
            turn = _PostgresTurn(link, found[0], hint, *hinted)
            yield turn
            with self._together(link):  # the lock is held for one answer less
                turn.flush()
                link.commit()

    def keep(self, name: str, snapshot: Snapshot) -> None:
        with self._mapped(), self._link() as link:
            link.execute(KEEP, (snapshot.seq, snapshot.text, text_digest(snapshot.text), name))


def _reason(error: Exception) -> str:
    """The reason that PostgreSQL gives, on one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__
