"""A user's classes, named in words: `my_policies.py:KlUcb(0.5)` or `package.module:Class(0.5, name=2)`.

Naming a file or a module runs it. These words are therefore read only from a command line and from a study
file that the user gives, never from an outcome, a state, a table or a manifest. The words themselves are
parsed with `ast` and are not evaluated: an argument is a number, a text, True, False, None, a tuple of these,
or the call of a class of the same file or of lighttail, as in `my.py:Mine(Standard(1))`.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import io
import pickle
import re
import sys
import traceback
import types
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from lighttail.checks import BadInput, enumerated, known_word, refuse, refuse_file, shown

LIBRARY = "lighttail"
NAMES = "own_"  # the first letters of the name of a module that was loaded from a file
LONGEST_FILE = 10**6  # bytes per file
LONGEST_WORDS = 1000  # characters per call
FORM = "FILE.py:Class(arguments) or package.module:Class(arguments)"
ARGUMENT = "a number, a text, True, False, None, a tuple of these or the call of a class"
FILE = re.compile(r"(.*?\.py)(?::(.*))?", re.DOTALL)
DOTTED = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):\s*([^\W\d]\w*\s*(?:\(.*\))?)", re.DOTALL)

Load = Callable[[str, str], types.ModuleType]  # (field, file or module name) -> the loaded module
Kinds = dict[str, type]  # the base classes that are allowed, by their names in a message


def where_and_call(text: str) -> tuple[str, str] | None:
    """The file or module and the call in words that name a user's class; None for other words.

    >>> where_and_call("my.py:KlUcb(0.5)"), where_and_call("my.package:KlUcb")
    (('my.py', 'KlUcb(0.5)'), ('my.package', 'KlUcb'))
    >>> where_and_call("ucb:standard:0.8"), where_and_call("exp3ix:reward")
    (None, None)
    """
    text = text.strip()
    if found := FILE.fullmatch(text):
        return found[1].strip(), (found[2] or "").strip()
    if (found := DOTTED.fullmatch(text)) and ("." in found[1] or found[2].endswith(")")):
        return found[1], found[2].strip()
    return None


def loader(find: Callable[[str], Path], folder: Path) -> Load:
    """A function that loads modules. `find` returns the path of a file. A module is found as Python finds it,
    with `folder` as the last place."""

    def load(field: str, where: str) -> types.ModuleType:
        if where.endswith(".py"):
            return from_file(field, where, find(where))
        return from_module(field, where, folder)

    return load


def from_file(field: str, called: str, path: Path) -> types.ModuleType:
    """The module in a file, which runs once. The module's name depends on the path and the content of the
    file.

    The folder of the file becomes the last place where Python looks for modules, so that the file can import
    other files of its folder.
    """
    try:
        with open(path, "rb") as file:
            source = file.read(LONGEST_FILE + 1)
    except (OSError, ValueError) as error:
        raise refuse_file(field, called, "a class of a Python file that can be read", error) from None
    if len(source) > LONGEST_FILE:
        raise refuse(field, called, f"a class of a file of at most {LONGEST_FILE:,} bytes")
    path = path.resolve()
    digest = hashlib.sha256(f"{path}\0".encode(errors="replace") + source).hexdigest()[:16]
    _look_in(path.parent)
    try:
        return _module(f"{NAMES}{re.sub(r'[^0-9a-zA-Z]', '_', path.stem)}_{digest}", str(path), source)
    except (Exception, SystemExit) as error:  # a file may raise anything while it runs
        if not isinstance(error, SyntaxError) or error.filename != str(path):
            raise _stopped(field, called, error, str(path)) from None
        where = f"line {error.lineno} of {called}" if error.lineno else called
        found, more = f"{where} is not", f": {error.msg}"
        raise refuse(field, called, "a class of Python code", found=found, more=more) from None


def from_module(field: str, name: str, folder: Path) -> types.ModuleType:
    """The module with this dotted name."""
    _look_in(folder.resolve())
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        lacking = error.name if isinstance(error, ModuleNotFoundError) else None
        if lacking is None or not f"{name}.".startswith(f"{lacking}."):
            raise _stopped(field, name, error, "") from None
        found = f"there is no module {lacking!r}"
        raise refuse(field, name, "a class of a module that can be imported", found=found) from None


def build(field: str, text: str, load: Load | None, kinds: Kinds) -> Any:
    """The object that the words name. load: loads a module; None if words must not name files.

    The object is made twice, to check that two objects with the same arguments are equal: a table or a study
    could not find any other object again.
    """
    where, call = where_and_call(text) or ("", "")
    if load is None or not where:
        raise refuse(field, text, "in lighttail's own words here, not a class of a file or a module")
    maker = _Maker(field, where, load(field, where), kinds)
    tree = maker.parsed(text, call)
    first = maker.build(tree)
    with warnings.catch_warnings(action="ignore"):  # the first object has given its warnings already
        again = maker.build(tree)
    try:
        same = bool(first == again) and hash(first) == hash(again) and repr(first) == repr(again)
    except Exception:  # the class may have no hash, for example
        same = False
    if not same:
        allowed = "a frozen dataclass, so that equal arguments make equal objects"
        found = f"{type(first).__name__} of {where} is not"
        raise refuse(field, first, allowed, found=found, more=": write @dataclass(frozen=True) above it")
    return first


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # at the end, so that no other module is found in a new place


def _module(name: str, file: str, source: bytes) -> types.ModuleType:
    """The module with this name, which runs once per process."""
    if name in sys.modules:
        return sys.modules[name]
    module = types.ModuleType(name)
    module.__file__ = file
    sys.modules[name] = module
    try:
        exec(compile(source, file, "exec", dont_inherit=True), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    _sources[name] = file, source
    return module


_sources: dict[str, tuple[str, bytes]] = {}  # module name -> path and content, for modules from files


def _stopped(field: str, called: str, error: BaseException, file: str) -> BadInput:
    """The error for a file or a module that raises an error while it runs."""
    lines = [line for other, line in _trace(error) if other == file]
    where = f"line {lines[-1]} of {called}" if lines else called
    raised = f"{where} raises {_reason(error)}"
    return refuse(field, called, "a class of Python code that runs", found=raised)


def blame(error: BaseException) -> str:
    """One sentence about an error that a user's file raised, or that numba raised while compiling it; empty
    for other errors."""
    files = {file for file, _ in _sources.values()}
    places = [(file, line) for file, line in _trace(error) if file in files]
    if places:
        return f"line {places[-1][1]} of {places[-1][0]} raises {_reason(error)}"
    if files and type(error).__module__.partition(".")[0] == "numba":
        named = " or ".join(sorted(files))
        return f"the functions of {named} must be such as numba compiles: + - * / and math, on floats"
    return ""


def _trace(error: BaseException) -> list[tuple[str, int]]:
    """The files and lines of an error's traceback. The last entry is where the error was raised."""
    return [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]


