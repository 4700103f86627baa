"""Messages about files."""

from __future__ import annotations

import errno

from lighttail.system.files import in_a_sentence


def test_a_long_name_is_cut_in_a_message() -> None:
    """A path of short names is shown whole, because its end tells files apart."""
    path = "/".join(["folder"] * 30)
    for name in ("a" * 101, "a" * 5000, "/".join(["a" * 50] * 7)):
        said = in_a_sentence(OSError(errno.ENAMETOOLONG, "File name too long", name))
        assert said == f"{name[:100]} ... cannot be used (file name too long)"
    assert in_a_sentence(OSError(errno.ENOENT, "No such file", path)).startswith(f"{path} cannot be used")
