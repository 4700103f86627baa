"""Policies and generators as plain JSON, and back."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from lighttail.bonuses import Bonus
from lighttail.linear import LinearBonus
from lighttail.policies import Policy
from lighttail.validation import BadInput


def encode(settings: Any) -> Any:
    """A policy or bonus as {"type": "module:class", field: value, ...}."""
    if not is_dataclass(settings):
        return settings
    values = {f.name: encode(getattr(settings, f.name)) for f in fields(settings)}
    return {"type": f"{type(settings).__module__}:{type(settings).__qualname__}", **values}


def decode(settings: Any) -> Any:
    """What `encode` wrote, made anew from the classes that are loaded."""
    if not isinstance(settings, dict):
        return settings
    values = {name: decode(value) for name, value in settings.items() if name != "type"}
    return _class_named(settings["type"])(**values)


def _class_named(text: str) -> type:
    """The policy or bonus class of that name: from its module, or else from wherever it is now."""
    module, _, name = text.partition(":")
    loaded = [
        cls for base in (Policy, Bonus, LinearBonus) for cls in _below(base) if cls.__qualname__ == name
    ]
    at_home = [cls for cls in loaded if cls.__module__ == module]
    if not loaded or (not at_home and len(loaded) > 1):
        raise BadInput(
            f"the policy class {name!r} of {module!r} is not known; "
            "import the module that defines your own class first"
        )
    return (at_home or loaded)[-1]  # the newest, where a notebook defined it again


def _below(base: type) -> list[type]:
    """All subclasses, in the order in which they were defined."""
    children: list[type] = base.__subclasses__()
    return [cls for child in children for cls in (child, *_below(child))]


def encode_generator(rng: np.random.Generator) -> Any:
    """The generator's exact state."""
    return _to_plain(rng.bit_generator.state)


def decode_generator(state: Any) -> np.random.Generator:
    """A generator that continues from that state."""
    plain = _from_plain(state)
    kinds = ("SFC64", "PCG64", "PCG64DXSM", "Philox", "MT19937")
    if plain["bit_generator"] not in kinds:
        raise BadInput(f"rng must be one of {', '.join(kinds)}, but is {plain['bit_generator']!r}")
    bits = getattr(np.random, plain["bit_generator"])(0)
    bits.state = plain
    return np.random.Generator(bits)


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
