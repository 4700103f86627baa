"""The worst problems of a policy that pulls the arms in turn and then commits.

Its losses are known but for the arm to which it commits. So its chance jumps up at the gap at which the
commitment to an arm just loses the limit, and falls from there on: a search in steps passes over such gaps,
but they can be written down.

After m pulls per arm, r = T - m K pulls are left. The commitment to an arm loses x from the gap on at which
m (sum of all gaps) + r (gap of this arm) = x.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from lighttail.planning.question import ROUNDING, Question, second_best
from lighttail.policies import Policy
from lighttail.problems import Bandit

SHARES = (1.0, 0.5, 0.25)  # of the way from the gap of the near arms to the largest gap: the other arms
TOPS = 7  # means of the best arm
GRID = 24  # gaps between those that just suffice and the largest one
BEYOND = 1.0 + 2.0 * ROUNDING  # so that rounding does not decide


def jumping(question: Question, policy: Policy) -> bool:
    """Whether the policy commits, so that its chance jumps within the family, which is a box."""
    return (
        policy.turns is not None
        and not question.late
        and not question.asks_for_loss
        and question.family.low is not None
        and policy.turns * question.family.arms < question.horizon
    )


def problems_at_jumps(question: Question, policy: Policy) -> list[Bandit]:
    """Problems of a box in which the chance of the policy is highest, or close to it; none if nothing jumps.

    One or more arms are near the best one, and the others lie a share of the way further down.
    """
    if not jumping(question, policy):
        return []
    family, found = question.family, dict[tuple[float, ...], Bandit]()
    low, high = np.array(family.low), np.array(family.high)
    bottom, best = low[high.argmax()], high.max()
    tops = np.linspace(bottom, best, TOPS) if family.members[0].noise.outcomes else np.array([best])
    for top in tops.tolist():
        widest = top - float(low.min())
        for near in range(1, family.arms):
            for share in SHARES if near < family.arms - 1 else SHARES[:1]:
                for gap in _gaps(question, policy.turns or 0.0, near, share, widest):
                    rest = top - gap - share * (widest - gap)
                    problem = family.placed(top, top - gap, near, rest)
                    found[problem.means] = problem
    return question.able(found.values())


def _gaps(question: Question, m: float, near: int, share: float, widest: float) -> Iterator[float]:
    """The gaps of the near arms at which a commitment just loses the limit, and a grid of others."""
    arms, loss = question.family.arms, question.loss
    left, far = question.horizon - m * arms, share * (arms - 1 - near)
    each, fixed = m * (arms - 1 - far), m * far * widest  # of the losses of m pulls per arm
    for more, also in ((0.0, 0.0), (left, 0.0), (left * (1.0 - share), left * share * widest)):
        gap = (loss - fixed - also) / (each + more) * BEYOND
        if 0.0 < gap <= widest:
            yield gap
    if 0.0 < question.least_gap < widest:
        yield from np.geomspace(question.least_gap, widest, GRID).tolist()


def moved_to_jumps(question: Question, policy: Policy, problems: Iterable[Bandit]) -> list[Bandit]:
    """The problems with the least gap of their second-best arms with which the commitment to one of these
    arms loses the limit; none if nothing jumps."""
    if not jumping(question, policy):
        return []
    family, found, m = question.family, list[Bandit](), policy.turns or 0.0
    for problem in problems:
        gaps, top = np.array(problem.gaps), max(problem.means)
        if gaps.any():
            _, alike = second_best(problem)
            pulls = m * float(alike.sum()) + question.horizon - m * family.arms
            jump = max(0.0, (question.loss - m * float(gaps[~alike].sum())) / pulls * BEYOND)
            means = np.where(alike, top - jump, problem.means)
            found.append(family.at(*np.clip(means, family.low, family.high).tolist()))
    return found
