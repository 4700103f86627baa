"""Forecasts of running experiments, made beside the event loop: one at a time, and the last answer is kept.

The watch over risk budgets has a lane of its own, so that nobody's questions keep alarms back."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from starlette.concurrency import run_in_threadpool

from lighttail.live.awaiting import AsyncDesk
from lighttail.live.errors import unavailable
from lighttail.live.requests import Look
from lighttail.server.forecaster import Forecaster

MOST_WAITING = 20  # forecasts per experiment that wait; the next one is refused with 503


class _Lane:
    """A process that makes forecasts, one after another, and those who wait for it. The process starts with
    the first forecast."""

    def __init__(self) -> None:
        self.pool, self.forecaster = ThreadPoolExecutor(1, "forecast"), Forecaster()
        self.kept: dict[str, tuple[Any, dict[str, Any]]] = {}
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
            asked = (outlook.stamp, wish)
            if (kept := lane.kept.get(outlook.name)) is not None and kept[0] == asked:
                return outlook, kept[1]
            loop = asyncio.get_running_loop()
            made = await loop.run_in_executor(lane.pool, lane.forecaster.forecast, outlook, wish)
            lane.kept[outlook.name] = asked, made
            return outlook, made

    def close(self) -> None:
        """Begin no further forecast, and end those that are being made."""
        for lane in (self._asked, self._watched):
            lane.close()


async def outlook_module() -> Any:
    """`lighttail.live.outlook`, which is slow to import: neither the loop nor a desk may wait for it."""
    return await run_in_threadpool(importlib.import_module, "lighttail.live.outlook")
