"""The rows of an import that are no events, written to a file and counted by reason."""

from collections import Counter
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from vettance.wire.payload import decode, encode

#: Refused rows that are shown one by one: enough to see what is wrong, and few enough to read.
SHOWN_MAX: Final = 5
#: Different reasons that are counted apart. There are a few dozen; a file of something else may have more.
REASONS_MAX: Final = 100
_OTHERS: Final = "other reasons"


class RefusedRow(NamedTuple):
    """A refused row: its line, and what is wrong by field path."""

    line: int
    details: dict[str, Any]


class RefusedRows:
    """Refused rows with their line numbers, one JSON object on each line; the file is made when there is one.

    `append` keeps what an import that was interrupted had written about lines before the first of this one.
    """

    def __init__(self, path: Path, *, append: bool) -> None:
        self.path = path
        #: How many rows were refused for what, in this run.
        self.reasons: Counter[str] = Counter()
        self.first: list[RefusedRow] = []
        self._append = append
        self._file: IO[bytes] | None = None

    def __enter__(self) -> "RefusedRows":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, line: int, details: dict[str, Any]) -> None:
        """Write why a line was refused."""
        if self._file is None:
            self._file = self.path.open("ab")
            self._file.truncate(_end_before(self.path, line) if self._append else 0)
        self._file.write(encode({"line": line, "details": details}) + b"\n")
        self._file.flush()
        if len(self.first) < SHOWN_MAX:
            self.first.append(RefusedRow(line, details))
        reason = reason_of(details)
        known = reason in self.reasons or len(self.reasons) < REASONS_MAX
        self.reasons[reason if known else _OTHERS] += 1


def reason_of(details: dict[str, Any]) -> str:
    """Say in one line what is wrong with a row."""
    return "; ".join(f"{path} {fault}" for path, fault in details.items())


def _end_before(path: Path, line: int) -> int:
    """Return how many bytes of an error file are about lines before this one."""
    end = 0
    with path.open("rb") as file:
        for said in file:
            try:
                known = decode(said)["line"] < line
            except (ValueError, TypeError, KeyError):
                break  # A line that was cut off, or no error file at all.
            if not known:
                break
            end += len(said)
    return end