def _reason(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")[:200]


@dataclass(frozen=True)
class _Maker:
    """Makes objects of the classes of a module. where: the file or the module, as the words name it."""

    field: str
    where: str
    module: types.ModuleType
    kinds: Kinds

    def parsed(self, text: str, call: str) -> ast.expr:
        """The call as a syntax tree. Raises BadInput if it is not the call or the name of a class."""
        if not call:
            listed = ", ".join(self.offered()) or f"there is none derived from {enumerated(self.kinds, 'or')}"
            raise refuse(self.field, text, f"{self.where}: and one of its classes ({listed})")
        tree: ast.expr | None = None
        if len(call) <= LONGEST_WORDS:
            with (
                suppress(SyntaxError, ValueError, RecursionError, MemoryError),
                warnings.catch_warnings(action="ignore"),  # of Python, about unknown escapes in a text
            ):
                tree = ast.parse(call, mode="eval").body
        if not isinstance(tree, (ast.Call, ast.Name)):
            raise refuse(self.field, text, f"of the form {FORM}")
        return tree

    def offered(self) -> list[str]:
        """The names of the module's classes that derive from one of the kinds."""
        ours = self.module.__name__ == LIBRARY
        return [
            name
            for name, value in vars(self.module).items()
            if isinstance(value, type)
            and issubclass(value, tuple(self.kinds.values()))
            and not inspect.isabstract(value)
            and (ours or value.__module__.partition(".")[0] != LIBRARY)
        ]

    def build(self, tree: ast.expr) -> Any:
        """The object that a call makes. Its class must be in the module and derive from one of the kinds."""
        node = tree.func if isinstance(tree, ast.Call) else tree
        if not isinstance(node, ast.Name):
            raise refuse(self.field, ast.unparse(tree), f"of the form {FORM}")
        kind, offered, where = vars(self.module).get(node.id), self.offered(), self.where
        bases = f"derived from {enumerated(self.kinds, 'or')}"
        if not isinstance(kind, type):
            if offered:
                known_word(f"{self.field} in {where}", node.id, offered)
            raise refuse(self.field, node.id, f"a class of {where} {bases}", found="there is none in it")
        if not issubclass(kind, tuple(self.kinds.values())):
            found, more = (
                f"{node.id} of {where} is not",
                f"; there is {', '.join(offered)}" if offered else "",
            )
            raise refuse(self.field, node.id, f"a class that is {bases}", found=found, more=more)
        return self._called(kind, tree)

    def _called(self, kind: type, tree: ast.expr) -> Any:
        """An object of the class `kind`, made with the arguments of a call."""
        args: list[Any] = []
        named: dict[str, Any] = {}
        argument, owner = f"an argument of {kind.__name__}", f"{kind.__name__} of {self.where}"
        if isinstance(tree, ast.Call):
            args = [self._value(argument, node) for node in tree.args]
            for keyword in tree.keywords:
                if keyword.arg is None:
                    raise refuse(argument, f"**{ast.unparse(keyword.value)}", ARGUMENT)
                named[keyword.arg] = self._value(argument, keyword.value)
        try:
            inspect.signature(kind).bind(*args, **named)
        except TypeError as error:
            takes, words = _parameters(kind), ast.unparse(tree)
            asked, more = f"{self.where} was asked for {shown(words)}", f" ({error})"
            field = f"the arguments of {kind.__name__}"
            raise refuse(field, words, f"({takes})", found=asked, more=more) from None
        except ValueError:  # a class without a signature
            pass
        if inspect.isabstract(kind):
            missing = min(vars(kind)["__abstractmethods__"])
            takes = _parameters(getattr(kind, missing), 1)
            raise refuse(owner, None, f"{missing}({takes})", verb="have", found="has none")
        try:
            return kind(*args, **named)
        except BadInput:
            raise
        except Exception as error:  # a user's class may raise anything
            words, raised = ast.unparse(tree), f"raises {_reason(error)}"
            allowed = f"the arguments of {shown(words)}"
            raise refuse(owner, words, allowed, verb="take", found=raised) from None

    def _value(self, argument: str, node: ast.expr) -> Any:
        """The value of an argument: a literal, or an object of a class of the same module or of lighttail."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._called(self._class(argument, node.func.id), node)
        try:
            value = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            raise refuse(argument, ast.unparse(node), ARGUMENT) from None
        if not _plain(value):
            raise refuse(argument, value, ARGUMENT)
        return value

    def _class(self, argument: str, name: str) -> type:
        """The class with this name that the module or lighttail defines."""
        library, kind = importlib.import_module(LIBRARY), vars(self.module).get(name)
        if not isinstance(kind, type) or kind.__module__ != self.module.__name__:
            kind = getattr(library, name, None) if name in library.__all__ else None
        if not isinstance(kind, type):
            allowed, missing = f"a class of {self.where} or of lighttail", f"there is no class {name!r}"
            raise refuse(argument, name, allowed, found=missing)
        return kind


def _parameters(call: Callable[..., Any], first: int = 0) -> str:
    return ", ".join(list(inspect.signature(call).parameters)[first:])


def _plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def member(name: str, file: str, source: bytes, path: str) -> Any:
    """Called in a worker: a class or function of a module from a file, which the worker need not have.

    path: the qualified name of the class or function.
    """
    return attrgetter(path)(_module(name, file, source))


class _Pickler(pickle.Pickler):
    """A pickler that sends a class or function from a file as the content of the file and a name.

    The worker runs the content as a module with the same name, so that it finds compiled kernels in numba's
    cache.
    """

    def reducer_override(self, sent: Any) -> Any:
        if isinstance(sent, (type, types.FunctionType)) and sent.__module__ in _sources:
            return member, (sent.__module__, *_sources[sent.__module__], sent.__qualname__)
        return NotImplemented


def pickled(sent: Any) -> bytes:
    """An object as bytes that every process with lighttail can read."""
    content = io.BytesIO()
    _Pickler(content, pickle.HIGHEST_PROTOCOL).dump(sent)
    return content.getvalue()
