"""The oracle of the tilted paths: `Experiment` plays them, and weights come from whole likelihoods."""

from __future__ import annotations

import math

import numpy as np

import lighttail as lt
from lighttail.streams import block_generator, uniform
from lighttail.tails.rare import Task


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


def play(task: Task, seed: int, paths: int) -> tuple[np.ndarray, np.ndarray]:
    """(log weight, rounds) of the paths of block 0, pull by pull."""
    plan, noise, problem = task.plan(), task.problem.noise, task.problem
    mixture, rng = plan.mixture, block_generator(seed, 0)
    _, *rest = noise.world(problem.means)
    log_weight, rounds = np.full(paths, -math.inf), np.zeros(paths, dtype=np.int64)
    for path in range(paths):
        component = drawn(uniform(rng), mixture.log_p)
        choice = [0] * problem.arms
        if mixture.lam.shape[2] > 1:
            choice = [drawn(uniform(rng), mixture.log_q[component, arm]) for arm in range(problem.arms)]
        experiment = lt.Experiment(task.policy, range(problem.arms), horizon=task.horizon, seed=rng)
        own = np.array([mixture.means[component, arm, i] for arm, i in enumerate(choice)])
        history: list[tuple[int, float]] = []
        switches = [math.inf] * mixture.losses.size  # pulls before the switch of each stage
        loss, hit = 0.0, False
        for t in range(1, task.horizon + 1):
            switched = switches[mixture.stage[component]] < math.inf
            shock = noise.shock(rng, own, *rest)
            trial = experiment.ask()
            loss += problem.gaps[trial.arm]
            active = getattr(experiment._rule, "active", range(problem.arms))
            over = plan.watch.size > 0 and not set(plan.watch) & set(active)
            for stage, level in enumerate(mixture.losses):
                if (over or loss >= level) and math.isinf(switches[stage]):
                    switches[stage] = len(history)
            if switches[mixture.stage[component]] < math.inf and not switched:
                own = mixture.later_means[component]
            rounds[path] = t
            if task.kind == "pseudo_regret":
                last = active[0] if len(active) == 1 else None
                rest_gap = max(problem.gaps) if last is None else problem.gaps[last]
                sure = loss if last is None else loss + rest_gap * (task.horizon - t)
                hit = sure >= task.target
                if hit or loss + rest_gap * (task.horizon - t) < task.target:
                    break
            pulls = sum(arm == trial.arm for arm, _ in history)
            mean = own[trial.arm]
            if math.isinf(switches[mixture.stage[component]]) and pulls >= plan.caps[trial.arm]:
                mean = problem.means[trial.arm]
            means = own.copy()
            means[trial.arm] = mean
            reward = float(noise.reward(shock, trial.arm, means, *rest))
            experiment.tell(trial.id, reward)
            history.append((trial.arm, reward))
        if task.kind == "regret":
            hit = max(problem.means) * task.horizon - sum(r for _, r in history) >= task.target
        if hit:
            log_weight[path] = -_log_mixture(task, plan, history, switches)
    return log_weight, rounds


def _log_mixture(task: Task, plan, history: list, switches: list) -> float:
    """Log of the mixture's likelihood over the true one, reward by reward."""
    mixture, noise, true = plan.mixture, task.problem.noise, task.problem.means
    values = []
    for component in range(mixture.log_p.size):
        until = switches[mixture.stage[component]]
        value = mixture.log_p[component]
        for arm in range(task.problem.arms):
            mine = [(place, reward) for place, (a, reward) in enumerate(history) if a == arm]
            early = [reward for place, reward in mine if place < until][: int(min(plan.caps[arm], 1e9))]
            late = [reward for place, reward in mine if place >= until]
            choices = [
                mixture.log_q[component, arm, i]
                + sum(log_density(noise, r, m) - log_density(noise, r, true[arm]) for r in early)
                for i, m in enumerate(mixture.means[component, arm])
            ]
            value += np.logaddexp.reduce(choices)
            m = mixture.later_means[component, arm]
            value += sum(log_density(noise, r, m) - log_density(noise, r, true[arm]) for r in late)
        values.append(value)
    return float(np.logaddexp.reduce(values))
