"""Forecasts of running experiments, made beside the event loop: one at a time, and the last answer is
kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from lighttail.checks import refuse
from lighttail.live.awaiting import AsyncDesk
from lighttail.live.errors import unavailable
from lighttail.live.requests import Look

MOST_WAITING = 20  # forecasts per experiment that wait; the next one is refused with 503
THREADS = 1  # of a forecast: the other processors are for requests


class Forecasts:
    """The forecasts of a server. A single thread makes them, so that they take one processor at most."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "forecast")
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
        from lighttail.live.outlook import PATHS, Question

        if (low is None) != (high is None):
            raise refuse("low" if low is None else "high", None, "given if the other limit of the means is")
        between = None if low is None or high is None else (low, high)
        question = Question(loss, horizon, between, PATHS if paths is None else paths)
        async with self._turn(desk.desk.name):
            outlook: Any = await desk.answer(Look("outlook"))
            asked = (outlook.seq, question)
            if (kept := self._kept.get(outlook.name)) is not None and kept[0] == asked:
                return kept[1]
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._pool, lambda: outlook.forecast(question, THREADS))
            made: dict[str, Any] = found.to_dict()
            self._kept[outlook.name] = asked, made
            return made

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
        """Begin no further forecast."""
        self._pool.shutdown(wait=False, cancel_futures=True)
