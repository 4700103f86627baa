"""The client for coroutines: the same requests, each in a thread of a small pool, so that nothing but the
standard library is needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from lighttail.checks import whole
from lighttail.client.service import RemoteExperiment, Service

Params = ParamSpec("Params")
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


def _awaited(
    method: Callable[Concatenate[RemoteExperiment, Params], Value],
) -> Callable[Concatenate[AsyncExperiment, Params], Coroutine[Any, Any, Value]]:
    """A method of `RemoteExperiment` for coroutines."""

    @wraps(method, assigned=("__name__", "__doc__", "__annotations__"))
    async def awaited(self: AsyncExperiment, /, *given: Params.args, **named: Params.kwargs) -> Value:
        return await self._run(getattr(self.remote, method.__name__), *given, **named)

    awaited.__qualname__ = f"AsyncExperiment.{method.__name__}"  # for the warning if `await` is forgotten
    return awaited


class AsyncExperiment:
    """An experiment of a server, for coroutines: each method is that of `RemoteExperiment`, to be awaited.
    `remote` is the experiment for threads."""

    def __init__(self, service: AsyncService, remote: RemoteExperiment) -> None:
        self.name, self.remote, self._run = remote.name, remote, service._run

    ask = _awaited(RemoteExperiment.ask)
    tell = _awaited(RemoteExperiment.tell)
    summary = _awaited(RemoteExperiment.summary)
    forecast = _awaited(RemoteExperiment.forecast)
    to_json = _awaited(RemoteExperiment.to_json)
    state = _awaited(RemoteExperiment.state)
    journal = _awaited(RemoteExperiment.journal)
    pause = _awaited(RemoteExperiment.pause)
    resume = _awaited(RemoteExperiment.resume)
    stop = _awaited(RemoteExperiment.stop)
    add = _awaited(RemoteExperiment.add)
    retire = _awaited(RemoteExperiment.retire)
    set = _awaited(RemoteExperiment.set)
