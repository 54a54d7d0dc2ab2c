"""The file: three formats, read and written row by row, so that size does not matter."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, Protocol

import msgspec

from vettance.exchange.columns import Cell
from vettance.wire.csv_header import doubled_name, other_separator
from vettance.wire.payload import decode, encode
from vettance.wire.utf8_text import first_line_not_utf8, not_utf8, skip_mark

FORMATS: Final = ("csv", "ndjson", "parquet")
_PARQUET_ROWS: Final = 5_000  # A row group is kept in memory until it is written.
_OBJECT: Final = "event"
_BLOCK_BYTES: Final = 1024 * 1024
#: An event may take a megabyte; the reader of the standard library stops at 128 KiB by itself.
_CELL_CHARS_MAX: Final = 4 * 1024 * 1024


class FormatFault(Exception):
    """A file that cannot be read, or a format that is not installed; one line says what to do."""


class Heading(Protocol):
    """What a file needs to know about a column."""

    @property
    def name(self) -> str:
        """The heading of the column."""

    @property
    def is_number(self) -> bool:
        """Whether it holds whole numbers."""


class Sink(Protocol):
    """Takes rows, and writes them in its format."""

    def write(self, rows: Sequence[Sequence[Cell]]) -> None:
        """Write some rows."""

    def close(self) -> None:
        """Write what is left."""


class CsvSink:
    """Comma-separated values with a header (RFC 4180)."""

    def __init__(self, file: IO[bytes], columns: Sequence[Heading]) -> None:
        self._text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        self._writer = csv.writer(self._text)
        self._writer.writerow([column.name for column in columns])

    def write(self, rows: Sequence[Sequence[Cell]]) -> None:
        """Write some rows."""
        self._writer.writerows([[_harmless(cell) for cell in row] for row in rows])

    def close(self) -> None:
        """Write what is left."""
        self._text.flush()
        self._text.detach()


def _harmless(cell: Cell) -> Cell:
    """Keep spreadsheets from running a text as a formula (OWASP, CSV Injection)."""
    return "'" + cell if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


class NdjsonSink:
    """One JSON object on each line."""

    def __init__(self, file: IO[bytes], columns: Sequence[Heading]) -> None:
        self._file = file
        self._names = [column.name for column in columns]

    def write(self, rows: Sequence[Sequence[Cell]]) -> None:
        """Write some rows."""
        for row in rows:
            record: dict[str, Any] = dict(zip(self._names, row, strict=True))
            if _OBJECT in record:
                record[_OBJECT] = json.loads(record[_OBJECT])
            self._file.write(encode(record) + b"\n")

    def close(self) -> None:
        """Write what is left."""
        self._file.flush()


class ParquetSink:
    """Apache Parquet, compressed with zstd."""

    def __init__(self, file: IO[bytes], columns: Sequence[Heading]) -> None:
        self._arrow, self._parquet = _arrow()
        self._schema = self._arrow.schema(
            [
                (column.name, self._arrow.int64() if column.is_number else self._arrow.string())
                for column in columns
            ]
        )
        self._writer = self._parquet.ParquetWriter(file, self._schema, compression="zstd")
        self._waiting: list[Sequence[Cell]] = []

    def write(self, rows: Sequence[Sequence[Cell]]) -> None:
        """Write some rows."""
        self._waiting += rows
        if len(self._waiting) >= _PARQUET_ROWS:
            self._flush()

    def close(self) -> None:
        """Write what is left."""
        if self._waiting:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        arrays = [
            self._arrow.array(cells, field.type)
            for cells, field in zip(zip(*self._waiting, strict=True), self._schema, strict=True)
        ]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        self._waiting = []


_SINKS: Final[dict[str, Callable[[IO[bytes], Sequence[Heading]], Sink]]] = {
    "csv": CsvSink,
    "ndjson": NdjsonSink,
    "parquet": ParquetSink,
}


def open_sink(file_format: str, file: IO[bytes], columns: Sequence[Heading]) -> Sink:
    """Begin a file of some columns. Raises `FormatFault`."""
    return _SINKS[file_format](file, columns)


def format_of(path: Path) -> str:
    """Tell the format by the end of the name. Raises `FormatFault`."""
    endings = {".csv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson", ".parquet": "parquet"}
    if path.suffix.lower() not in endings:
        raise FormatFault(f"the format of {path.name} cannot be told by its name ({', '.join(endings)})")
    return endings[path.suffix.lower()]


def rows_of(file_format: str, path: Path) -> Iterator[tuple[int, Mapping[str, Any] | str]]:
    """Yield (line, row) of a file; of a line that is no row, (line, why). Raises `FormatFault`.

    Lines count from 1; a header is line 1; in Parquet rows count as lines. CSV that is not UTF-8 is refused
    before its first row: in another encoding most of it looks right, and some names are other names.
    """
    if file_format == "csv":
        yield from _csv_rows(path)
    elif file_format == "ndjson":
        yield from _ndjson_rows(path)
    else:
        yield from _parquet_rows(path)


def count_rows(file_format: str, path: Path) -> int:
    """Return about how many rows a file has, for a progress bar; a row may have several lines."""
    if file_format == "parquet":
        arrow, parquet = _arrow()
        try:
            with parquet.ParquetFile(path) as file:
                return int(file.metadata.num_rows)
        except (OSError, arrow.ArrowInvalid):
            return 0  # Reading the rows reports what is wrong.
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(_BLOCK_BYTES), b""))


def _csv_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any] | str]]:
    with path.open("rb") as raw:
        if (line := first_line_not_utf8(raw)) is not None:
            raise FormatFault(not_utf8(path.name, line))
    with path.open(encoding="utf-8-sig", newline="") as file:
        csv.field_size_limit(_CELL_CHARS_MAX)
        reader = csv.reader(file)
        try:
            header = next(reader, None)
        except csv.Error as error:
            raise FormatFault(f"{path.name} is not CSV: {error}") from None
        if not header:
            raise FormatFault(f"{path.name} has no header")
        if (separators := other_separator(header)) is not None:
            raise FormatFault(f"{path.name} has {separators} between its cells; save it with commas")
        if (doubled := doubled_name(header)) is not None:
            raise FormatFault(f"{path.name} has two columns {doubled}; rename or remove one of them")
        start = reader.line_num + 1
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield start, f"is not CSV: {error}"
            else:
                if len(cells) == len(header):
                    yield start, {name: _unharmed(cell) for name, cell in zip(header, cells, strict=True)}
                elif cells:
                    yield start, f"has {len(cells)} cells where the header has {len(header)}"
            start = reader.line_num + 1


def _unharmed(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and cell[1:2] in ("=", "+", "-", "@", "\t", "\r") else cell


def _ndjson_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any] | str]]:
    with path.open("rb") as file:
        for number, line in enumerate(skip_mark(file), 1):
            if not line.strip():
                continue
            try:
                row = decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                not_text = first_line_not_utf8(io.BytesIO(line)) is not None
                yield number, "is not UTF-8" if not_text else "is not JSON"
                continue
            yield number, row if isinstance(row, dict) else "is not a JSON object"


def _parquet_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any] | str]]:
    arrow, parquet = _arrow()
    try:
        file = parquet.ParquetFile(path)
    except (OSError, arrow.ArrowInvalid) as error:
        raise FormatFault(f"{path.name} cannot be read as Parquet: {error}") from None
    number = 0
    with file:
        for batch in file.iter_batches(batch_size=_PARQUET_ROWS):
            for row in batch.to_pylist():
                number += 1
                yield number, row


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise FormatFault("Parquet needs an extra: pip install 'vettance[parquet]'") from None
    return pyarrow, pyarrow.parquet
