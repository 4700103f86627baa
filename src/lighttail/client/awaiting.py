"""The client for coroutines: the same requests, each in a thread of a small pool, so that nothing but the
standard library is needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from lighttail.checks import whole
from lighttail.client.service import RemoteExperiment, Service
from lighttail.live.requests import Served, Told
from lighttail.online import Experiment, LinearExperiment

Value = TypeVar("Value")
MOST_AT_ONCE = 1_000


class AsyncService:
    """The experiments of a server, for coroutines; `lighttail.connect_async` makes one.

    `service["checkout"]` is an experiment whose methods are awaited. A coroutine that is cancelled no longer
    waits; its request may still count. An `async with` block closes the connections.
    """

    def __init__(self, url: Any, key: Any, timeout: Any, patience: Any, at_once: Any) -> None:
        self.service = Service(url, key, timeout, patience)
        self._pool = ThreadPoolExecutor(whole("at_once", at_once, 1, most=MOST_AT_ONCE), "lighttail client")

    async def _run(self, work: Callable[..., Value], *given: Any, **named: Any) -> Value:
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *given, **named))

    def __getitem__(self, name: str) -> AsyncExperiment:
        return AsyncExperiment(self, self.service[name])

    async def names(self) -> list[str]:
        """As `Service.names`."""
        return await self._run(self.service.names)

    async def create(self, name: str, policy: str, *given: Any, **named: Any) -> AsyncExperiment:
        """As `Service.create`."""
        return AsyncExperiment(self, await self._run(self.service.create, name, policy, *given, **named))

    async def close(self) -> None:
        """Wait for the requests that are under way, and close the connections, for good."""
        await asyncio.to_thread(self._pool.shutdown)
        self.service.close()

    async def __aenter__(self) -> AsyncService:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncExperiment:
    """An experiment of a server, for coroutines. `remote` is the one for threads."""

    def __init__(self, service: AsyncService, remote: RemoteExperiment) -> None:
        self.name, self.remote, self._run = remote.name, remote, service._run

    async def ask(self, count: int | None = None, **named: Any) -> Served | list[Served]:
        """As `RemoteExperiment.ask`."""
        return await self._run(self.remote.ask, count, **named)

    async def tell(self, *given: Any) -> Told:
        """As `RemoteExperiment.tell`."""
        return await self._run(self.remote.tell, *given)

    async def summary(self) -> dict[str, Any]:
        """As `RemoteExperiment.summary`."""
        return await self._run(self.remote.summary)

    async def forecast(self, *given: Any, **named: Any) -> dict[str, Any]:
        """As `RemoteExperiment.forecast`."""
        return await self._run(self.remote.forecast, *given, **named)

    async def to_json(self) -> str:
        """As `RemoteExperiment.to_json`."""
        return await self._run(self.remote.to_json)

    async def state(self) -> Experiment | LinearExperiment:
        """As `RemoteExperiment.state`."""
        return await self._run(self.remote.state)

    async def journal(self, after: int = 0) -> list[dict[str, Any]]:
        """As `RemoteExperiment.journal`."""
        return await self._run(self.remote.journal, after)

    async def pause(self) -> bool:
        """As `RemoteExperiment.pause`."""
        return await self._run(self.remote.pause)

    async def resume(self) -> bool:
        """As `RemoteExperiment.resume`."""
        return await self._run(self.remote.resume)

    async def stop(self) -> bool:
        """As `RemoteExperiment.stop`."""
        return await self._run(self.remote.stop)

    async def add(self, arm: str | int) -> bool:
        """As `RemoteExperiment.add`."""
        return await self._run(self.remote.add, arm)

    async def retire(self, arm: str | int) -> bool:
        """As `RemoteExperiment.retire`."""
        return await self._run(self.remote.retire, arm)

    async def set(self, settings: dict[str, Any]) -> bool:
        """As `RemoteExperiment.set`."""
        return await self._run(self.remote.set, settings)
