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


@pytest.mark.parametrize("name", ["own-noises", "choosing-kappa", "inference"])
def test_python_of_a_page_prints_what_its_comments_say(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(block, f"{name}.md", "exec", dont_inherit=True), {"__name__": "page"})
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*\)\s+# (.*)", block)


def test_links_of_the_readme_and_docs_exist() -> None:
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_setup_commands_of_the_readme_are_targets_of_the_makefile() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    promised = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert promised == ["compare", "test"]
    assert set(promised) <= set(targets)
