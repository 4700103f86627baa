"""What each test costs in CPU seconds: `CPU_TIMES=FOLDER pytest`, then `python tests/cpu_times.py FOLDER`.

The seconds of a clock mislead on a busy machine; CPU seconds depend little on the load. Those of a test
include its fixtures, its threads, and the processes that it started and waited for. Beside them stand the
seconds that numba spent on kernels that the cache on disk did not hold. Each process of pytest-xdist writes
a file of its own.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LISTED = 40


class Compiling:
    """The CPU seconds that numba spends compiling in this process, and the names of what it compiled.

    A compilation within another one counts once.
    """

    def __init__(self) -> None:
        self.depth, self.begun, self.seconds, self.kernels, self.listening = 0, 0.0, 0.0, [], False

    def start(self, event: Any) -> None:
        if self.depth == 0:
            self.begun = time.process_time()
        self.depth += 1

    def end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.process_time() - self.begun
            self.kernels.append(_name(event.data["dispatcher"].py_func))

    def listen(self) -> None:
        if self.listening:
            return
        from numba.core import event

        self.listening = True
        listener = type("Listener", (event.Listener,), {"on_start": self.start, "on_end": self.end})
        event.register("numba:compile", listener())


class Clock:
    """Appends a line to its process's file for every test, and one for all that came before the first."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}-{os.getpid()}.jsonl"
        self.compiling, self.begun = Compiling(), False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if not self.begun:
            self.begun = True
            self.write("imports and collection", _seconds(), 0)
        if "numba" in sys.modules:  # no test pays for an import that it did not ask for
            self.compiling.listen()
        cpu, compiling, known = _seconds(), self.compiling.seconds, len(self.compiling.kernels)
        result = yield
        self.write(item.nodeid, _seconds() - cpu, self.compiling.seconds - compiling, known)
        return result

    def write(self, test: str, cpu: float, compiling: float, known: int = 0) -> None:
        row = {"test": test, "cpu": cpu, "compiling": compiling, "kernels": self.compiling.kernels[known:]}
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    folder = os.environ.get("CPU_TIMES")
    if folder:
        config.pluginmanager.register(Clock(Path(folder)), "cpu-times")


def _name(kernel: Any) -> str:
    """A compiled function, with the formulas that it closes over."""
    cells = [cell.cell_contents for cell in kernel.__closure__ or ()]
    formulas = [getattr(value, "__qualname__", None) for value in cells]
    return f"{kernel.__qualname__}({', '.join(formula for formula in formulas if formula)})"


def _seconds() -> float:
    return sum(os.times()[:4])  # user and system, of this process and of those that it waited for


def main(folder: str) -> None:
    """Print the dearest files and tests, and the sum."""
    lines = [line for path in Path(folder).glob("*.jsonl") for line in path.read_text().splitlines()]
    rows = [json.loads(line) for line in lines]
    by_file: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0])
    for row in rows:
        sums = by_file[row["test"].partition("::")[0]]
        for place, value in enumerate((row["cpu"], row["compiling"], len(row["kernels"]), 1)):
            sums[place] += value
    print("   CPU s  compiling  kernels  tests")
    for name, sums in sorted(by_file.items(), key=lambda entry: -entry[1][0]):
        print(f"{sums[0]:8.1f} {sums[1]:10.1f} {sums[2]:8.0f} {sums[3]:6.0f}  {name}")
    for row in sorted(rows, key=lambda row: -row["cpu"])[:LISTED]:
        print(f"{row['cpu']:8.1f} {row['compiling']:10.1f} {len(row['kernels']):8.0f}         {row['test']}")
    total, compiling = sum(row["cpu"] for row in rows), sum(row["compiling"] for row in rows)
    print(f"{total:8.1f} CPU s in {len(rows)} tests, {compiling:.1f} of them compiling")


if __name__ == "__main__":
    main(sys.argv[1])
