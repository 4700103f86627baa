"""Forecasts of running experiments, made beside the event loop: one at a time, and the last answer stays.

The watch over risk budgets has a lane of its own, so that nobody's questions keep alarms back. A forecast in
a thread of the server would hold Python's lock now and then, and a thread with a low priority that holds the
lock makes all requests wait. The process of a lane (`python -m lighttail.server.forecasts`) takes what the
requests leave of the processors. The server writes an `Outlook` and a `Wish` to its standard input and reads
the answer from its standard output; the process ends when its input does."""

from __future__ import annotations

import asyncio
import importlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.concurrency import run_in_threadpool

from lighttail.checks import BadInput
from lighttail.live.awaiting import AsyncDesk
from lighttail.live.errors import unavailable
from lighttail.live.requests import Look

MOST_WAITING = 20  # forecasts per experiment that wait; the next one is refused with 503
THREADS = 1  # the other processors are for requests
LEAST_URGENT = 19
ENDED = "the process that forecasts has ended; send the request again"


class Forecaster:
    """The server's end of a process, which starts with the first forecast. Methods other than `close` are
    called by one thread at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def forecast(self, outlook: Any, wish: Any) -> dict[str, Any]:
        """The forecast as JSON values. Raises BadInput if it is refused, and Refused (503) if the process
        has ended."""
        process = self._running()
        try:
            pickle.dump((outlook, wish), process.stdin)  # type: ignore[arg-type]
            process.stdin.flush()  # type: ignore[union-attr]
            answer: Any = pickle.load(process.stdout)  # type: ignore[arg-type]
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            self._end()
            raise unavailable(ENDED, "server") from None
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    def close(self) -> None:
        """End the process, whatever it does."""
        self._closed = True
        self._end()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise unavailable("the server is closing; send the request again later", "server")
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is None:
            here = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            command, pipe = [sys.executable, "-P", "-m", __name__], subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=here)
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]


class _Lane:
    """A process that makes forecasts, one after another, and those who wait for it. The process starts with
    the first forecast."""

    def __init__(self) -> None:
        self.pool, self.forecaster = ThreadPoolExecutor(1, "forecast"), Forecaster()
        self.newest: dict[str, tuple[Any, dict[str, Any]]] = {}  # what was asked, and the forecast
        self._turns: dict[str, asyncio.Lock] = {}
        self._waiting: dict[str, int] = {}

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """One forecast per experiment at a time."""
        if self._waiting.get(name, 0) >= MOST_WAITING:
            raise unavailable("too many forecasts are waiting; send the request again later", "server")
        self._waiting[name] = self._waiting.get(name, 0) + 1
        try:
            async with self._turns.setdefault(name, asyncio.Lock()):
                yield
        finally:
            self._waiting[name] -= 1

    def close(self) -> None:
        self.forecaster.close()
        self.pool.shutdown(wait=False, cancel_futures=True)


class Forecasts:
    """The forecasts of a server: those that people ask for, and those of the watch. Whoever waits for a
    forecast and is cancelled leaves the queue."""

    def __init__(self) -> None:
        self._asked, self._watched = _Lane(), _Lane()

    async def made(self, desk: AsyncDesk, wish: Any = None) -> tuple[Any, dict[str, Any]]:
        """What the forecast was made from, and the forecast. Without a wish, the forecast of the risk
        budget, in the lane of the watch."""
        lane = self._watched if wish is None else self._asked
        wish = (await outlook_module()).Wish() if wish is None else wish
        async with lane.turn(desk.desk.name):
            outlook: Any = await desk.answer(Look("outlook"))
            asked, (last, forecast) = (outlook.stamp, wish), lane.newest.get(outlook.name, (None, {}))
            if last != asked:
                loop = asyncio.get_running_loop()
                forecast = await loop.run_in_executor(lane.pool, lane.forecaster.forecast, outlook, wish)
                lane.newest[outlook.name] = asked, forecast
            return outlook, forecast

    def close(self) -> None:
        """Begin no further forecast, and end those that are being made."""
        self._asked.close()
        self._watched.close()


async def outlook_module() -> Any:
    """`lighttail.live.outlook`, which is slow to import: neither the loop nor a desk may wait for it."""
    return await run_in_threadpool(importlib.import_module, "lighttail.live.outlook")


def _give_way() -> None:
    """Have the lowest priority. Where the system has one for processes that only use idle processors (Linux),
    a request that comes is served at once; otherwise it may wait for the end of a time slice."""
    with suppress(OSError, AttributeError):
        os.nice(LEAST_URGENT)
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def main() -> None:
    """The process: answer until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this process
    _give_way()
    source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed must not stand between two answers
    while True:
        try:
            outlook, wish = pickle.load(source)
        except EOFError:
            return
        try:
            answer: Any = outlook.forecast(wish, THREADS).to_dict()
        except BadInput as error:
            answer = error
        except Exception as error:
            answer = RuntimeError(f"a forecast failed: {error!r}")
        pickle.dump(answer, target)
        target.flush()


if __name__ == "__main__":
    main()
