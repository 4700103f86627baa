"""A figure that a notebook shows."""

from __future__ import annotations

from io import BytesIO

import matplotlib
from matplotlib.figure import Figure

from lighttail.report.figures import SETTINGS


class Picture(Figure):
    """A figure of matplotlib that is an image as the last value of a cell, even if nobody imported pyplot.

    pyplot does not know the figure, which is therefore shown once: pyplot shows its own at the end of a cell.
    """

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """The image, and the size in which it is shown: that of the figure, not of its finer pixels."""
        buffer = BytesIO()
        with matplotlib.rc_context(SETTINGS):
            self.savefig(buffer, format="png")
        width, height = (int(inches * SETTINGS["figure.dpi"]) for inches in self.get_size_inches())
        return buffer.getvalue(), {"width": width, "height": height}
