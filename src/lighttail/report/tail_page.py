"""The tail as one HTML page that needs no network, and all of its files."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

from lighttail.checks import either
from lighttail.outcomes.format import amount
from lighttail.outcomes.losing import EXPLAINED, event
from lighttail.report.document import cell, code, document, figure, table
from lighttail.report.figures import draw
from lighttail.report.tail_figure import tail_figure
from lighttail.report.tail_words import COLUMNS, note, rows, sentence, subject
from lighttail.system.files import whole_files
from lighttail.system.versions import versions_line
from lighttail.tails.curve import TailCurve

CAPTION = "The chance of losing x or more: simulated, estimated, exact if an exact value exists, and bounded"


def write_tail(curve: TailCurve, folder: Path, command: str) -> Path:
    """Write report.html, the picture as PNG and SVG, and results.json; returns the page's path."""
    files = {f"tail.{form}": content for form, content in draw(tail_figure(curve), ("png", "svg")).items()}
    files["results.json"] = results(curve, command).encode()
    bare = draw(tail_figure(curve, titled=False), ("svg",))["svg"]
    files["report.html"] = page(curve, command, bare).encode()
    whole_files(folder, files)
    return folder / "report.html"


def results(curve: TailCurve, command: str) -> str:
    """The numbers as JSON."""
    sentences = [sentence(curve, curve.at(regret)) for regret in curve.asked]
    return json.dumps(curve.to_dict(command, sentences), indent=2, allow_nan=False)


def page(curve: TailCurve, command: str, svg: bytes) -> str:
    """The whole page. svg: the picture without its sentences, which stand on the page."""
    versions = versions_line(curve.outcome.settings["versions"])
    losses = either(map(amount, curve.asked))
    parts = [f"<h1>What is the chance of losing {losses} or more?</h1>"]
    parts.append(f"<p>{escape(subject(curve))}; {curve.horizon:,} pulls. {escape(curve.course.words())}</p>")
    for regret in curve.asked:
        point = curve.at(regret)
        parts.append(f'<p class="verdict">{escape(sentence(curve, point))}</p>')
    parts.append(figure(svg, CAPTION))
    for regret in curve.asked:
        point = curve.at(regret)
        numbers = table(COLUMNS, (map(cell, row) for row in rows(point, curve.outcome.paths, curve.horizon)))
        parts.append(f"<h2>The chance of {event(curve.kind, regret)}</h2>{numbers}")
        parts.append(f"<p>{escape(note(curve, point))}</p>")
    parts.append(f"<h2>How to read this</h2><p>{escape(_reading(curve))}</p>")
    parts.append(f"<h2>Made by</h2><pre>{code(command)}</pre><p>{escape(versions)}; seed {curve.seed}. ")
    parts.append("The same command with the same versions gives the same numbers.</p>\n")
    return document(f"lighttail: the tail of {curve.policy}", "\n".join(parts))


def _reading(curve: TailCurve) -> str:
    return (
        f"{EXPLAINED[curve.kind]} “Importance sampling” draws paths from laws that make the event "
        "common, and weights the paths; “simulated paths” counts paths without weights. The certificate "
        "and the theorem's bound are upper bounds that need no simulation: the certificate holds for this "
        "problem, and the theorem for every problem."
    )
