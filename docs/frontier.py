"""Draws docs/images/frontier.png: the frontier of the plan that `lighttail plan` makes without options
(`make frontier`)."""

from __future__ import annotations

from pathlib import Path

import matplotlib

import lighttail as lt
from lighttail.report.figures import SETTINGS, draw
from lighttail.report.plan_figure import frontier_figure
from lighttail.system.files import whole_file


def main() -> None:
    family = lt.Family.rates(0.03, 0.05, arms=3)
    plan = lt.plan(family, horizon=20_000, loss=150, chance=0.001, seed=1, progress=True)
    path = Path(__file__).parent / "images" / "frontier.png"
    with matplotlib.rc_context(SETTINGS), whole_file(path) as file:
        file.write(draw(frontier_figure(plan), ("png",))["png"])
    print(path)


if __name__ == "__main__":
    main()
