"""Paths under a mixture of tilted laws, each with the weight that undoes the tilt.

A path draws one component of the mixture and, for every arm, one of the component's choices: a tilt of
the arm's first rewards, up to a number of pulls that belongs to the choice. All later rewards, and the reward
of the last round, have the component's second tilt, which is 0 if the event is one of pseudo regret. The
weight of a path is its likelihood under the true means divided by its likelihood under the whole mixture.

The rewards of an arm belong to an exponential family, so that only their number and their sum matter: a tilt
by `lam` has log-likelihood ratio lam * sum - number * psi.
The mixture's arrays are those of `lighttail.tails.mixture.Mixture`.

`tilted_run_kernel` plays the paths of UCB with the same bits as `tilted_kernel`, in less time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lighttail.kernels.build import (
    BREATH,
    WRONG_ARM,
    Formula,
    inlined,
    inner,
    kernel_maker,
    largest,
    sum_of,
)
from lighttail.kernels.skip import top_two
from lighttail.kernels.stepping import pick_tied
from lighttail.random.streams import uniform
from lighttail.rules import Rule

FAR = 40.0  # terms that are smaller by this on a log scale add nothing


@inner
def drawn(u: Any, log_weights: Any) -> Any:
    """The place that the uniform u picks among weights that sum to 1."""
    last = log_weights.size - 1
    for i in range(last):
        u -= math.exp(log_weights[i])
        if u < 0.0:
            return i
    return last


@inner
def log_mixture(
    mixture: Any, first: Any, last: Any, n: Any, s: Any, sums: Any, n_end: Any, s_end: Any
) -> Any:
    """The log of the ratio of the likelihood under the components first..last - 1 to the true likelihood.

    n, s: pulls and sums before the last round. sums[k, j]: the sum of the first j rewards of arm k.
    n_end, s_end: pulls and sums at the end. There is one loop: a call within it would count references.
    """
    log_p, log_q, caps = mixture.log_p, mixture.log_q, mixture.caps
    lam, psi = mixture.lam, mixture.psi
    later_lam, later_psi = mixture.later_lam, mixture.later_psi
    arms, choices = lam.shape[1], lam.shape[2]
    top, total = -math.inf, 0.0
    for c in range(first, last):
        value = log_p[c]
        for k in range(arms):
            more, more_psi = later_lam[c, k], later_psi[c, k]
            value += more * s_end[k] - more_psi * n_end[k]
            high, inner = -math.inf, 1.0
            for i in range(choices):
                e = log_q[c, k, i]
                if e == -math.inf:
                    continue
                count, ours = n[k], s[k]
                if caps[c, k, i] < count:
                    count = caps[c, k, i]
                    ours = sums[k, int(count)]
                e += (lam[c, k, i] - more) * ours - count * (psi[c, k, i] - more_psi)
                if high == -math.inf:
                    high = e
                elif e > high:
                    inner = inner * math.exp(high - e) + 1.0
                    high = e
                elif e > high - FAR:
                    inner += math.exp(e - high)
            value += high
            if choices > 1:
                value += math.log(inner)
        if value > top:
            total = total * math.exp(top - value) + 1.0
            top = value
        elif value > top - FAR:
            total += math.exp(value - top)
    return top + math.log(total) if total > 0.0 else -math.inf


@inner
def log_ratios(mixture: Any, hit: Any, n: Any, s: Any, sums: Any, n_end: Any, s_end: Any, out: Any) -> None:
    """Fill in the log-likelihood ratio of each group of components; -inf if the path does not count."""
    for g in range(out.size):
        first, last = mixture.groups[g], mixture.groups[g + 1]
        out[g] = log_mixture(mixture, first, last, n, s, sums, n_end, s_end) if hit else -math.inf


@inlined
def begin_path(rng: Any, mixture: Any, n: Any, s: Any, current: Any, caps: Any) -> Any:
    """Draw a component, which is returned, and the arms' choices; `current` are then the arms' tilted means,
    up to `caps` pulls."""
    c = drawn(uniform(rng), mixture.log_p)
    for k in range(n.size):
        n[k] = s[k] = 0.0
        i = drawn(uniform(rng), mixture.log_q[c, k]) if mixture.log_q.shape[2] > 1 else 0
        current[k], caps[k] = mixture.means[c, k, i], mixture.caps[c, k, i]
        if caps[k] <= 0.0:
            current[k] = mixture.later_means[c, k]
    return c


@inlined
def begin_last_round(mixture: Any, c: Any, n: Any, s: Any, current: Any, n_end: Any, s_end: Any) -> None:
    """Keep the pulls and sums before the last round, which has the second tilt if the luck counts."""
    for k in range(n.size):
        n_end[k], s_end[k], current[k] = n[k], s[k], mixture.later_means[c, k]


@inlined
def end_path(
    mixture: Any, luck: Any, hit: Any, n: Any, s: Any, sums: Any, n_end: Any, s_end: Any, pulls: Any,
    totals: Any, log_parts: Any,
) -> None:  # fmt: skip
    """Fill in the pulls, the totals and the ratios of a path (see `tilted_kernel`)."""
    for k in range(n.size):
        if luck:  # `n_end` and `s_end` were kept before the last round
            n[k], n_end[k] = n_end[k], n[k]
            s[k], s_end[k] = s_end[k], s[k]
        else:
            n_end[k], s_end[k] = n[k], s[k]
        pulls[k], totals[k, -1] = n[k], s[k]
        for j in range(totals.shape[1] - 1):
            totals[k, j] = sums[k, int(min(n[k], float(1 << j)))]
    log_ratios(mixture, hit, n, s, sums, n_end, s_end, log_parts)


@kernel_maker
def tilted_kernel(rule: Rule, shock: Formula, reward: Formula) -> Any:
    """The kernel that plays a rule's paths under a mixture.

    means, rest: the problem's true means and the other numbers that its noise takes. gaps: the loss of one
    pull of each arm. luck: whether the luck of the rewards counts. target: a path counts if its loss, or with
    `luck` its regret, reaches this number. full: play every path to its end or to the event, even after the
    event has become impossible.

    For every path the kernel fills in `own`, the component that the path was drawn from; `log_parts`, the
    log-likelihood ratios of the mixture's groups (-inf if the path does not count); `rounds`, the rounds
    until this was decided; `score`, the loss or regret that the path certainly has; `pulls`, the pulls of the
    arms before the last round; and `totals`, the sums of each arm's rewards after 1, 2, 4, ... pulls and, as
    the last entry, after all pulls.
    """
    choose, learn, notes, _, settled = rule

    def kernel(
        rng: Any, params: Any, means: Any, rest: Any, mixture: Any, gaps: Any, horizon: Any, target: Any,
        luck: Any, full: Any, own: Any, log_parts: Any, rounds: Any, score: Any, pulls: Any, totals: Any,
        stop: Any,
    ) -> None:  # fmt: skip
        arms = means.size
        n, s, note = np.empty(arms), np.empty(arms), np.empty((arms, notes))
        n_end, s_end = np.empty(arms), np.empty(arms)
        current, caps = np.empty(arms), np.empty(arms)
        sums = np.zeros((arms, horizon + 1))
        worst, best = largest(gaps), largest(means)
        breath = 0
        for path in range(rounds.size):
            c = begin_path(rng, mixture, n, s, current, caps)
            for k in range(arms):
                for j in range(notes):
                    note[k, j] = 0.0
            t, loss, certain = 0, 0.0, 0.0
            hit = decided = False
            while t < horizon and not decided:
                t += 1
                if luck and t == horizon:
                    begin_last_round(mixture, c, n, s, current, n_end, s_end)
                z = shock(rng, current, *rest)
                arm = choose(rng, float(t), n, n, s, note, params)
                if arm < 0 or arm >= arms:
                    stop[0] = WRONG_ARM
                    return
                loss += gaps[arm]
                if not luck:
                    final = settled(note)
                    certain = loss if final < 0 else loss + gaps[final] * (horizon - t)
                    possible = loss + (worst if final < 0 else gaps[final]) * (horizon - t)
                    hit = certain >= target
                    decided = hit or (final >= 0 if full else possible < target)
                    if decided:
                        break
                value = reward(z, arm, current, *rest)
                n[arm] += 1.0
                s[arm] += value
                sums[arm, int(n[arm])] = s[arm]
                if n[arm] == caps[arm]:
                    current[arm] = mixture.later_means[c, arm]
                learn(arm, value, n, n, s, note, params)
                breath += 1
                if breath == BREATH:
                    breath = 0
                    if stop[0] != 0:
                        return
            rounds[path], own[path] = t, c
            if luck:
                certain = best * horizon - sum_of(s)
                hit = certain >= target
            score[path] = certain
            end_path(mixture, luck, hit, n, s, sums, n_end, s_end, pulls[path], totals[path], log_parts[path])

    return kernel


@kernel_maker
def tilted_run_kernel(radius: Formula, clock: Formula, moving: bool, shock: Formula, reward: Formula) -> Any:
    """`tilted_kernel` for UCB. moving: whether the radius changes with time.

    The leader runs, with its pulls and its sum in registers, until its index is no longer above the index of
    its rival, the best of the other arms. If the radius ignores time, a pull changes the index of the leader
    alone; otherwise the clocks of all rounds are computed once for all paths of a block.
    """

    def kernel(
        rng: Any, params: Any, means: Any, rest: Any, mixture: Any, gaps: Any, horizon: Any, target: Any,
        luck: Any, full: Any, own: Any, log_parts: Any, rounds: Any, score: Any, pulls: Any, totals: Any,
        stop: Any,
    ) -> None:  # fmt: skip
        arms = means.size
        n, s, index = np.empty(arms), np.empty(arms), np.empty(arms)
        mean, counts = np.empty(arms), np.empty(arms)  # inf and 1 for an arm that was never pulled
        n_end, s_end = np.empty(arms), np.empty(arms)
        current, caps = np.empty(arms), np.empty(arms)
        tied_arms = np.empty(arms, np.int64)
        sums, clocks, known = np.zeros((arms, horizon + 1)), np.empty(horizon + 1), 0
        worst, best = largest(gaps), largest(means)
        last = horizon - 1 if luck else horizon  # a run ends here: the last round of luck has other means
        for path in range(rounds.size):
            c = begin_path(rng, mixture, n, s, current, caps)
            for k in range(arms):
                index[k], mean[k], counts[k] = math.inf, math.inf, 1.0
            t, loss = 0, 0.0
            hit = decided = False
            while t < horizon and not decided:
                t += 1
                if stop[0] != 0:
                    return
                if luck and t == horizon:
                    begin_last_round(mixture, c, n, s, current, n_end, s_end)
                z = shock(rng, current, *rest)
                if moving:
                    if t > known:
                        known, clocks[t] = t, clock(float(t), *params)
                    for k in range(arms):
                        index[k] = mean[k] + radius(counts[k], clocks[t], *params)
                top, leader, rival = top_two(index)
                if top == rival:
                    leader = np.int64(pick_tied(rng, index, top, tied_arms))
                gap, cap, count, total = gaps[leader], caps[leader], n[leader], s[leader]
                while True:
                    loss += gap
                    if not luck:
                        hit = loss >= target
                        decided = hit or (not full and loss + worst * (horizon - t) < target)
                        if decided:
                            break
                    total += reward(z, leader, current, *rest)
                    count += 1.0
                    sums[leader, int(count)] = total
                    if count == cap:
                        current[leader] = mixture.later_means[c, leader]
                    time = 0.0
                    if moving:
                        later = min(t + 1, horizon)  # nothing is chosen after the horizon
                        if later > known:
                            known, clocks[later] = later, clock(float(later), *params)
                        time, rival = clocks[later], -math.inf
                        for k in range(arms):
                            other = mean[k] + radius(counts[k], time, *params)
                            rival = other if other > rival and k != leader else rival
                    top = total / count + radius(count, time, *params)
                    if t >= last or not top > rival:
                        break
                    t += 1
                    z = shock(rng, current, *rest)
                n[leader], s[leader], index[leader] = count, total, top
                if moving and count > 0.0:
                    mean[leader], counts[leader] = total / count, count
            rounds[path], own[path] = t, c
            score[path] = loss
            if luck:
                score[path] = best * horizon - sum_of(s)
                hit = score[path] >= target
            end_path(mixture, luck, hit, n, s, sums, n_end, s_end, pulls[path], totals[path], log_parts[path])

    return kernel
