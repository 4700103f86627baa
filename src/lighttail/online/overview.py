"""An experiment at a glance: its counts, the limits of its means, and what it may lose, as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from lighttail.inference import BoundedRewards, Evidence, lead
from lighttail.online.base import Label
from lighttail.outcomes.format import aligned, counted, rounded

if TYPE_CHECKING:
    from lighttail.online.experiment import Experiment

HEADS = ("arm", "pulls", "rewards", "mean", "95 % limits at all times")
MOST_LISTED = 50  # arms in a table


class Overview(NamedTuple):
    """An experiment in numbers, at one moment.

    tries, heard: by arm, the pulls, and the number and the sum of the rewards. order: the arms of the last
    pulls, one after another. before: the pulls before them, whose order is not known.
    """

    tries: dict[Label, int]
    heard: dict[Label, tuple[int, float]]
    retired: list[Label]
    open: int
    order: list[Label]
    before: int

    @property
    def pulls(self) -> int:
        return sum(self.tries.values())


def overview(experiment: Experiment) -> Overview:
    """The experiment in numbers."""
    with experiment._lock:
        labels = experiment.arms
        return Overview(
            tries=experiment.pulls,
            heard=experiment._heard(),
            retired=experiment.retired,
            open=len(experiment._open_ids()),
            order=[labels[place] for place in experiment._arm_of],
            before=experiment._pulls_before,
        )


def summary_text(experiment: Experiment, rewards: Evidence | None, forecast: Any) -> str:
    """A table of the arms, which arm is shown to be better, and the sentence of a forecast if there is one.

    >>> import lighttail as lt
    >>> experiment = lt.Experiment(lt.UCB(lt.AnyTime(kappa=0.5)), arms=["A", "B"], seed=1)
    >>> for trial in experiment.ask(count=4):
    ...     experiment.tell(trial.id, reward=trial.arm == "B")
    >>> print(summary_text(experiment, None, None))
    UCB + AnyTime(0.5): 4 pulls, 0 open trials
    arm  pulls  rewards  mean  95 % limits at all times
    A        2        2     0                0 to 0.903
    B        2        2     1               0.0968 to 1
    It is not shown that B is better than A.
    """
    now = overview(experiment)
    known = BoundedRewards() if rewards is None else rewards
    race = lead(now.heard, known, first=experiment.began_with)
    limits = {arm: (_short(mean.value), _range(mean.low, mean.high)) for arm, mean in race.means.items()}
    shown = sorted(now.tries, key=lambda arm: -now.tries[arm])[:MOST_LISTED]
    listed = [(arm, tries) for arm, tries in now.tries.items() if arm in shown]
    rows = [(str(arm), f"{tries:,}", f"{now.heard[arm][0]:,}", *limits[arm]) for arm, tries in listed]
    due = "" if experiment.horizon is None else f" of {experiment.horizon:,}"
    lines = [f"{experiment.policy}: {now.pulls:,}{due} pulls, {counted(now.open, 'open trial')}"]
    lines += aligned([HEADS, *rows])
    if len(rows) < len(now.tries):
        lines.append(f"({len(now.tries) - len(rows):,} more arms, with fewer pulls)")
    if race.best is not None:
        lines += [better(race.best, arm, race.shown(arm)) for arm in race.ahead if arm in shown]
    return "\n".join([*lines, *([] if forecast is None else [str(forecast)])])


def better(arm: Any, than: Any, shown: bool) -> str:
    """Whether an arm is shown to be better than another, as a sentence."""
    return f"It is {'shown' if shown else 'not shown'} that {arm} is better than {than}."


def _short(value: float) -> str:
    return "–" if math.isnan(value) else rounded(value)


def _range(low: float, high: float) -> str:
    return f"{rounded(low)} to {rounded(high)}"
