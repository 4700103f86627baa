"""The process that forecasts, with the lowest priority: `python -m lighttail.server.forecaster`.

A forecast in a thread of the server would hold Python's lock now and then, and a thread with a low priority
that holds the lock makes all requests wait. A process of its own takes what the requests leave of the
processors. The server writes an `Outlook` and a `Wish` to its standard input and reads the answer from its
standard output; the process ends when its input does."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any

from lighttail.checks import BadInput
from lighttail.live.errors import unavailable

THREADS = 1  # the other processors are for requests
LEAST_URGENT = 19
ENDED = "the process that forecasts has ended; send the request again"


class Forecaster:
    """The server's end. The process starts with the first forecast. Methods other than `close` are called by
    one thread at a time."""

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
            found: Any = pickle.load(process.stdout)  # type: ignore[arg-type]
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            self._end()
            raise unavailable(ENDED, "server") from None
        if isinstance(found, Exception):
            raise found
        return found  # type: ignore[no-any-return]

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
            places = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            command = [sys.executable, "-P", "-m", __name__]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=places
            )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]


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
            found: Any = outlook.forecast(wish, THREADS).to_dict()
        except BadInput as error:
            found = error
        except Exception as error:
            found = RuntimeError(f"a forecast failed: {error!r}")
        pickle.dump(found, target)
        target.flush()


if __name__ == "__main__":
    main()
