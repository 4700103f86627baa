"""Forecasts with a window and what became of them: prints the rows of the second table of forecasts.md.

    python docs/window_calibration.py 400 1

Experiments of the service with two arms and a window of 1,500 of 6,000 pulls, whose rates are drawn between
the stated limits, are forecast after 2,000 pulls. Conversions are told at once ("at once"), or after a time
that is uniform within 90 % of the window ("late"); the window closes the others. A forecast of 5 % came true
if at most 5 % of the simulated ends lost as much as the experiment did. About a second per experiment."""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt

from lighttail.live import Office
from lighttail.live.memory import MemoryJournal
from lighttail.live.outlook import Outlook, Wish
from lighttail.live.requests import Look
from lighttail.outcomes.estimates import proportion

WINDOW, PULLS, HORIZON, TOGETHER, LIMITS = 1500, 2000, 6000, 100, (0.02, 0.08)


def share_above(rng: np.random.Generator, late: bool) -> float:
    """The share of the simulated ends that lose at least as much as one experiment did."""
    clock, due, lost = [0.0], list[tuple[float, int]](), 0.0
    rates = dict(zip("AB", rng.uniform(*LIMITS, 2), strict=True))
    settings = {"window": WINDOW, "default": 0, "means": {"low": LIMITS[0], "high": LIMITS[1]}}
    office = Office(MemoryJournal(), lambda: clock[0])
    made = {"arms": ["A", "B"], "horizon": HORIZON, "seed": int(rng.integers(2**30)), "settings": settings}
    desk, _ = office.create("one", "ucb:anytime:0.5", **made)
    outlook: Outlook | None = None
    for pull in range(0, HORIZON, TOGETHER):
        if pull == PULLS:
            outlook = desk.submit(Look("outlook")).result()
        clock[0] += TOGETHER
        for trial in desk.ask(TOGETHER):
            lost += max(rates.values()) - rates[str(trial.arm)]
            if rng.random() < rates[str(trial.arm)]:
                due.append((clock[0] + late * rng.uniform(0, 0.9 * WINDOW), trial.id))
        if ready := [(id, 1.0) for at, id in due if at <= clock[0]]:
            desk.tell(ready)
        due = [(at, id) for at, id in due if at > clock[0]]
    office.close()
    assert outlook is not None
    return float((outlook.forecast(Wish(loss=10.0, paths=400)).losses >= lost).mean())


def main() -> None:
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    for late in (False, True):
        rng = np.random.default_rng([seed, late])
        above: npt.NDArray[np.float64] = np.array([share_above(rng, late) for _ in range(count)])
        for chance in (0.01, 0.05, 0.2):
            found = proportion(int((above <= chance).sum()), count, 0.95)
            said = f"{100 * found.value:.2g} % ({100 * found.low:.2g} to {100 * found.high:.2g})"
            print(f"| {'late' if late else 'at once'} | {100 * chance:g} % | {said} |")


if __name__ == "__main__":
    main()
