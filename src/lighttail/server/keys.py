"""Keys of the server: random texts, of which a file keeps digests, and what the holder of each may do."""

from __future__ import annotations

import hmac
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from lighttail.checks import BadInput, file_path, one_of, refuse, shown
from lighttail.live.errors import unavailable
from lighttail.live.office import check_name
from lighttail.system.files import whole_file

ROLES = ("ask", "read", "manage")
MAY = {"ask": {"ask"}, "read": {"read"}, "manage": {"ask", "read", "manage"}}
FORMAT = 1
MAKES_ONE = "; `lighttail keys add NAME --role manage --keys FILE` makes one"


class Key(NamedTuple):
    """A key of the file: its name, its role, the digest of its text, and the day on which it was made.

    The text has 256 random bits, so that nobody finds it from a plain SHA-256.
    """

    name: str
    role: str
    digest: str
    made: str


def digest_of(text: str) -> str:
    """The digest of a key, which the file keeps in place of the key."""
    return sha256(text.encode("utf-8")).hexdigest()


def read_keys(path: Any) -> list[Key]:
    """The keys of a file. Raises BadInput if the file is missing or is no keys file."""
    path = file_path("keys", path)
    try:
        plain = json.loads(path.read_text("utf-8"))
        if plain["format"] != FORMAT:
            raise ValueError
        return [_checked(Key(**entry)) for entry in plain["keys"]]
    except OSError as error:
        why = f"{shown(str(path))} cannot be read ({(error.strerror or str(error)).lower()})"
        raise refuse("keys", str(path), "a keys file of lighttail", found=why, more=MAKES_ONE) from None
    except (BadInput, LookupError, TypeError, ValueError, RecursionError):
        raise refuse("keys", str(path), "a keys file of lighttail") from None


def _checked(key: Key) -> Key:
    check_name(key.name)
    one_of("role", key.role, ROLES)
    if not isinstance(key.digest, str) or len(bytes.fromhex(key.digest)) != 32:
        raise ValueError
    return key._replace(made=str(key.made))


def add_key(path: Any, name: Any, role: Any) -> str:
    """Make a key, keep its digest in the file, and return its text, which is kept nowhere."""
    check_name(name)
    one_of("role", role, ROLES)
    path = file_path("keys", path)
    with _alone(path):
        keys = [] if _is_new(path) else read_keys(path)
        if any(key.name == name for key in keys):
            raise refuse("name", name, f"a name that no key in {path} has")
        text = f"lt_{secrets.token_urlsafe(32)}"
        _write(path, [*keys, Key(name, role, digest_of(text), time.strftime("%Y-%m-%d"))])
    return text


def _is_new(path: Path) -> bool:
    """Whether there is no such file yet. False if the file cannot be looked at, too."""
    try:
        os.stat(path)
    except OSError as error:
        return isinstance(error, FileNotFoundError)
    return False


def remove_key(path: Any, name: Any) -> None:
    """Remove a key from the file; servers refuse it from then on."""
    path = file_path("keys", path)
    keys = read_keys(path)
    with _alone(path):
        keys = read_keys(path)
        if all(key.name != name for key in keys):
            known = ", ".join(key.name for key in keys) or "which has none"
            raise refuse("name", name, f"the name of a key in {path}: {known}")
        _write(path, [key for key in keys if key.name != name])


def _write(path: Path, keys: list[Key]) -> None:
    plain = {"format": FORMAT, "keys": [key._asdict() for key in keys]}
    with whole_file(path, durable=True, mode=0o600) as file:
        file.write(json.dumps(plain, indent=1).encode("ascii") + b"\n")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let no other program change the file meanwhile, so that no key is lost."""
    try:
        import fcntl
    except ImportError:  # Windows: two changes at one moment are not kept apart
        yield
        return
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        why = f": {error.strerror}"
        raise refuse("keys", str(path), "a file in a folder that can be written", more=why) from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


class Keys:
    """The keys of a file, which is read again when it changes."""

    def __init__(self, path: Any) -> None:
        self.path = file_path("keys", path)
        self._seen = self._mark()
        self._keys = read_keys(self.path)
        if not self._keys:
            fit = "a file with at least one key"
            raise refuse("keys", str(self.path), fit, found="has none", more=MAKES_ONE)

    def _mark(self) -> tuple[int, ...]:
        """What changes if the file does; zeros if it cannot be seen."""
        try:
            now = os.stat(self.path)
        except OSError:
            return (0, 0, 0)
        return (now.st_mtime_ns, now.st_size, now.st_ino)

    def find(self, text: str) -> Key | None:
        """The key with this text. Every digest is compared in the same time, whatever it is.

        Raises Refused (503) if the file is no keys file any more: no key of before is trusted then."""
        return self.with_digest(digest_of(text))

    def with_digest(self, digest: str) -> Key | None:
        """The key whose text has this digest; as `find`."""
        if (mark := self._mark()) != self._seen:
            try:
                self._keys = read_keys(self.path)
            except BadInput:
                raise unavailable("the keys file of the server cannot be read", "server") from None
            self._seen = mark
        matches = [key for key in self._keys if hmac.compare_digest(digest, key.digest)]
        return matches[-1] if matches else None
