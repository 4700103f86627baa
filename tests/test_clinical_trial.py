"""The page docs/clinical-trial.md: the data, the problem and the numbers of the table."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import numpy as np

DOCS = Path(__file__).parent.parent / "docs"
Z = 4.5  # standard errors
PATHS = 4_000

sys.path.insert(0, str(DOCS))
import clinical_trial  # noqa: E402


def shown() -> dict[str, tuple[float, float]]:
    """The mean loss and the chance of each policy as they stand on the page."""
    page = (DOCS / "clinical-trial.md").read_text()
    row = re.compile(r"^\| `(.*)` \| [\d.]+ \| ([\d,]+) \[.*\] \| ([\d.]+) % \[", re.MULTILINE)
    return {
        name: (float(mean.replace(",", "")), float(chance) / 100.0)
        for name, mean, chance in row.findall(page)
    }


def test_the_page_shows_the_data() -> None:
    page = (DOCS / "clinical-trial.md").read_text()
    for name, gains in clinical_trial.gains().items():
        mean, spread = f"{np.mean(gains):.1f}".replace("-", "−"), f"{np.std(gains, ddof=1):.1f}"
        assert f"| {name} | {len(gains)} | {mean} | {spread} |" in page


def test_the_numbers_of_the_page_hold() -> None:
    found = clinical_trial.measured(PATHS, seed=7)
    stated = shown()
    assert len(stated) == len(found.entries) == 3
    for (mean, chance), entry in zip(stated.values(), found.entries, strict=True):
        losses = entry.outcome.pseudo_regret
        error = float(losses.std()) / math.sqrt(PATHS)
        assert abs(float(losses.mean()) - mean) <= Z * error
        hits = float(np.mean(losses >= clinical_trial.LOSS))
        assert abs(hits - chance) <= Z * math.sqrt(chance * (1.0 - chance) / PATHS)
    (heavy, _), _, (_, light) = stated.values()
    losses = found.entries[-1].outcome.pseudo_regret  # control: the rows are not interchangeable
    assert abs(float(losses.mean()) - heavy) > Z * float(losses.std()) / math.sqrt(PATHS)
    assert light < 0.001
