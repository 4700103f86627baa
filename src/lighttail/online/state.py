"""Policies and generators as plain JSON, and back. Every field of a text is checked before it is used."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from lighttail.bonuses import Bonus
from lighttail.checks import BadInput, number, refuse, whole
from lighttail.linear import LinearBonus
from lighttail.policies import Policy
from lighttail.policies.policy import is_sum

FOREIGN = "the text is not an experiment that lighttail wrote"
LARGEST = 1e100  # the largest reward: a sum of such rewards, even times an action, is finite
LONGEST_ABOUT = 1_000  # bytes, as JSON, of what a caller notes about a trial
GENERATORS = ("SFC64", "PCG64", "PCG64DXSM", "Philox", "MT19937")
MOST_OF = {  # the largest value of each field of a generator's state
    "state": 2**128 - 1,
    "inc": 2**128 - 1,
    "uinteger": 2**32 - 1,
    "has_uint32": 1,
    "buffer_pos": 4,
    "pos": 624,
}


def parse(text: Any) -> Any:
    """The JSON text as plain values. Raises BadInput if it is not a text, not JSON, or has a field twice."""
    if not isinstance(text, str):
        raise refuse("the text", text, "a str that to_json returned")
    try:
        return json.loads(text, object_pairs_hook=_fields_once)
    except BadInput:
        raise
    except ValueError:  # the text is not JSON, or contains a whole number of thousands of digits
        raise BadInput(FOREIGN, field="the text", value=text) from None


def _fields_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise refuse("the name of a field", twice, "different from the others").within(FOREIGN)
    return values


def fields_of(field: str, value: Any, names: Sequence[str]) -> dict[str, Any]:
    """`value` as an object with exactly these fields."""
    if not isinstance(value, dict):
        raise refuse(field, value, f"an object with the fields {', '.join(names)}")
    for name in names:
        if name not in value:
            raise refuse(f"the fields of {field}", list(value), f"{', '.join(names)} ({name} is missing)")
    for name in value:
        if name not in names:
            raise refuse(f"the name of a field of {field}", name, f"one of {', '.join(names)}")
    return value


def listed(field: str, value: Any, length: int | None = None) -> list[Any]:
    """`value` as a list, which must have this length if one is given."""
    many = "" if length is None else f" of {length} entries"
    if not isinstance(value, list):
        raise refuse(field, value, f"a list{many}")
    if length is not None and len(value) != length:
        raise refuse(f"the length of {field}", len(value), str(length))
    return value


def row_of(field: str, value: Any, dim: int, most: float = math.inf) -> list[float]:
    """`value` as a list of `dim` numbers of at most `most` in size."""
    row = [number(field, entry) for entry in listed(field, value, dim)]
    if any(abs(entry) > most for entry in row):
        raise refuse(field, row, f"a list of numbers of at most {most:g} in size")
    return row


def square_of(field: str, value: Any, dim: int) -> list[list[float]]:
    return [row_of(field, row, dim) for row in listed(field, value, dim)]


def checked_reward(field: str, value: Any) -> float:
    """`value` as a reward: a finite number that is so small that sums of rewards are finite."""
    reward = number(field, value)
    if abs(reward) > LARGEST:
        raise refuse(field, value, f"a number of at most {LARGEST:g} in size, so that sums stay finite")
    return reward


def checked_about(value: Any) -> dict[str, Any]:
    """`value` as what a caller notes about a trial: a flat JSON object of at most `LONGEST_ABOUT` bytes.

    >>> checked_about({"page": "/cart", "visits": 3, "member": True})
    {'page': '/cart', 'visits': 3, 'member': True}
    """
    fit = "an object whose values are text, finite numbers, true, false or null"
    if not isinstance(value, dict):
        raise refuse("about", value, fit)
    made: dict[str, Any] = {}
    for name, entry in value.items():
        if not isinstance(name, str):
            raise refuse("a name in about", name, "text")
        plain = entry is None or isinstance(entry, (str, bool, int, float))
        if not plain or (isinstance(entry, float) and not math.isfinite(entry)):
            raise refuse(f"about.{name}", entry, "text, a finite number, true, false or null")
        made[name] = float(entry) if isinstance(entry, float) else entry
    try:
        bytes_ = len(json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode())
    except ValueError:  # half of a character, or a whole number of thousands of digits
        raise refuse("about", value, f"{fit}, and that UTF-8 can write") from None
    if bytes_ > LONGEST_ABOUT:
        raise refuse("the size of about", bytes_, f"at most {LONGEST_ABOUT} bytes as JSON")
    return made


def check_counts(field: str, value: Any, counts: list[int]) -> None:
    """Raise BadInput unless `value` is a list that equals `counts`, which the trials show."""
    have = [whole(field, entry, 0) for entry in listed(field, value, len(counts))]
    if have != counts:
        raise refuse(field, have, f"the counts {shortened(counts)} that its trials give")


def check_sums(field: str, value: Any, terms: list[list[float]], replaced: list[list[float]]) -> None:
    """Raise BadInput if `value` is no list, or differs from the sums of `terms` beyond rounding.

    replaced: per sum, how many terms were replaced, and the sum of the sizes of the old and the new terms.
    """
    have = [number(field, entry) for entry in listed(field, value, len(terms))]
    for total, summed, (times, sizes) in zip(have, terms, replaced, strict=True):
        if not is_sum(total, summed, times, sizes):
            allowed = f"{math.fsum(summed)!r}, the sum that its trials give, apart from rounding"
            raise refuse(field, total, allowed)


def shortened(values: list[int]) -> str:
    """A list in a message, with at most ten entries."""
    return str(values) if len(values) <= 10 else f"{str(values[:10])[:-1]}, ...]"


def encode_settings(settings: Any) -> Any:
    """A policy or bonus as {"type": "module:class", field: value, ...}."""
    if not is_dataclass(settings):
        return settings
    values = {f.name: encode_settings(getattr(settings, f.name)) for f in fields(settings)}
    return {"type": f"{type(settings).__module__}:{type(settings).__qualname__}", **values}


def decode_settings(settings: Any, field: str = "policy") -> Any:
    """The policy or bonus that `encode_settings` wrote, made from the classes that are loaded."""
    if isinstance(settings, float):
        return number(field, settings)
    if not isinstance(settings, dict):
        return settings
    if not isinstance(settings.get("type"), str):
        raise refuse(f"{field}.type", settings.get("type"), "the name of a policy or a bonus")
    made = _class_named(settings["type"])
    names = [f.name for f in fields(made)] if is_dataclass(made) else []
    for name in settings:
        if name != "type" and name not in names:
            raise refuse(f"the name of a field of {field}", name, f"one of {', '.join(['type', *names])}")
    values = {
        name: decode_settings(value, f"{field}.{name}") for name, value in settings.items() if name != "type"
    }
    try:
        return made(**values)
    except BadInput:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError):  # from a user's class, too
        raise refuse(field, settings, f"an object with the fields that {made.__name__} takes") from None


def _class_named(text: str) -> type:
    """The policy or bonus class of this name from its module, or the only class of this name elsewhere."""
    module, _, name = text.partition(":")
    known = [cls for base in (Policy, Bonus, LinearBonus) for cls in _below(base)]
    loaded = [cls for cls in known if cls.__qualname__ == name]
    at_home = [cls for cls in loaded if cls.__module__ == module]
    if not loaded or (not at_home and len(loaded) > 1):
        said = f"the policy class {name[:100]!r} of {module[:100]!r} is not known"
        more = "import the module that defines your own class first"
        raise BadInput(f"{said}; {more}", field="policy", value=text)
    return (at_home or loaded)[-1]  # the newest class, because a notebook may define a class again


def _below(base: type) -> list[type]:
    """All subclasses of a class, direct and indirect, in the order of their definition."""
    children: list[type] = base.__subclasses__()
    return [cls for child in children for cls in (child, *_below(child))]


def generator_of(seed: Any) -> np.random.Generator:
    """The generator of an experiment that begins."""
    if isinstance(seed, np.random.Generator):
        kind = type(seed.bit_generator).__name__
        if kind not in GENERATORS:  # the state of another generator could not be saved
            raise refuse("the bit generator of seed", kind, f"one of {', '.join(GENERATORS)}")
        return seed
    return np.random.Generator(np.random.SFC64(None if seed is None else whole("seed", seed, 0)))


def encode_generator(rng: np.random.Generator) -> Any:
    """The exact state of the generator as plain values."""
    return _to_plain(rng.bit_generator.state)


def decode_generator(state: Any) -> np.random.Generator:
    """A generator that continues from a state. Raises BadInput if the state is wrong."""
    kind = state.get("bit_generator") if isinstance(state, dict) else state
    if kind not in GENERATORS:
        raise refuse("rng", kind, f"one of {', '.join(GENERATORS)}")
    bits = getattr(np.random, kind)(0)
    _check_like("rng", state, _to_plain(bits.state))
    bits.state = _from_plain(state)
    return np.random.Generator(bits)


def _check_like(field: str, value: Any, model: Any) -> None:
    """Raise BadInput if `value` does not have the form of `model`. NumPy would accept a wrong state and read
    outside of its arrays."""
    if isinstance(model, dict):
        fields_of(field, value, tuple(model))
        for name in model.keys() - {"values"}:
            _check_like(f"{field}.{name}", value[name], model[name])
        if "values" in model:
            most = int(np.iinfo(model["dtype"]).max)
            for entry in listed(f"{field}.values", value["values"], len(model["values"])):
                whole(f"{field}.values", entry, 0, most=most)
    elif isinstance(model, int):
        name = field.rpartition(".")[2]
        whole(field, value, 0, most=MOST_OF[name])
        if name == "inc" and value % 2 == 0:  # with an even increment PCG64 soon repeats its numbers
            raise refuse(field, value, "an odd number")
    elif value != model:
        raise refuse(field, value, repr(model))


def _to_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _to_plain(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray):
        return {"dtype": str(value.dtype), "values": value.tolist()}
    return int(value) if isinstance(value, np.integer) else value


def _from_plain(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"dtype", "values"}:
        return np.array(value["values"], dtype=value["dtype"])
    if isinstance(value, dict):
        return {name: _from_plain(entry) for name, entry in value.items()}
    return value
