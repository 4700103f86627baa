"""Paths under a mixture of tilted laws, each with the weight that undoes the tilt.

A path draws one component of the mixture: a mean for every arm. It plays with these means until
its switch, which comes when the loss reaches the component's own level, and with the component's
second means after that. At the end its weight is the ratio of its likelihood under the true means
to that under the whole mixture.

An arm's rewards belong to an exponential family, so all that matters of them is how many there
were and their sum: a tilt by `lam` has log-likelihood ratio lam * sum - number * psi.
The mixture's arrays are those of `lighttail.tails.plan.Mixture`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import register_jitable

from lighttail.kernels.build import BREATH, Formula, compiler, digest, prepare
from lighttail.kernels.rules import Rule
from lighttail.streams import uniform


@register_jitable
def drawn(u: Any, log_weights: Any) -> Any:
    """The place that the uniform u picks among weights that sum to 1."""
    last = log_weights.size - 1
    for i in range(last):
        u -= math.exp(log_weights[i])
        if u < 0.0:
            return i
    return last


@register_jitable
def log_mixture(mixture: Any, n: Any, s: Any, n_end: Any, s_end: Any) -> Any:
    """Log of the mixture's likelihood over the true one; n, s: [switch, arm] pulls and sums."""
    top, total = -math.inf, 0.0
    arms, choices = mixture.lam.shape[1], mixture.lam.shape[2]
    for c in range(mixture.log_p.size):
        at = mixture.stage[c]
        value = mixture.log_p[c]
        for k in range(arms):
            if choices == 1:
                value += mixture.lam[c, k, 0] * s[at, k] - n[at, k] * mixture.psi[c, k, 0]
            else:
                high, inner = -math.inf, 0.0
                for i in range(choices):
                    e = mixture.log_q[c, k, i] + mixture.lam[c, k, i] * s[at, k]
                    e -= mixture.psi[c, k, i] * n[at, k]
                    if e > high:
                        inner = inner * math.exp(high - e) + 1.0
                        high = e
                    elif e > high - 40.0:
                        inner += math.exp(e - high)
                value += high + math.log(inner)
            value += mixture.later_lam[c, k] * (s_end[k] - s[at, k])
            value -= mixture.later_psi[c, k] * (n_end[k] - n[at, k])
        if value > top:
            total = total * math.exp(top - value) + 1.0
            top = value
        elif value > top - 40.0:
            total += math.exp(value - top)
    return top + math.log(total)


def tilted_kernel(rule_of: Callable[..., Rule], *formulas: Formula) -> Any:
    """The kernel that plays a rule's paths under a mixture; shock and reward are the last formulas.

    means, rest: the problem's true means and the other numbers that its noise takes. gaps: loss of
    one pull of each arm. watch: arms whose end, if the rule ends arms for good, is a switch for all
    components. caps: pulls of each arm that are tilted at most. target: the loss, or with `whole`
    the regret, that makes a path count. log_weight is -inf for a path that does not count; rounds
    are those played until that was decided.
    """
    choose, learn, last, gone, start = rule_of(*formulas[:-2])
    shock, reward = prepare(formulas[-2]), prepare(formulas[-1])
    version = digest(*formulas)

    @compiler(*formulas)
    def kernel(
        rng: Any,
        params: Any,
        means: Any,
        rest: Any,
        mixture: Any,
        gaps: Any,
        watch: Any,
        caps: Any,
        horizon: Any,
        target: Any,
        whole: Any,
        log_weight: Any,
        rounds: Any,
        stop: Any,
    ) -> None:
        version  # noqa: B018  (a free variable, hence part of the cache's key)
        arms, stages = means.size, mixture.losses.size
        n, s, note = np.empty(arms), np.empty(arms), np.empty(arms)
        current, capped = np.empty(arms), np.empty(arms)
        n_at, s_at = np.empty((stages, arms)), np.empty((stages, arms))
        worst, best = gaps.max(), means.max()
        breath = 0
        for path in range(rounds.size):
            c = drawn(uniform(rng), mixture.log_p)
            for k in range(arms):
                n[k] = s[k] = capped[k] = 0.0
                note[k] = start
                i = drawn(uniform(rng), mixture.log_q[c, k]) if mixture.log_q.shape[2] > 1 else 0
                current[k] = mixture.means[c, k, i]
            reached, t, loss = 0, 0, 0.0
            hit = decided = False
            while t < horizon and not decided:
                t += 1
                z = shock(rng, current, *rest)
                arm = choose(rng, float(t), n, s, note, params)
                loss += gaps[arm]
                over = gone(note, watch)
                while reached < stages and (over or loss >= mixture.losses[reached]):
                    for k in range(arms):
                        # What was drawn beyond its cap was drawn without a tilt.
                        n_at[reached, k] = min(n[k], caps[k])
                        s_at[reached, k] = s[k] if n[k] <= caps[k] else capped[k]
                    if mixture.stage[c] == reached:
                        for k in range(arms):
                            current[k] = mixture.later_means[c, k]
                    reached += 1
                if not whole:
                    final = last(note)
                    certain = loss if final < 0 else loss + gaps[final] * (horizon - t)
                    possible = loss + (worst if final < 0 else gaps[final]) * (horizon - t)
                    hit = certain >= target
                    decided = hit or possible < target
                    if decided:
                        break
                value = reward(z, arm, current, *rest)
                n[arm] += 1.0
                s[arm] += value
                if n[arm] == caps[arm]:
                    capped[arm] = s[arm]
                    if reached <= mixture.stage[c]:
                        current[arm] = means[arm]
                learn(arm, value, n, s, note, params)
                breath += 1
                if breath == BREATH:
                    breath = 0
                    if stop[0] != 0:
                        return
            rounds[path] = t
            if whole:
                hit = best * horizon - s.sum() >= target
            log_weight[path] = -math.inf
            if hit:
                while reached < stages:  # a component that never switched
                    for k in range(arms):
                        n_at[reached, k] = min(n[k], caps[k])
                        s_at[reached, k] = s[k] if n[k] <= caps[k] else capped[k]
                    reached += 1
                log_weight[path] = -log_mixture(mixture, n_at, s_at, n, s)

    return kernel
