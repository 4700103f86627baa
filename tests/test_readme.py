"""What the README shows is true: its Python runs and prints what the comments say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_python_of_the_readme_prints_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {"__name__": "readme"}
    for block in BLOCKS:
        exec(compile(block, "README.md", "exec", dont_inherit=True), names)
    printed = capsys.readouterr().out.splitlines()
    promised = re.findall(r"print\(.*\)\s+# ([^:\n]*)", "\n".join(BLOCKS))
    assert len(BLOCKS) == 5
    assert printed == promised
    assert str(names["trial"]) in BLOCKS[3]


def test_setup_commands_of_the_readme_are_targets_of_the_makefile() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    promised = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert promised == ["compare", "test"]
    assert set(promised) <= set(targets)
