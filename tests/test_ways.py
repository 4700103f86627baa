"""A call reads like a story: few files, each entered once or hardly more often, and one loop for all work."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from house import SOURCES, entered, files
from own_noises import Silent

import lighttail as lt
from lighttail import problems
from lighttail.checks import BadInput

POLICY, PROBLEM = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])
ON_THE_WAY = ("running", "outcomes")  # prepare, play blocks on a pool, keep, outcome, statistics
MOST_ON_THE_WAY = 8  # files of these rooms that `simulate` and then an estimate enter
MOST_FILES = 25  # with those of the problem, the policy, noise, bonus, what these share, checks and kernel
MOST_ENTERED = {  # a thread that plays a block enters `kept` and `blocks` once more
    "running/simulate.py": 1,
    "running/prepare.py": 1,
    "running/pool.py": 1,
    "running/blocks.py": 4,
    "running/kept.py": 3,
    "outcomes/outcome.py": 2,  # a record asks it for the losses of pulls
    "outcomes/estimates.py": 1,
    "system/memory.py": 1,
    "system/progress.py": 3,
}
LOOPS = {"wait", "as_completed"}  # of `concurrent.futures`, which only a scheduler needs


def simulated(problem: Any = PROBLEM) -> Any:
    settings: Any = {"horizon": 50, "paths": 10, "seed": 1, "threads": 1}
    return lt.simulate(POLICY, problem, **settings).exceedance(5.0, "regret")


def too_much(found: dict[str, int]) -> list[str]:
    """The files that are entered more often than they may be, "files" if there are too many, and "way" if
    too many lie on the way itself."""
    often = [file for file, most in MOST_ENTERED.items() if found[file] > most]
    way = [file for file in found if file.startswith(ON_THE_WAY)]
    return often + ["files"] * (len(found) > MOST_FILES) + ["way"] * (len(way) > MOST_ON_THE_WAY)


def test_simulate_and_an_estimate_enter_few_files_and_each_seldom() -> None:
    simulated()  # compiles, imports and tries out what is new
    found = entered(simulated)
    assert too_much(found) == [], found
    assert found.keys() >= MOST_ENTERED.keys()


def test_a_way_that_goes_to_and_fro_is_noticed() -> None:
    """Negative controls: a call that is made twice, and a foreign noise, which is tried in every call."""
    simulated()
    assert "running/simulate.py" in too_much(entered(lambda: (simulated(), simulated())))
    foreign = lt.Bandit([0.2, 0.8], Silent())
    simulated(foreign)
    assert "files" in too_much(entered(lambda: simulated(foreign)))
    counted: Any = {"horizon": 50, "paths": 10, "seed": 1, "threads": 1, "keep": "law"}
    detour = entered(lambda: (simulated(), lt.simulate(POLICY, PROBLEM, **counted)))
    assert "way" in too_much(detour)  # a law is counted by one more file


def test_a_shipped_noise_is_tried_once_and_any_other_always(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Any] = []
    real = problems.try_noise
    monkeypatch.setattr(problems, "try_noise", lambda *given: tries.append(given[0]) or real(*given))
    ours, theirs = lt.Bandit([0.2, 0.8], lt.Gaussian(0.7)), lt.Bandit([0.2, 0.8], Silent())
    for problem, times in ((ours, 1), (theirs, 2), (lt.Bandit([0.2, 0.9], ours.noise), 1)):
        tries.clear()
        problem.check(POLICY, 50)
        problem.check(POLICY, 50)
        assert len(tries) == times
    ours.check(POLICY, 50)
    tries.clear()
    with monkeypatch.context() as changed:  # the class is another one now
        changed.setattr(lt.Gaussian, "reward", staticmethod(lambda shock, arm, *world: float("nan")))
        with pytest.raises(BadInput, match="a finite number"):
            ours.check(POLICY, 50)
    assert len(tries) == 1


def loops_in(source: str) -> set[str]:
    """What of `concurrent.futures` a file imports to wait for several tasks."""
    return {
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module == "concurrent.futures"
        for alias in node.names
        if alias.name in LOOPS
    }


def test_one_loop_runs_all_tasks() -> None:
    found = {str(file.relative_to(SOURCES)): loops_in(file.read_text()) for file in files()}
    assert {file for file, names in found.items() if names} == {"running/pool.py"}
    assert loops_in("from concurrent.futures import Executor, wait as later") == {"wait"}  # the control
