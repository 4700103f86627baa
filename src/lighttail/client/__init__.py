"""The client of a server: `ask` and `tell` over HTTP, sent again until they are answered (docs/client.md)"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lighttail.client.awaiting import AsyncService
    from lighttail.client.service import Service

TIMEOUT, PATIENCE = 10.0, 60.0


def connect(
    url: str, key: str | None = None, timeout: float = TIMEOUT, patience: float = PATIENCE
) -> Service:
    """The experiments of the server at an address such as `http://127.0.0.1:8710`. Nothing is sent yet.

    key: a key of `lighttail keys`, if the server has keys.
    timeout: seconds for one try. patience: seconds for a request with all of its tries.

    A request that is not answered, or is answered with 502, 503 or 504, is sent again with growing pauses
    until `patience` is over. Every request is safe to repeat: an ask has a key, which the client draws if
    none is given. Threads may share a service.
    """
    from lighttail.client.service import Service

    return Service(url, key, timeout, patience)


def connect_async(
    url: str,
    key: str | None = None,
    timeout: float = TIMEOUT,
    patience: float = PATIENCE,
    at_once: int = 32,
) -> AsyncService:
    """As `connect`, for coroutines: every method is awaited.

    at_once: how many requests may be under way at one moment; each takes a thread.
    """
    from lighttail.client.awaiting import AsyncService

    return AsyncService(url, key, timeout, patience, at_once)


__all__ = ["connect", "connect_async"]
