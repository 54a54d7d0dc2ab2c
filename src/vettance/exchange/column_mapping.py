"""Which columns of somebody else's file are which members of an event."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class MappingFault(Exception):
    """A pair that is no pair; one line says what to write instead."""


class ColumnMapping(NamedTuple):
    """`columns` leads from members (`metadata.amount`) to the columns they are in, `constants` to values.

    Without columns a row keeps all that it has. With columns only those are taken: the files of other systems
    hold much that no rule needs, names of people among it.
    """

    columns: Mapping[str, str]
    constants: Mapping[str, str]

    def applied(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a row under the names of members. A column that the row lacks leaves its member out."""
        if not self.columns and not self.constants:
            return row
        taken = {to: row[name] for to, name in self.columns.items() if name in row} if self.columns else row
        return {**self.constants, **taken}


def read_mapping(columns: Iterable[str], constants: Iterable[str]) -> ColumnMapping:
    """Read pairs such as `metadata.amount=Amount`. Raises `MappingFault`."""
    return ColumnMapping(_pairs("--column", columns), _pairs("--set", constants))


def _pairs(option: str, pairs: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        member, sign, value = pair.partition("=")
        if not (member and sign and value):
            raise MappingFault(f"{option} takes MEMBER=…, such as metadata.amount=Amount; this is '{pair}'")
        if member in found:
            raise MappingFault(f"{option} names {member} twice")
        found[member] = value
    return found
