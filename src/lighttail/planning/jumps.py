"""The worst problems of a policy that pulls the arms in turn and then commits.

Its losses are known but for the arm to which it commits. So its chance jumps up at the gap at which the
commitment to an arm just loses the limit, and falls from there on: a search in steps passes over such gaps,
but they can be written down.
"""

from __future__ import annotations

import numpy as np

from lighttail.planning.question import ROUNDING, Question
from lighttail.policies import Policy
from lighttail.problems import Bandit

SHARES = (1.0, 0.5, 0.25)  # of the way from the gap of the near arms to the largest gap: the other arms
HEIGHTS = (1.0, 0.75, 0.5, 0.25, 0.0)  # of the best arm, between the lowest that fits and the highest
GRID = 24  # gaps between those that just suffice and the largest one


def problems_at_jumps(question: Question, policy: Policy) -> list[Bandit]:
    """Problems of a box in which the chance of the policy is highest, or close to it; none for a policy that
    does not commit, and for a family of members alone.

    One or more arms are near the best one, at the gap g, and the others lie a share of the way further down.
    After m pulls per arm, r = T - m K pulls are left. The commitment to the best arm, to a near one or to
    another one loses x from the gap on at which m (sum of gaps) + r (gap of this arm) = x.
    """
    family, m, loss = question.family, policy.turns, question.loss
    if m is None or family.low is None or family.high is None or question.asks_for_loss:
        return []
    low, high, arms = np.array(family.low), np.array(family.high), family.arms
    best, widest = int(np.argmax(high)), float(high.max() - low.min())
    rest = [arm for arm in range(arms) if arm != best]
    m = min(m, question.horizon / arms)
    left, found = question.horizon - m * arms, dict[tuple[float, ...], Bandit]()
    heights = HEIGHTS if family.members[0].noise.outcomes else HEIGHTS[:1]
    for near in range(1, arms):
        for share in SHARES if near < arms - 1 else (0.0,):
            far = share * (arms - 1 - near)
            per_gap, fixed = (
                m * (arms - 1 - far),
                m * far * widest,
            )  # of the sum of the losses of m pulls each
            pulls = [(per_gap, fixed), (per_gap + left, fixed)]
            pulls.append((per_gap + left * (1.0 - share), fixed + left * share * widest))
            jumps = [(loss - more) / each * (1.0 + 2.0 * ROUNDING) for each, more in pulls if each > 0.0]
            first = max(question.least_gap, 1e-9 * widest)
            gaps = [*jumps, *(np.geomspace(first, widest, GRID).tolist() if first < widest else ())]
            for gap in (gap for gap in gaps if 0.0 < gap <= widest):
                lowest = min(high[best], max(low[best], low.min() + gap))
                for height in heights:
                    top = lowest + height * (high[best] - lowest)
                    means = np.full(arms, top - gap - share * (widest - gap))
                    means[rest[:near]], means[best] = top - gap, top
                    inside = tuple(np.clip(means, low, np.minimum(high, top)).tolist())
                    found[inside] = family.at(*inside)
    return question.able(found.values())
