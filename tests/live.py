"""Live experiments for the tests: a start, a copy through text, any interleaving of asks and tells."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import lighttail as lt

ARMS = ["A", "B", "C"]

# (what to do, which trial it concerns, with which reward); a tell may concern a trial told before.
scripts = st.lists(
    st.tuples(st.sampled_from(["ask", "ask", "tell", "save"]), st.integers(0, 99), st.integers(-3, 3)),
    min_size=5,
    max_size=80,
)


def start(policy: lt.Policy, arms: Any = ARMS, **settings: Any) -> lt.Experiment:
    return lt.Experiment(policy, arms, **{"horizon": 200, "seed": 3, **settings})


def copy(experiment: lt.Experiment) -> lt.Experiment:
    return lt.Experiment.from_json(experiment.to_json())


def follow(script: Any, *experiments: lt.Experiment, shift: float = 0, told: Any = None) -> list[Any]:
    """The trials that each experiment asks for; all but the first go through text at every save."""
    players = list(experiments)
    told = {} if told is None else told
    trials = []
    for step, which, reward in script:
        asked = sum(players[0].pulls.values())
        if step == "ask":
            trials.append([experiment.ask() for experiment in players])
        elif step == "save":
            players[1:] = [copy(experiment) for experiment in players[1:]]
        elif asked:
            id = 1 + which % asked
            for experiment in players:
                experiment.tell(id, told.setdefault(id, reward + shift))
    ends = {experiment.to_json() for experiment in players}
    assert len(ends) == 1, "the experiments end in different states"
    return trials
