"""HTTP on a connection, with an end to patience: uvicorn alone waits for ever for the end of a request."""

from __future__ import annotations

from asyncio import TimerHandle
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from lighttail.checks import refuse
from lighttail.server.answers import problem

LONGEST_REQUEST = 30.0  # seconds from the connection, or the first byte, to the last byte of a request
LARGEST_HEAD = 64 * 1024  # bytes of the request line and all headers


class PatientProtocol(HttpToolsProtocol):
    """A connection that is closed if a request is not complete in time, or its head is too large."""

    _timer: TimerHandle | None = None
    _in_head = True
    _head = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer a client that has sent all that it wants to send; close if it waits for no answer."""
        if self._timer is not None or self.cycle is None or self.cycle.response_complete:
            return False
        self.cycle.keep_alive = False
        return True

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head:
            self._head += len(data)
            if self._head > LARGEST_HEAD and not self.transport.is_closing():
                self.send_400_response("too large")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head = True, 0
        if self._timer is None:
            self._wait()

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._end()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, or has too large a head, in the words of every other refusal."""
        if self._in_head and self._head > LARGEST_HEAD:
            error = refuse("the head of the request", self._head, f"at most {LARGEST_HEAD} bytes")
        else:
            error = refuse("request", None, "HTTP/1.1", found="is not")
        content = problem(error).content
        assert isinstance(content, bytes)
        head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        self.transport.write(STATUS_LINE[400] + head % len(content) + content)
        self.transport.close()

    def _wait(self) -> None:
        self._timer = self.loop.call_later(LONGEST_REQUEST, self._too_late)

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_late(self) -> None:
        self._timer = None
        if self.flow.read_paused:  # we do not read, because an earlier request is not answered yet
            self._wait()
        else:
            self.transport.close()
