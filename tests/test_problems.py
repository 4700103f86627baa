"""All problems answer the same questions, and nothing asks of which class a problem or a noise is."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lighttail as lt
from lighttail.problems import Problem, has_arms
from lighttail.records import Counts, Losses, Record, from_columns

SOURCES = Path(lt.__file__).parent
ARMS = lt.Bandit([0.2, 0.8, 0.5], lt.Bernoulli(), labels=["a", "b", "c"])
FIXED = lt.LinearBandit([0.5, 0.2], [[1.0, 0.0], [0.0, 1.0]])
CHANGING = lt.LinearBandit([0.5, 0.2], lt.SphereActions(3))
UCB, LINEAR = lt.UCB(lt.LightTailed(0.2)), lt.LinearUCB(lt.LinearLightTailed(0.2))
CASES: dict[str, tuple[Problem, lt.Policy, type[Record], int]] = {
    "arms": (ARMS, UCB, Counts, 3),
    "fixed actions": (FIXED, LINEAR, Counts, 2),
    "changing actions": (CHANGING, LINEAR, Losses, 2),
}


def kinds_below(base: type) -> list[type]:
    """A class and all that lighttail derives from it."""
    below = [kind for child in base.__subclasses__() for kind in kinds_below(child)]
    return [kind for kind in (base, *below) if kind.__module__.startswith("lighttail.")]


CLASSES = {
    *("FixedActions", "ContextActions", "SphereActions", "BallActions"),
    *(
        kind.__name__
        for base in (Problem, lt.Noise, lt.Policy, lt.Bonus, lt.LinearBonus)
        for kind in kinds_below(base)
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_problem_says_what_is_written_down_of_its_paths(case: str) -> None:
    problem, policy, kind, width = CASES[case]
    room = problem.room(4)
    assert type(room) is kind
    assert (room.paths, room.width) == (4, width)
    out = lt.simulate(policy, problem, horizon=30, paths=4, seed=1)
    assert type(out.record) is kind
    assert (out.pulls is None) == (kind is Losses)
    assert out.most == problem.most_lost(30)
    assert out.pseudo_regret.max() <= problem.most_lost(30) * (1.0 + 1e-12)
    assert problem.worst_loss(30) <= problem.most_lost(30)


@pytest.mark.parametrize("case", CASES)
def test_a_problem_refuses_what_cannot_be_played_on_it(case: str) -> None:
    problem, policy, *_ = CASES[case]
    assert problem.check(policy, 30) == 30
    with pytest.raises(ValueError, match=r"^policy must be .*, with a (Linear)?Bandit, but is "):
        problem.check(LINEAR if policy is UCB else UCB, 30)
    with pytest.raises(ValueError, match=r"^horizon must be a whole number of at least "):
        problem.check(policy, 0)
    assert has_arms(problem) == (policy is UCB)
    assert not has_arms("a problem")


def test_names_of_arms_decide_no_path_and_theta_does() -> None:
    assert ARMS.played() == lt.Bandit(ARMS.means, ARMS.noise).played()
    assert FIXED.played() != lt.LinearBandit([0.5, 0.3], [[1.0, 0.0], [0.0, 1.0]]).played()


@pytest.mark.parametrize("table", [np.array([[1, 2], [3, 4]]), np.array([[1.0, 2.0], [3.0, 4.0]])])
def test_a_record_means_what_its_type_says_whatever_its_numbers_are(table: Any) -> None:
    counts, losses = Counts(np.zeros(2), table), Losses(np.zeros(2), table)
    assert list(counts.columns()) == ["reward", "pulls_1", "pulls_2"]
    assert list(losses.columns()) == ["reward", "best", "lost"]
    assert losses.pulls is None
    assert not hasattr(counts, "lost")
    assert [counts.sound(), losses.sound()] == [table.dtype == np.int64, table.dtype == np.float64]
    for record in (counts, losses):
        again = from_columns(record.columns())
        assert type(again) is type(record)
        assert again.tobytes() == record.tobytes()
        assert record.rows(slice(1, 2)).table.tolist() == [[3, 4]]
    with pytest.raises(ValueError, match="no kind of record has the columns reward, lost, best"):
        from_columns({"reward": np.zeros(2), "lost": table[:, 0], "best": table[:, 1]})


def asked_classes(source: str) -> list[str]:
    """The classes of policies, problems, noises and actions that a source asks something about."""
    found = []
    for node in ast.walk(ast.parse(source)):
        asked: list[ast.expr] = []
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            asked = [node.args[1]]
        elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        names = {part.id for one in asked for part in ast.walk(one) if isinstance(part, ast.Name)}
        found += sorted(names & CLASSES)
    return found


# What a caller hands in is checked once each, and a Resampled equals another one. Policies are looked up in
# three tables: kernels/accelerations.py, gpu/accelerations.py and bounds/proved.py.
ALLOWED = {
    "problems.py": ["Problem", "Noise"],
    "noises/noise.py": ["Resampled", "Noise"],
    "policies/bonus_policies.py": ["Bonus"],
    "linear/policies.py": ["LinearBonus"],
    "linear/problem.py": ["Noise"],
    "running/prepare.py": ["Policy", "Problem"],
    "online/experiment.py": ["Policy"],
    "online/linear.py": ["LinearPolicy"],
    "bounds/bound.py": ["Policy"],
    "bounds/chances.py": ["AnyTime"],  # a part of the table of what is proved
    "compare.py": ["Policy"],
    "families.py": ["Bandit", "Bandit", "Bandit"],
    "planning/curves.py": ["Policy"],
    "tails/groups.py": ["Policy"],
    "tails/luck.py": ["Noise"],
}


def test_nothing_asks_of_which_class_a_policy_a_problem_or_a_noise_is() -> None:
    found = {
        str(file.relative_to(SOURCES)): asked_classes(file.read_text()) for file in SOURCES.rglob("*.py")
    }
    for file, names in found.items():
        assert set(names) <= set(ALLOWED.get(file, [])), file
        assert len(names) <= len(ALLOWED.get(file, [])), file


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(problem, LinearBandit)",
        "type(noise) is Gaussian",
        "isinstance(policy, UCB)",
        "match policy:\n    case SuccessiveElimination():\n        pass",
        "isinstance(x, (Bernoulli, int))",
        "match problem:\n    case Bandit():\n        pass",
    ],
)
def test_the_check_notices_such_a_question(source: str) -> None:
    """Negative control."""
    assert len(asked_classes(source)) == 1
