"""Requests that the OpenAPI document allows, and requests that it does not, drawn by schemathesis.

    python tests/fuzz_http.py --requests 500

Every answer must be documented, no answer may be a mistake of the server, and every refusal has its four
fields. Some experiments are there beforehand, so that requests find something."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from contextlib import suppress
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode

from lighttail.live import Office, open_journal
from lighttail.server import build_app

FIELDS = {"field", "value", "allowed", "message"}
BEGUN: list[dict[str, Any]] = [
    {"name": "one", "policy": "ts:0.5", "arms": ["A", "B"]},
    {"name": "two", "policy": "ucb:anytime:0.5", "arms": [1, 2, "3"],
     "settings": {"window": 60, "default": 0, "shares": {"3": 0.1}}},
    {"name": "lin", "policy": "linucb:lighttailed:0.2", "dim": 2, "horizon": 1000},
]  # fmt: skip
NAMES = st.sampled_from([one["name"] for one in BEGUN])
FINITE = st.floats(allow_nan=False, allow_infinity=False)  # JSON has no other numbers
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "shares": st.dictionaries(st.sampled_from(["A", "B", "C"]), FINITE),
        "holdout": st.fixed_dictionaries({"arm": st.sampled_from(["A", 1]), "share": st.floats(0, 1)}),
        "sticky": st.booleans() | st.integers(0, 1),
        "window": FINITE | st.just(1e-300),
        "default": FINITE | st.booleans(),
        "risk": st.fixed_dictionaries(
            {"loss": FINITE, "chance": st.floats(0, 1), "then": st.sampled_from(["warn", "pause"])}
        ),
        "rewards": st.fixed_dictionaries({"low": FINITE, "high": FINITE})
        | st.fixed_dictionaries({"sigma": FINITE}),
        "means": st.fixed_dictionaries({"low": FINITE, "high": FINITE}),
        "late": st.sampled_from(["ignore", "amend", "never"]),
        "fallback": st.sampled_from(["A", "C", 0, None]),
    },
)
LIKELY = {  # values that are often right, by field
    "policy": st.sampled_from(
        ["ts:0.5", "ucb:lighttailed:0.2", "exp3ix:reward", "moss", "klucb:1", "lints:1"]
    ),
    "arms": st.lists(st.sampled_from(["A", "B", "C", "<b>", 1, 2, ""]), min_size=2, max_size=4),
    "horizon": st.integers(1, 10**16),
    "settings": SETTINGS,
    "rewards": st.lists(
        st.fixed_dictionaries({"id": st.integers(1, 30).map(str), "reward": st.floats(-1, 1) | st.booleans()})
    ),
    "actions": st.lists(st.lists(st.floats(-1, 1), min_size=2, max_size=2), min_size=1, max_size=3),
    "count": st.integers(1, 3),
}


def judged(case: Any, tally: Counter[str]) -> None:
    """Send a request, and hold its answer against the document."""
    answer = case.call()
    tally[f"{case.method} {case.path} {answer.status_code}"] += 1
    assert answer.status_code < 500, f"{case.as_curl_command()}\n{answer.text}"
    if answer.status_code >= 400:
        error = answer.json()["error"]
        assert set(error) == FIELDS, answer.text
        assert error["message"], answer.text
    case.validate_response(
        answer,
        checks=[
            schemathesis.checks.CHECKS.get_one(name)
            for name in (
                "not_a_server_error",
                "status_code_conformance",
                "content_type_conformance",
                "response_schema_conformance",
            )
        ],
    )


def sender(strategy: Any, tally: Counter[str]) -> Any:
    """A test that draws a request, often one for an experiment that exists, and judges the answer."""

    def send(data: Any) -> None:
        case = data.draw(strategy)
        if "name" in (case.path_parameters or {}) and data.draw(st.booleans()):
            case.path_parameters["name"] = data.draw(NAMES)
        if isinstance(case.body, dict) and data.draw(st.booleans()):
            made = {"arms"} if "policy" in case.body else set()
            for field in sorted(LIKELY.keys() & (case.body.keys() | made)):
                case.body[field] = data.draw(LIKELY[field])
            if made:
                case.body.pop("dim", None)
        judged(case, tally)

    return send


def play(requests: int, number: int = 1, store: str = "memory") -> Counter[str]:
    """Send so many requests to each route; what was answered how often."""
    office = Office(open_journal(store))
    for one in BEGUN:
        office.create(**one)
    app = build_app(office, names=["testserver"])
    tally: Counter[str] = Counter()
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    rules = settings(
        max_examples=requests, deadline=None, database=None, suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )  # fmt: skip
    try:
        for found in schema.get_all_operations():
            operation = found.ok()
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                strategy = operation.as_strategy(generation_mode=mode)
                with suppress(Unsatisfiable):  # a route without arguments has no wrong ones
                    rules(seed(number)(given(data=st.data())(sender(strategy, tally))))()
    finally:
        office.close()
    return tally


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--requests", type=int, default=500, help="per route and kind")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--store", default="memory", help="a new SQLite file, or a database")
    chosen = options.parse_args()
    tally = play(chosen.requests, chosen.seed, chosen.store)
    for line, count in sorted(tally.items()):
        print(f"{count:7d} {line}")
    print(f"{sum(tally.values())} requests, and every answer was in order")
    return 0


if __name__ == "__main__":
    sys.exit(main())
