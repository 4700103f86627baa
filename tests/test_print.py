"""A page on paper: in a real browser, what belongs together is not parted by the end of a sheet."""

from __future__ import annotations

import re
from typing import Any

import browsing
import pytest

from lighttail.report.document import STYLE, document

LINE = '<p style="margin: 0; line-height: 15px">a line</p>'
WORDS = "word " * 120
MADE = f'<p>{WORDS}<i id="before"></i></p><h2 id="after">Made by</h2><pre>lighttail</pre><p>Seed 1.</p>\n'
TYPED = f'<p id="before">Type this:</p><pre id="after">lighttail</pre><p>{WORDS * 5}</p><p>The end.</p>'
HEIGHTS = range(50, 72, 2)  # lines above, so that a sheet ends at each place


def parted(browser: Any, body: str, style: str) -> int:
    """The number of heights at which `before` and `after` are on different sheets."""
    links = '<p><a href="#before">1</a> <a href="#after">2</a></p>'  # so that the PDF has both places
    count, page = 0, browser.new_page()
    for height in HEIGHTS:
        page.set_content(document("t", links + LINE * height + body).replace(STYLE, style))
        sheets = dict(re.findall(rb"/(before|after) \[?\s*(\d+) 0 R", page.pdf(format="A4")))
        count += sheets[b"before"] != sheets[b"after"]
    page.close()
    return count


@pytest.mark.slow
def test_a_command_and_its_sentence_and_the_last_lines_stay_together() -> None:
    with browsing.opened(browsing.needed()) as browser:
        for body in (MADE, TYPED):
            assert parted(browser, body, STYLE) == 0
            bare = re.sub(r"(p|h2):has\([^{]*{[^}]*}", "", STYLE)
            assert parted(browser, body, bare) > 0  # negative control
