"""A server with other limits of time than its own: `python -P limited.py LIMITS serve ...`, where LIMITS is a
JSON object such as {"server.reading.LONGEST_READ": 300}."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator, Mapping

from lighttail.cli import main

PATIENT = {  # seconds that only a server that hangs will take: a busy machine may stop a process for a while
    "server.protocol.LONGEST_REQUEST": 300.0,
    "server.reading.LONGEST_READ": 300.0,
    "server.routes.PATIENCE": 300.0,
    "server.dashboard.PATIENCE": 300.0,
    "server.run.LONGEST_GOODBYE": 300,
    "server.run.LAST_WORDS": 300,
}


def places(limits: Mapping[str, float]) -> Iterator[tuple[object, str, float]]:
    """The module, the name and the value of each limit."""
    for dotted, value in limits.items():
        module, _, name = dotted.rpartition(".")
        yield importlib.import_module(f"lighttail.{module}"), name, value


if __name__ == "__main__":
    for place in places(json.loads(sys.argv.pop(1))):
        getattr(place[0], place[1])  # it must be there
        setattr(*place)
    main()
