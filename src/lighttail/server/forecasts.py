"""Forecasts of running experiments, made beside the event loop: one at a time, and the last answer is
kept."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import numpy as np

from lighttail.checks import refuse
from lighttail.live.awaiting import AsyncDesk
from lighttail.live.errors import unavailable
from lighttail.live.requests import Look

MOST_WAITING = 20  # forecasts per experiment that wait; the next one is refused with 503
LEAST_URGENT = 19
THREADS = 1  # of a forecast: the other processors are for requests


def give_way() -> None:
    """Let this thread, and the threads that it starts, run when no other thread wants to. Linux can; on other
    systems a forecast competes with requests."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LEAST_URGENT)


class Forecasts:
    """The forecasts of a server. A single thread makes them, so that they take one processor at most."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "forecast", initializer=give_way)
        self._stop = np.zeros(1, dtype=np.int64)
        self._turns: dict[str, asyncio.Lock] = {}
        self._waiting: dict[str, int] = {}
        self._kept: dict[str, tuple[Any, dict[str, Any]]] = {}

    async def answer(
        self,
        desk: AsyncDesk,
        loss: float | None = None,
        horizon: int | None = None,
        low: float | None = None,
        high: float | None = None,
        paths: int | None = None,
    ) -> dict[str, Any]:
        """The forecast of an experiment as JSON values. The same question about the same state gets the
        answer that was kept."""
        from lighttail.live.outlook import Question

        if (low is None) != (high is None):
            raise refuse("low" if low is None else "high", None, "given if the other limit of the means is")
        between = None if low is None or high is None else (low, high)
        question = Question(loss, horizon, between, paths)
        return (await self.made(desk, question))[1]

    async def made(self, desk: AsyncDesk, question: Any = None) -> tuple[Any, dict[str, Any]]:
        """What the forecast was made from, and the forecast. Without a question, the one of the risk
        budget."""
        from lighttail.live.outlook import Question

        question = Question() if question is None else question
        async with self._turn(desk.desk.name):
            outlook: Any = await desk.answer(Look("outlook"))
            asked = (outlook.seq, question)
            if (kept := self._kept.get(outlook.name)) is not None and kept[0] == asked:
                return outlook, kept[1]
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(
                self._pool, partial(outlook.forecast, question, THREADS, self._stop)
            )
            made: dict[str, Any] = found.to_dict()
            self._kept[outlook.name] = asked, made
            return outlook, made

    @asynccontextmanager
    async def _turn(self, name: str) -> AsyncIterator[None]:
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
        """Begin no further forecast, and end the one that is being made."""
        self._stop[0] = 1
        self._pool.shutdown(wait=False, cancel_futures=True)
