"""Labels: the known outcomes of events, from a file next to theirs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from vettance.exchange.row_files import FormatFault, format_of, rows_of
from vettance.feedback.label import Label
from vettance.wire.numbers import read_whole

#: By what a row names its event, in the order of preference: the caller's name for it, its line in the file.
_REFERENCE: Final = "reference"
_LINE: Final = "line"


class Labels:
    """The labels of a file, found by the `metadata.reference` of an event, else by its line."""

    def __init__(self) -> None:
        self._by_reference: dict[str, Label] = {}
        self._by_line: dict[int, Label] = {}
        self._used: set[str | int] = set()

    def add(self, line: int, row: Mapping[str, Any]) -> str | None:
        """Take a row; `line` is its own line in the file. Returns what is wrong with it, if anything."""
        said = row.get("label")
        if said in (None, ""):
            return None
        if not isinstance(said, str) or said not in Label.__members__:
            return "label must be one of " + ", ".join(Label)
        label = Label[said]
        if row.get(_REFERENCE) not in (None, ""):
            self._by_reference[str(row[_REFERENCE])] = label
            return None
        stated = row.get(_LINE)
        if stated in (None, ""):
            stated = line
        number = read_whole(stated, 1) if isinstance(stated, str) else stated
        if isinstance(number, float) and number.is_integer():
            number = int(number)  # Of a column of numbers with gaps.
        if type(number) is not int or number < 1:
            return "line must be a whole number from 1"
        self._by_line[number] = label
        return None

    def of(self, line: int, metadata: Mapping[str, Any]) -> Label | None:
        """Return the label of the event of a line."""
        reference = metadata.get(_REFERENCE)
        name = None if reference is None else str(reference)
        found = None if name is None else self._by_reference.get(name)
        self._used |= {
            one for one, known in ((name, found), (line, self._by_line.get(line))) if known and one
        }
        return found or self._by_line.get(line)

    @property
    def unused(self) -> int:
        """How many labels no event had so far."""
        return len(self._by_reference) + len(self._by_line) - len(self._used)


def read_labels(path: Path | None) -> Labels:
    """Read the labels of a file in any format; none without one. Raises `FormatFault`."""
    labels = Labels()
    if path is not None:
        for line, row in rows_of(format_of(path), path):
            fault = row if isinstance(row, str) else labels.add(line, row)
            if fault is not None:
                raise FormatFault(f"{path.name}, line {line}: {fault}")
    return labels
