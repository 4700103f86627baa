"""Durable asks and tells per second: lighttail's desk on SQLite, and Optuna on its own storages.

"Durable" means: on disk before the answer. lighttail commits with `synchronous = FULL`; Optuna's SQLite
storage has SQLite's defaults, which wait for the disk, too, and its journal file is synchronised after every
entry. One pair is one ask and one tell with two arms. Optuna samples at random, which is its cheapest
sampler, so that storages are compared and not choices; with its default, an ask also fits a model.

Not here: BanditDB, whose package on PyPI (banditdb-python 0.4.0) is the client alone, for a server that does
not come from PyPI; and river, MABWiser, PyMAB, SMPyBandits, Vowpal Wabbit and contextualbandits, which keep
their state in memory and leave every trial, its key and its disk to the caller.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from live import Load, fsync_times

import lighttail as lt
from lighttail.live.sqlite import SqliteJournal
from lighttail.server.run import quick_switches

TURNS = 3  # of each measurement, taken in turns; medians are shown
PAIRS = 200  # of Optuna
BAR = 100.0  # 256 callers of lighttail over the faster of one and sixteen callers of Optuna on SQLite
Rate = Callable[[Path], float]  # a new folder -> pairs per second


def lighttail(callers: int, pairs: int) -> Rate:
    def rate(folder: Path) -> float:
        with quick_switches():  # as in `lighttail serve`
            return Load(SqliteJournal(folder / "desk.db"), callers, pairs).rate / 2.0

    return rate


def sqlite_storage(folder: Path) -> Any:
    from optuna.storages import RDBStorage

    waits = {"connect_args": {"timeout": 100.0}}  # seconds that a caller waits for the others' locks
    return RDBStorage(f"sqlite:///{folder / 'study.db'}", engine_kwargs=waits)


def journal_storage(folder: Path) -> Any:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    return JournalStorage(JournalFileBackend(str(folder / "study.log")))


def optuna(storage: Callable[[Path], Any], callers: int) -> Rate:
    def rate(folder: Path) -> float:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = optuna.samplers.RandomSampler(seed=1)
        study = optuna.create_study(storage=storage(folder), sampler=sampler)
        arms = {"arm": optuna.distributions.CategoricalDistribution(["A", "B"])}

        def work(_: int) -> None:
            for _ in range(PAIRS // callers):
                study.tell(study.ask(arms), 0.5)

        begun = time.perf_counter()
        with ThreadPoolExecutor(callers) as pool:
            list(pool.map(work, range(callers)))
        return PAIRS // callers * callers / (time.perf_counter() - begun)

    return rate


ROWS: dict[tuple[str, str, int], Rate] = {
    ("lighttail", "a desk on SQLite", 1): lighttail(1, 1_000),
    ("lighttail", "a desk on SQLite", 16): lighttail(16, 4_096),
    ("lighttail", "a desk on SQLite", 256): lighttail(256, 12_288),
    ("optuna", "`ask` and `tell` on SQLite", 1): optuna(sqlite_storage, 1),
    ("optuna", "`ask` and `tell` on SQLite, in threads", 16): optuna(sqlite_storage, 16),
    ("optuna", "`ask` and `tell` on a journal file", 1): optuna(journal_storage, 1),
}


def measured(folder: Path) -> dict[tuple[str, str, int], float]:
    """The median rate of each row. Rounds alternate, so that a busy minute is everyone's."""
    found: dict[tuple[str, str, int], list[float]] = {row: [] for row in ROWS}
    for turn in range(TURNS):
        for place, (row, rate) in enumerate(ROWS.items()):
            room = folder / f"{turn}-{place}"
            room.mkdir()
            found[row].append(rate(room))
            shutil.rmtree(room)
    return {row: statistics.median(rates) for row, rates in found.items()}


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="lt"))
    try:
        disk = fsync_times(folder).median
        print(f"\n{date.today()}, Python {sys.version.split()[0]}; a bare fsync takes {1e3 * disk:.2f} ms\n")
        rates = measured(folder)
    except ImportError as error:
        print(f"NOT MEASURED: {error}")
        return 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("| | callers | durable pairs per second | one pair takes as long as so many fsyncs |")
    print("|---|---|---|---|")
    for (package, name, callers), rate in rates.items():
        release = lt.__version__ if package == "lighttail" else version(package)
        pairs = f"{float(f'{rate:.3g}'):,.0f}"
        print(f"| {package} {release}, {name} | {callers} | {pairs} | {1.0 / (rate * disk):.2g} |")
    slow = max(rate for (package, name, _), rate in rates.items() if package == "optuna" and "SQLite" in name)
    ratio = rates["lighttail", "a desk on SQLite", 256] / slow
    print(f"\n256 callers of lighttail over Optuna on SQLite: {ratio:,.0f} times (bar: {BAR:g})")
    return int(ratio < BAR)


if __name__ == "__main__":
    sys.exit(main())
