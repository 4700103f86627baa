"""A study killed with SIGKILL at random moments always goes on and always ends with the same bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def killed(work: Path, kills: int, writer: str) -> dict[str, Any]:
    command = [sys.executable, Path(__file__).with_name("killed.py"), work, str(kills), writer]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_killed_twenty_times_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    found = killed(tmp_path, 20, "whole")
    assert found["killed"] == 20
    assert found["left"] > 0  # the last kill, too, came before the end
    assert (found["same digest"], found["same bytes"], found["litter"]) == (True, True, [])
    assert found["torn"] == 0  # what has its name is whole
    assert found["rewritten"] == 0  # and is never made again
    assert 0 < found["played twice"] <= 20 * found["in flight"]


def test_a_writer_that_works_in_place_is_caught(tmp_path: Path) -> None:
    """Negative control; even then what is torn is found out and made again."""
    found = killed(tmp_path, 8, "in-place")
    assert found["torn"] >= 8  # a file that is not made again in its turn is counted again
    assert found["same bytes"]
