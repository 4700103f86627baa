"""What forecasts do to requests: the wait of asks over HTTP with and without forecasts beside them.

`make bench-live` runs it. Rounds alternate, and the ratio is within one run. A round with forecasts asks for
one after the other without a pause, each for 10,000 ends of 20,000 pulls, which is far more than the watch
over a risk budget does."""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CALLERS, SECONDS, ROUNDS = 8, 5.0, 5
PAUSE = 0.04  # seconds between a tell and the next ask, on average
BAR = 1.5
BEGIN = {"name": "one", "policy": "ucb:lighttailed:0.0587", "arms": ["A", "B", "C"], "horizon": 60_000}
RATES = {"A": 0.03, "B": 0.05, "C": 0.04}
SERVE = "import sys; from lighttail.server import serve; serve(sys.argv[1], port=0)"


class Link:
    """A connection that is kept."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def __aenter__(self) -> Link:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} /v1/experiments{path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        self.writer.write(head.encode() + content)
        found = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        size = int(found.partition(b"content-length: ")[2].partition(b"\r")[0])
        return json.loads(await self.reader.readexactly(size))


async def visits(port: int, until: float, waits: list[float], seed: int) -> None:
    """A caller that asks and tells, with pauses."""
    rng = random.Random(seed)
    async with Link(port) as link:
        while time.perf_counter() < until:
            begun = time.perf_counter()
            (trial,) = (await link.call("POST", "/one/ask", {}))["trials"]
            waits.append(time.perf_counter() - begun)
            reward = {"id": trial["id"], "reward": rng.random() < RATES[trial["arm"]]}
            await link.call("POST", "/one/tell", {"rewards": [reward]})
            await asyncio.sleep(rng.expovariate(1.0 / PAUSE))


async def forecasts(port: int, until: float, made: list[float]) -> None:
    async with Link(port) as link:
        while time.perf_counter() < until:
            begun = time.perf_counter()
            done = (await link.call("GET", "/one"))["pulls"]
            await link.call("GET", f"/one/forecast?loss=150&low=0.02&high=0.08&horizon={done + 20_000}")
            made.append(time.perf_counter() - begun)


async def round_of(port: int, beside: bool, seed: int) -> tuple[float, float, list[float]]:
    """The median and the 99th percentile of the waits of asks, and the seconds of each forecast."""
    until, waits, made = time.perf_counter() + SECONDS, list[float](), list[float]()
    work = [visits(port, until, waits, CALLERS * seed + n) for n in range(CALLERS)]
    await asyncio.gather(*work, *([forecasts(port, until, made)] if beside else []))
    waits.sort()
    return waits[len(waits) // 2], waits[int(0.99 * len(waits))], made


async def measured(port: int) -> None:
    async with Link(port) as link:
        await link.call("POST", "", BEGIN)
    await round_of(port, True, 99)  # loads every kernel
    rounds = [[await round_of(port, bool(k), 2 * n + k) for k in (0, 1)] for n in range(ROUNDS)]
    ratio = statistics.median(with_it[1] / without[1] for without, with_it in rounds)
    for beside in (0, 1):
        middle, late = (1000 * statistics.median(one[beside][k] for one in rounds) for k in (0, 1))
        how = ("without", "with")[beside]
        print(f"{how} forecasts: asks take {middle:.1f} ms, 99 % within {late:.1f} ms")
    took = statistics.median(second for _, one in rounds for second in one[2])
    said = f"99 % of asks are answered within {ratio:.2f} times the time without forecasts (bar: {BAR})"
    print(f"{said}; a forecast takes {took:.1f} s")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="lt") as folder:
        command = [sys.executable, "-c", SERVE, str(Path(folder) / "one.db")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            port = int(server.stdout.readline().partition(" (Ctrl-C")[0].rpartition(":")[2])
            try:
                asyncio.run(measured(port))
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
