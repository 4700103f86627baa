"""What the server counts about itself, as text that Prometheus reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from lighttail.live.alarms import is_on

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Meter:
    """Requests by route and status, and how long they took.

    inside: the requests that are being answered at this moment. repeated: rewards that were known before, by
    experiment. ending: whether the server finishes what is inside and takes in nothing more."""

    def __init__(self) -> None:
        self.inside = 0
        self.ending = False
        self.requests: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS) + 1))
        self.repeated: defaultdict[str, int] = defaultdict(int)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests[method, route, status] += 1
        self.seconds[route] += seconds
        self.buckets[route][bisect_left(BOUNDS, seconds)] += 1

    def lines(self) -> Iterable[str]:
        yield from heading("lighttail_http_requests_inside", "gauge", "Requests that are being answered.")
        yield f"lighttail_http_requests_inside {self.inside}"
        yield from heading("lighttail_http_requests_total", "counter", "Requests by route and status.")
        for (method, route, status), count in sorted(self.requests.items()):
            named = labels(method=method, route=route, status=status)
            yield f"lighttail_http_requests_total{named} {count}"
        yield from heading("lighttail_http_request_seconds", "histogram", "How long an answer took.")
        for route, counts in sorted(self.buckets.items()):
            below = 0
            for bound, count in zip((*BOUNDS, "+Inf"), counts, strict=True):
                below += count
                yield f"lighttail_http_request_seconds_bucket{labels(route=route, le=bound)} {below}"
            yield f"lighttail_http_request_seconds_sum{labels(route=route)} {self.seconds[route]!r}"
            yield f"lighttail_http_request_seconds_count{labels(route=route)} {below}"


EXPERIMENT = (  # of each experiment: name, kind, meaning, and where it is found in a summary or at its desk
    ("asks_total", "counter", "Trials that were given out.", lambda one: sum(one["asked"].values())),
    ("tells_total", "counter", "Rewards that were counted.", lambda one: one["events"]["tell"]),
    ("defaults_total", "counter", "Trials that the window closed.", lambda one: one["events"]["default"]),
    (
        "late_total",
        "counter",
        "Rewards after the window.",
        lambda one: one["events"]["late"] + one["events"]["amend"],
    ),
    ("open", "gauge", "Trials without a reward that the policy sees.", lambda one: one["open"]),
    ("paused", "gauge", "1 if the experiment is paused.", lambda one: int(one["paused"])),
    ("stopped", "gauge", "1 if the experiment is stopped.", lambda one: int(one["stopped"])),
    ("alarm", "gauge", "1 if the forecast is beyond settings.risk.", lambda one: int(is_on(one["alarm"]))),
    ("repeated_total", "counter", "Rewards that were known before, here.", lambda one: one["repeated"]),
    ("commits_total", "counter", "Commits of this server.", lambda one: one["commits"]),
    ("events_total", "counter", "Events that this server has written.", lambda one: one["written"]),
    ("waiting", "gauge", "Requests that wait for their turn.", lambda one: one["waiting"]),
)


def experiment_lines(summaries: list[dict[str, Any]]) -> Iterable[str]:
    """The numbers of all experiments. Events per commit: events_total divided by commits_total."""
    for name, kind, meaning, value in EXPERIMENT:
        yield from heading(f"lighttail_experiment_{name}", kind, meaning)
        for one in summaries:
            yield f"lighttail_experiment_{name}{labels(experiment=one['name'])} {value(one)}"


def heading(name: str, kind: str, meaning: str) -> tuple[str, str]:
    """The two lines before the samples of a metric."""
    return f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"


def labels(**named: Any) -> str:
    r"""Labels of a sample.

    >>> print(labels(route='a"b', status=200))
    {route="a\"b",status="200"}
    """
    return "{" + ",".join(f'{name}="{_escaped(str(value))}"' for name, value in named.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
