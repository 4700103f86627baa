"""A server, and cheap callers of it: plain connections that send a request, wait for the answer, and so on.

    python benchmarks/http_load.py serve STORE     # prints its port; has an empty route next to the others

The callers read no more of an answer than they need, so that two cores are enough for both sides."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any

HEAD = b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
Next = Callable[[bytes], bytes | None]  # the next request after an answer; None if there is no more


def request(path: bytes, body: bytes = b"") -> bytes:
    """The bytes of a POST."""
    return HEAD % (path, len(body)) + body


class Caller(asyncio.Protocol):
    """One connection. `following` makes the next request from the body of the answer before."""

    def __init__(self, following: Next, done: asyncio.Future[None]) -> None:
        self.following, self.done, self.found = following, done, b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self._go(b"")

    def data_received(self, data: bytes) -> None:
        self.found += data
        head, mark, body = self.found.partition(b"\r\n\r\n")
        if not mark:
            return
        place = head.index(b"content-length: ") + 16
        size = int(head[place : place + 8].partition(b"\r")[0])
        if len(body) == size:
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(self.found.decode())
            self.found = b""
            self._go(body)

    def _go(self, body: bytes) -> None:
        made = self.following(body)
        if made is None:
            self.transport.close()
            self.done.set_result(None)
        else:
            self.transport.write(made)


def empties(count: int) -> Next:
    """Requests to the empty route."""
    left, sent = count, request(b"/empty")

    def following(_: bytes) -> bytes | None:
        nonlocal left
        left -= 1
        return sent if left >= 0 else None

    return following


def pairs(count: int, tag: str) -> Next:
    """Asks with keys, each followed by the reward of its trial."""
    turn, asking = 0, True

    def following(body: bytes) -> bytes | None:
        nonlocal turn, asking
        if asking:
            asking, turn = False, turn + 1
            if turn > count:
                return None
            return request(b"/v1/experiments/one/ask", b'{"key":"%b-%d"}' % (tag.encode(), turn))
        asking = True
        id = body[body.index(b'"id":"') + 6 :].partition(b'"')[0]
        return request(b"/v1/experiments/one/tell", b'{"rewards":[{"id":"%b","reward":0.5}]}' % id)

    return following


async def rate(port: int, requests: int, made: list[Next]) -> float:
    """Requests per second of callers that begin together."""
    loop = asyncio.get_running_loop()
    waits = [loop.create_future() for _ in made]
    begun = time.perf_counter()
    for following, done in zip(made, waits, strict=True):
        await loop.create_connection(lambda f=following, d=done: Caller(f, d), "127.0.0.1", port)
    await asyncio.gather(*waits)
    return requests / (time.perf_counter() - begun)


def serve(store: str) -> None:
    """Serve an experiment `one`, and a route that does nothing behind the same gate."""
    from lighttail.live import Office, open_journal
    from lighttail.server.answers import Answer
    from lighttail.server.app import made_app
    from lighttail.server.run import listening, quick_switches, server_of

    async def empty(body: Any) -> Answer:
        return Answer(200, b"")

    office = Office(open_journal(store))
    office.create("one", policy="ucb:anytime:0.3", arms=["A", "B"], seed=1)
    app = made_app(office)
    app.add_api_route("/empty", empty, methods=["POST"], response_model=None)
    try:
        with listening("127.0.0.1", 0) as door, quick_switches():
            print(door.getsockname()[1], flush=True)
            server_of(app).run(sockets=[door])
    finally:
        office.close()


if __name__ == "__main__":
    serve(sys.argv[2])
