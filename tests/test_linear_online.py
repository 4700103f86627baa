"""Live linear experiments: late, repeated and missing rewards, the state as text, balls and boxes."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_cases import LIGHT, OFUL, OWN, THOMPSON, unit_rows

import lighttail as lt

POLICIES = [LIGHT, OFUL, OWN, THOMPSON]
DIM = 3
SETS = [
    unit_rows(5, DIM, 1),
    unit_rows(2, DIM, 2),
    unit_rows(7, DIM, 3),
    lt.BallSet(DIM),
    lt.BoxSet([-0.5] * 3, [0.5] * 3),
]
scripts = st.lists(
    st.tuples(st.sampled_from(["ask", "ask", "tell", "save"]), st.integers(0, 99), st.integers(-3, 3)),
    min_size=5,
    max_size=40,
)


def start(policy: Any = LIGHT, **given: Any) -> lt.LinearExperiment:
    return lt.LinearExperiment(policy, **{"dim": DIM, "seed": 3, **given})


def copy(experiment: lt.LinearExperiment) -> lt.LinearExperiment:
    return lt.LinearExperiment.from_json(experiment.to_json())


@settings(deadline=None, max_examples=40, derandomize=True)
@given(scripts, st.sampled_from(POLICIES))
def test_a_copy_through_text_continues_exactly(script: Any, policy: Any) -> None:
    """Any interleaving of asks, tells (late, repeated, never) and copies; the actions change all the time."""
    players, told, asked = [start(policy), start(policy)], {}, 0
    for step, which, reward in script:
        if step == "ask":
            asked += 1
            first, second = (player.ask(SETS[which % len(SETS)]) for player in players)
            assert first == second
        elif step == "save":
            players[1] = copy(players[1])
        elif asked:
            id = 1 + which % asked
            for player in players:
                player.tell(id, told.setdefault(id, reward))
    assert players[0].to_json() == players[1].to_json()
    assert players[0].open_trials == players[1].open_trials
    assert len(players[0].open_trials) == asked - len(told)


def test_rewards_in_any_order_give_the_same_estimate() -> None:
    rows, rewards = unit_rows(5, DIM), [0.5, -1.0, 2.0, 0.25]
    one, other = start(), start()
    for experiment in (one, other):
        for _ in rewards:
            experiment.ask(rows)
    for id in (1, 2, 3, 4):
        one.tell(id, rewards[id - 1])
    for id in (3, 1, 4, 2):
        other.tell(id, rewards[id - 1])
        other.tell(id, rewards[id - 1])  # once more: ignored
    assert np.allclose(one.estimate, other.estimate, rtol=0, atol=1e-15)
    actions = np.array([trial.action for trial in taken(one)])
    direct = np.linalg.solve(np.eye(DIM) + actions.T @ actions, actions.T @ rewards)
    assert np.allclose(one.estimate, direct, atol=1e-14)


def taken(experiment: lt.LinearExperiment) -> list[lt.LinearTrial]:
    state = json.loads(experiment.to_json())["trials"]
    return [lt.LinearTrial(1, None, tuple(action)) for action in state["action"]]


def test_an_open_trial_narrows_the_radius_and_does_not_move_the_estimate() -> None:
    """A batch without rewards spreads over the actions."""
    experiment = start(lt.LinearUCB(lt.LinearStandard(1.0)))
    batch = [experiment.ask(np.eye(DIM)).arm for _ in range(2 * DIM)]
    assert sorted(batch[:DIM]) == sorted(batch[DIM:]) == [0, 1, 2]
    assert experiment.estimate.tolist() == [0.0, 0.0, 0.0]


def test_a_reward_told_differently_and_unknown_ids_change_nothing() -> None:
    experiment = start()
    experiment.ask(np.eye(DIM), labels=["A", "B", "C"])
    experiment.tell(1, 0.5)
    before = experiment.to_json()
    for id, reward, sentence in (
        (1, 0.75, "reward must be 0.5, which was told before for trial 1, but is 0.75"),
        (2, 0.5, "id must be the id of a trial that was asked"),
        (1, math.nan, "reward must be a finite number, but is nan"),
        (1, "x", "reward must be a finite number, but is 'x'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            experiment.tell(id, reward)
    assert experiment.to_json() == before


def test_labels_name_the_action_and_survive() -> None:
    experiment = start()
    trial = experiment.ask(np.eye(DIM), labels=["A", 7, "C"])
    assert np.eye(DIM)[["A", 7, "C"].index(trial.arm)].tolist() == list(trial.action)
    assert copy(experiment).open_trials == [trial]
    assert repr(experiment) == "<LinearExperiment: LinearUCB + LightTailed(0.2), dim 3, 1 trials, 1 open>"


def test_the_horizon_is_over_once() -> None:
    experiment = start(horizon=2)
    experiment.ask(np.eye(DIM))
    experiment.ask(np.eye(DIM))
    with pytest.warns(UserWarning, match="the horizon of 2 pulls is over") as caught:
        experiment.ask(np.eye(DIM))
    assert caught[0].filename == __file__
    experiment.ask(np.eye(DIM))


ASKED = {
    "empty": ([], None, "actions must be at least one row of 3 numbers"),
    "no rows": (np.empty((0, 3)), None, "actions must be at least one row of 3 numbers"),
    "another dimension": (
        np.eye(2),
        None,
        "actions must be of the shape (A, 3), one row per action, but is (2, 2)",
    ),
    "one row without brackets": ([1.0, 0.0, 0.0], None, "actions must be of the shape (A, 3)"),
    "nan": ([[1.0, 0.0, math.nan]], None, "actions[0][2] must be a finite number"),
    "infinite": ([[1.0, 0.0, 0.0], [math.inf, 0.0, 0.0]], None, "actions[1][0] must be a finite number"),
    "zeros": ([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], None, "actions[1] must be a row that is not all zeros"),
    "ragged": ([[1.0, 0.0, 0.0], [0.0]], None, "actions must be rows of 3 numbers"),
    "text": ("abc", None, "actions must be"),
    "a label twice": (np.eye(3), ["A", "B", "A"], "labels must be different from each other"),
    "too few labels": (np.eye(3), ["A", "B"], "labels must be a list of 3 names, one per action"),
    "labels that are no names": (np.eye(3), [1.5, 2.5, 3.5], "labels must be names that are text or whole"),
    "a ball of another dimension": (lt.BallSet(2), None, "actions must be of dimension 3"),
    "a ball with labels": (lt.BallSet(3), ["A"], "labels must be left out"),
}


@pytest.mark.parametrize("name", ASKED)
def test_actions_that_cannot_be_are_refused_and_change_nothing(name: str) -> None:
    actions, labels, sentence = ASKED[name]
    experiment = start()
    experiment.ask(np.eye(DIM))
    before = experiment.to_json()
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        experiment.ask(actions, labels=labels)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)
    assert experiment.to_json() == before


def changed(**changes: Any) -> str:
    experiment = start()
    experiment.ask(np.eye(DIM))
    return json.dumps({**json.loads(experiment.to_json()), **changes})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "not an experiment that lighttail wrote"),
        (
            changed(lighttail="experiment"),
            "format must be 1, 2 or 3 of a linear experiment, but is 1 of 'experiment'",
        ),
        (changed(format=4), "but is 4 of 'linear experiment'"),
        (changed(dim=2), "the length of rule.asked must be 2, but is 3"),
        (changed(dim="3"), "dim must be a whole number"),
        (changed(rule={}), "not a whole experiment"),
        (changed(trials=None), "not a whole experiment"),
        (changed(trials={"action": [], "label": [], "reward": []}), "its sums do not fit its trials"),
        (changed(policy={"type": "lighttail.policies:UCB"}), "not a whole experiment"),
    ],
)
def test_other_text_is_refused_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        lt.LinearExperiment.from_json(text)
    assert "\n" not in str(caught.value)
    assert lt.LinearExperiment.from_json(changed(format=1)).dim == DIM  # the control is accepted


def test_an_experiment_of_arms_refuses_a_linear_policy_and_the_other_way_round() -> None:
    with pytest.raises(ValueError, match="policy must be a policy for arms"):
        lt.Experiment(LIGHT, ["A", "B"])
    with pytest.raises(ValueError, match="policy must be a linear policy"):
        start(lt.UCB(lt.AnyTime(0.3)))


@pytest.mark.filterwarnings("ignore:the paper's theorem")
def test_an_ill_conditioned_v_is_served() -> None:
    rows = np.array([[1e9, 1e9, 0.0], [1e9, 1e9 + 1.0, 0.0], [1e-9, 0.0, 1e-9]])
    for policy in POLICIES:
        experiment = start(policy)
        for _ in range(30):
            experiment.tell(experiment.ask(rows).id, 0.5)
        assert np.all(np.isfinite(experiment.estimate))


def grid(dim: int, box: bool) -> np.ndarray:
    """A fine grid over the box [-0.4, 0.7]^dim, or over the unit sphere."""
    if box:
        axis = np.linspace(-0.4, 0.7, 111 if dim == 2 else 41)
        return np.stack(np.meshgrid(*[axis] * dim), axis=-1).reshape(-1, dim)
    angle = np.linspace(0.0, 2.0 * np.pi, 2001 if dim == 2 else 401)
    if dim == 2:
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    height = np.linspace(-1.0, 1.0, 301)
    ring = np.sqrt(1.0 - height**2)[:, None]
    flat = np.broadcast_arrays(ring * np.cos(angle), ring * np.sin(angle), height[:, None])
    return np.stack(flat, axis=-1).reshape(-1, 3)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("box", [False, True], ids=["ball", "box"])
def test_the_heuristic_is_no_worse_than_a_fine_grid(dim: int, box: bool) -> None:
    """Two hundred indices; with a single start and no climb it would be (negative control)."""
    rng, points = np.random.default_rng(dim), grid(dim, box)
    searched = lt.BoxSet([-0.4] * dim, [0.7] * dim) if box else lt.BallSet(dim)
    shortfall, without = [], []
    for _ in range(200):
        theta, seen = rng.uniform(-1, 1, dim), rng.standard_normal((rng.integers(1, 12), dim))
        inverse = np.linalg.inv(np.eye(dim) + seen.T @ seen)
        bonus = lt.LinearLightTailed(rng.uniform(0.05, 2.0))
        params = bonus.params(math.nan, dim)
        clock = bonus.clock(float(rng.integers(1, 500)), 0.0, 1.0, *params)
        radius = lambda z, c=clock, p=params, b=bonus: b.radius(z, c, *p)  # noqa: E731
        action, value = searched.highest(theta, inverse, radius, rng)
        width = np.einsum("ni,ij,nj->n", points, inverse, points)
        best = float(np.max(points @ theta + width * clock + math.sqrt(dim) * np.sqrt(width)))
        own = action @ inverse @ action
        assert value == pytest.approx(action @ theta + own * clock + math.sqrt(dim * own), rel=1e-12)
        shortfall.append(best - value)
        greedy = searched.furthest(theta[None])[0]
        without.append(best - (greedy @ theta + radius(float(greedy @ inverse @ greedy))))
    assert max(shortfall) < 1e-9
    assert max(without) > 0.1


def test_thompson_sampling_over_a_ball_is_exact() -> None:
    experiment = start(lt.LinearThompson(1e-9))
    for row in np.eye(DIM):
        trial = experiment.ask([row])
        experiment.tell(trial.id, float(row @ [0.3, -0.6, 0.2]))
    ball = np.array(experiment.ask(lt.BallSet(DIM)).action)
    box = experiment.ask(lt.BoxSet([-1.0] * 3, [2.0] * 3)).action
    assert np.allclose(ball, np.array([0.3, -0.6, 0.2]) / 0.7, atol=1e-6)
    assert box == (2.0, -1.0, 2.0)
