"""The oracle of the tilted paths: `Experiment` plays them, and weights come from whole likelihoods."""

from __future__ import annotations

import math

import numpy as np

import lighttail as lt
from lighttail.random.streams import block_generator, uniform
from lighttail.tails.mixture import Mixture
from lighttail.tails.task import Task


def drawn(u: float, log_weights: np.ndarray) -> int:
    for place, weight in enumerate(np.exp(log_weights)[:-1]):
        u -= weight
        if u < 0.0:
            return place
    return log_weights.size - 1


def log_density(noise: lt.Noise, reward: float, mean: float) -> float:
    if isinstance(noise, lt.Bernoulli):
        return math.log(mean if reward == 1.0 else 1.0 - mean)
    return -0.5 * ((reward - mean) / noise.sigma) ** 2


def play(task: Task, mixture: Mixture, seed: int, paths: int) -> tuple[np.ndarray, np.ndarray]:
    """(log-likelihood ratio of each group, rounds) of the paths of block 0, pull by pull."""
    noise, problem = task.problem.noise, task.problem
    rng = block_generator(seed, 0)
    _, *rest = noise.world(problem.means)
    groups = mixture.groups.size - 1
    log_parts, rounds = np.full((paths, groups), -math.inf), np.zeros(paths, dtype=np.int64)
    for path in range(paths):
        component = drawn(uniform(rng), mixture.log_p)
        choice = [0] * problem.arms
        if mixture.lam.shape[2] > 1:
            choice = [drawn(uniform(rng), mixture.log_q[component, arm]) for arm in range(problem.arms)]
        experiment = lt.Experiment(task.policy, range(problem.arms), horizon=task.horizon, seed=rng)
        first = np.array([mixture.means[component, arm, i] for arm, i in enumerate(choice)])
        caps = np.array([mixture.caps[component, arm, i] for arm, i in enumerate(choice)])
        history: list[tuple[int, float]] = []
        loss, hit = 0.0, False
        for t in range(1, task.horizon + 1):
            pulls = np.array([sum(arm == k for arm, _ in history) for k in range(problem.arms)])
            now = np.where(pulls < caps, first, mixture.later_means[component])
            if task.kind == "regret" and t == task.horizon:
                now = mixture.later_means[component]
            shock = noise.shock(rng, now, *rest)
            trial = experiment.ask()
            loss += problem.gaps[trial.arm]
            rounds[path] = t
            if task.kind == "pseudo_regret":
                standing = experiment._standing
                last = standing.rule.settled(standing.note)
                rest_gap = max(problem.gaps) if last < 0 else problem.gaps[last]
                sure = loss if last < 0 else loss + rest_gap * (task.horizon - t)
                hit = sure >= task.target
                if hit or loss + rest_gap * (task.horizon - t) < task.target:
                    break
            reward = float(noise.reward(shock, trial.arm, now, *rest))
            experiment.tell(trial.id, reward)
            history.append((trial.arm, reward))
        if task.kind == "regret":
            hit = max(problem.means) * task.horizon - sum(r for _, r in history) >= task.target
        if hit:
            for g in range(groups):
                span = range(mixture.groups[g], mixture.groups[g + 1])
                values = [_log_component(task, mixture, c, history) for c in span]
                log_parts[path, g] = np.logaddexp.reduce(values)
    return log_parts, rounds


def _log_component(task: Task, mixture: Mixture, component: int, history: list) -> float:
    """Log of a component's share and likelihood over the true one, reward by reward."""
    noise, true = task.problem.noise, task.problem.means
    last = len(history) - 1 if task.kind == "regret" else len(history)  # of the tilted rewards
    value = float(mixture.log_p[component])
    for arm in range(task.problem.arms):
        mine = [(place, reward) for place, (a, reward) in enumerate(history) if a == arm]
        choices = []
        for i, mean in enumerate(mixture.means[component, arm]):
            term = float(mixture.log_q[component, arm, i])
            if math.isinf(term):
                continue
            for number, (place, reward) in enumerate(mine):
                tilted = number < mixture.caps[component, arm, i] and place < last
                under = mean if tilted else mixture.later_means[component, arm]
                if isinstance(noise, lt.Bernoulli) and not 1e-9 < under < 1.0 - 1e-9:
                    # So close to 0 or 1 the mean itself has lost its digits; the tilt has not.
                    term += mixture.lam[component, arm, i] * reward - mixture.psi[component, arm, i]
                    continue
                term += log_density(noise, reward, under) - log_density(noise, reward, true[arm])
            choices.append(term)
        value += float(np.logaddexp.reduce(choices))
    return value
