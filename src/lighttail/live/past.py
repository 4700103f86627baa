"""What the events so far say about keys, units and trials: those in the journal, and those that are still on
their way to it."""

from __future__ import annotations

from lighttail.live.journal import Event, Finder, event_of
from lighttail.live.writer import Group


class Past:
    """Look-ups for one round of play.

    groups: events that follow those of the journal and may reach it at any moment, so that they may be found
    in both places; the number of an event says that it is the same."""

    def __init__(self, journal: Finder, groups: tuple[Group, ...] = ()) -> None:
        self._journal, self._groups = journal, groups

    def with_keys(self, keys: set[str]) -> dict[str, list[str]]:
        """The lines of the asks that came with each of these keys, in their order; most keys are new and
        have none."""
        found: dict[str, list[str]] = {}
        for body in self._journal.bodies_with(list(keys)):
            found.setdefault(event_of(body)["key"], []).append(body)
        for group in self._groups:
            for key in keys & group.keys.keys():
                found[key] = group.keys[key]  # the asks of a key are never in two groups
        return found

    def of_units(self, units: list[str], after: int) -> list[Event]:
        """The first ask after event `after` that decided the arm of each of these units."""
        found = {event["unit"]: event for event in map(event_of, self._journal.bodies_of_units(units, after))}
        wanted = set(units) - found.keys() if self._groups else ()
        for group in self._groups:
            for row in group.rows if wanted else ():
                unit = row.unit
                if unit in wanted and unit not in found and row.seq > after:
                    found[unit] = event_of(row.body)
        return list(found.values())

    def of_trial(self, id: int) -> list[Event]:
        """All events of a trial, in their order."""
        found = [event_of(body) for body in self._journal.bodies_of(id)]
        last = found[-1]["seq"] if found else 0
        for group in self._groups:
            found += [event for event in group.story(id) if event["seq"] > last]
        return found
