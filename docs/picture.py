"""Draws docs/images/tails.png, the picture in the README, with the project itself (`make picture`)."""

from __future__ import annotations

from pathlib import Path

import matplotlib

import lighttail as lt
from lighttail.report.figures import SETTINGS, draw, survival_figure
from lighttail.system.files import whole_file

HORIZON, PATHS = 2000, 1_000_000


def main() -> None:
    policies = [lt.UCB(lt.Standard(0.8)), lt.UCB(lt.LightTailed(0.2))]
    comparison = lt.compare(
        policies, lt.Bandit([0.2, 0.8]), horizon=HORIZON, paths=PATHS, seed=1, growth=False
    )
    with matplotlib.rc_context(SETTINGS):
        figure = survival_figure(comparison)
        axes = figure.axes[0]
        heavy, light = (entry.mean.value for entry in comparison.entries)
        axes.set_title(
            f"On average the standard bonus loses {heavy:.0f}, the light-tailed {light:.0f}; "
            f"{PATHS:,} paths each",
            loc="left",
        )
        axes.annotate(
            f"{comparison.entries[0].exceedance.value:.1%} of the paths\nlose almost everything",
            xy=(800, comparison.entries[0].exceedance.value),
            xytext=(620, 4e-2),
            arrowprops={"arrowstyle": "->", "color": "0.3"},
        )
    path = Path(__file__).parent / "images" / "tails.png"
    with whole_file(path) as file:
        file.write(draw(figure, ("png",))["png"])
    print(path)


if __name__ == "__main__":
    main()
