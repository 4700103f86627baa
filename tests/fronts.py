"""A front that misbehaves: a real HTTP server before the real routes, which drops, delays or refuses on
demand."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from served import Client, client_of

from lighttail.live.journal import Journal

# What the front does with a request: "ok"; "lost" (the request never arrives); "dropped" (it counts, and the
# answer is lost); "cut" (half of the answer comes); "hang" (it counts, and no answer comes in time); "html"
# (a page of a proxy with the status 200); a number (this status without JSON).
Faults = list[Any]


class Front(ThreadingHTTPServer):
    """`faults`: what happens to the next requests; afterwards everything is well. `seen`: their bodies."""

    daemon_threads = True

    def __init__(self, behind: Client) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind, self.faults, self.seen = behind, Faults(), list[tuple[str, str, bytes]]()
        self.later = ""
        self.released, self.links = threading.Event(), 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def next_fault(self) -> Any:
        with self.lock:
            return self.faults.pop(0) if self.faults else "ok"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm, wbufsize = True, -1
    server: Front

    def setup(self) -> None:
        super().setup()
        self.server.links += 1

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""

    def do_GET(self) -> None:
        self.serve()

    def do_POST(self) -> None:
        self.serve()

    def serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.seen.append((self.command, self.path, body))
        fault = self.server.next_fault()
        if fault == "lost":
            self.close_connection = True
            return
        if fault == "html" or isinstance(fault, int):
            self.answer(200 if fault == "html" else fault, b"<h1>a proxy</h1>", "text/html")
            return
        sent = {"content-type": self.headers.get("content-type") or "", "host": "localhost"}
        if "authorization" in self.headers:
            sent["authorization"] = self.headers["authorization"]
        found = self.server.behind.request(self.command, self.path, content=body, headers=sent)
        if fault == "hang":
            self.server.released.wait()
        if fault in ("dropped", "hang"):
            self.close_connection = True
            return
        kind = found.headers["content-type"]
        self.answer(found.status_code, found.content, kind, cut=fault == "cut")

    def answer(self, status: int, content: bytes, kind: str, cut: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if self.server.later:
            self.send_header("Retry-After", self.server.later)
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)
        self.close_connection = self.close_connection or cut


@contextmanager
def front_of(journal: Journal | None = None, **more: Any) -> Iterator[Front]:
    """A front before a server in this process."""
    with client_of(journal, **more) as behind:
        front = Front(behind)
        thread = threading.Thread(target=front.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield front
        finally:
            front.released.set()
            front.shutdown()
            front.server_close()
            thread.join()
