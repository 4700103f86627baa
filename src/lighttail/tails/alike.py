"""A first plan where nothing is known of a rule: arms that look alike.

Whatever a rule does with its rewards, to lose much it must take a bad arm for a good one. So for every bad
arm and some levels between its mean and the best one, the arms above the level are tilted down to it and the
bad arm up to it: for their first 1, 4, 16, ... rewards, or for all. From there a ladder climbs (`ladder.py`).
"""

from __future__ import annotations

import math

import numpy as np

from lighttail.outcomes.estimates import Floats
from lighttail.tails.index_routes import Quest
from lighttail.tails.mixture import Routes

LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.2)  # from the bad arm's mean to the best one, and somewhat above
LUCKS = (0, 3, 6)  # of those that a regret with its luck may have
MOST = 400  # components: with many arms some bad ones stand for all


def alike(quest: Quest) -> Routes:
    """The components, all in the same shares."""
    means, best = quest.means, float(quest.means.max())
    bad = np.flatnonzero(means < best)
    lucks = quest.lucks()
    lucks = lucks[list(LUCKS)] if lucks.size > max(LUCKS) else lucks
    caps = [*(4.0 ** np.arange(math.ceil(math.log(quest.horizon, 4.0)))), math.inf]
    each = len(LEVELS) * len(caps) * lucks.size
    bad = bad[:: max(1, -(-bad.size * each // MOST))]
    found = [
        (_tilts(quest, arm, means[arm] + share * (best - means[arm]), luck), cap, luck)
        for arm in map(int, bad)
        for share in LEVELS
        for luck in lucks
        for cap in caps
    ]
    found += [(np.full(means.size, luck), math.inf, luck) for luck in lucks]
    lam = np.array([tilts for tilts, _, _ in found])[:, :, None]
    held = np.array([cap for _, cap, _ in found])
    later = np.array([luck for _, _, luck in found])
    wide = np.ones((1, means.size))
    return Routes(
        np.zeros(len(found)),
        lam,
        (held[:, None] * wide)[:, :, None],
        np.zeros(lam.shape),
        later[:, None] * wide,
    )


def _tilts(quest: Quest, arm: int, level: float, luck: float) -> Floats:
    """Every arm's tilt: `luck`, or what brings it to the level if that is more."""
    to_level = quest.family.lam(quest.means, np.full(quest.means.size, level))
    down = np.where(quest.means > level, np.minimum(to_level, luck), luck)
    down[arm] = max(float(to_level[arm]), luck)
    return down
