"""Reading what publishers publish: text of uncertain encoding, CSV, XML without surprises, spreadsheets."""

import csv
import gzip
import io
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from xml.etree.ElementTree import Element
from xml.parsers import expat

from vettance.wire.csv_header import doubled_name
from vettance.wire.utf8_text import first_line_not_utf8, not_utf8

# Publishers put whole biographies into one cell.
csv.field_size_limit(min(sys.maxsize, 64 * 1024 * 1024))

_CHUNK_BYTES = 256 * 1024
#: No list in use comes near this; a file that unpacks to more is not a list.
FILE_BYTES_MAX = 4 * 1024**3


class SourceFault(Exception):
    """A file that cannot be read as what it should be; the message says which file and why."""


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, unpacking gzip; raises `SourceFault` when it cannot be read."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if packed:
                with gzip.GzipFile(fileobj=raw) as unpacked:
                    yield unpacked  # type: ignore[misc]
            else:
                yield raw
    except (OSError, EOFError, gzip.BadGzipFile) as error:
        raise SourceFault(f"{path.name} cannot be read: {error}") from None


def read_text(path: Path) -> str:
    """Return a whole file as text: UTF-8 (with or without a mark), UTF-16 with a mark, else Windows-1252."""
    with open_bytes(path) as file:
        data = file.read(FILE_BYTES_MAX)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # OFAC and OFSI have long published Windows-1252; its five holes become replacement characters.
        return data.decode("cp1252", "replace")


def hold_utf8(path: Path) -> None:
    """Raise `SourceFault` for a file that is not UTF-8: of other encodings nobody can tell which it is."""
    with open_bytes(path) as file:
        line = first_line_not_utf8(file)
    if line is not None:
        raise SourceFault(not_utf8(path.name, line))


def csv_rows(path: Path, delimiter: str = ",") -> Iterator[list[str]]:
    """Yield the rows of a CSV file. A quote that is never closed or a NUL raises `SourceFault`."""
    text = read_text(path).replace("\x00", "")
    try:
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    except csv.Error as error:
        raise SourceFault(f"{path.name} is not a CSV file: {error}") from None


def csv_records(
    path: Path,
    required: tuple[str, ...],
    delimiter: str = "",
    skip: Callable[[list[str]], bool] | None = None,
) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file with a header as {column: text}; columns are stripped and case-folded.

    `skip` tells rows before the header. Raises `SourceFault` when a required column is missing.
    """
    rows = csv_rows(path, delimiter or _delimiter(path))
    header: list[str] | None = None
    for row in rows:
        if not any(cell.strip() for cell in row):
            continue
        if header is None:
            if skip is not None and skip(row):
                continue
            header = [cell.strip().casefold() for cell in row]
            missing = [name for name in required if name not in header]
            if missing:
                raise SourceFault(f"{path.name} has no column {', '.join(missing)}")
            if (doubled := doubled_name(header)) is not None:
                raise SourceFault(f"{path.name} has two columns {doubled}; rename or remove one of them")
            continue
        yield dict(zip(header, (cell.strip() for cell in row), strict=False))
    if header is None:
        raise SourceFault(f"{path.name} is empty")


def _delimiter(path: Path) -> str:
    """Find what separates cells by the first line that has any separator: cells may hold the others."""
    with open_bytes(path) as file:
        lines = file.read(4096).decode("utf-8", "replace").splitlines()
    counts = ({sign: line.count(sign) for sign in ",;\t|"} for line in lines)
    found = next((count for count in counts if any(count.values())), {",": 1})
    return max(found, key=found.__getitem__)


def xml_records(path: Path, tags: frozenset[str]) -> Iterator[Element]:
    """Yield each element whose local name is in `tags`, whole, as soon as it is read; the rest is dropped.

    Names come without namespaces. A document type declaration is refused: no list has one, and it is the
    way in for entity expansion and for files of ours. Raises `SourceFault` for anything that is not XML.
    """
    ready: list[Element] = []
    stack: list[Element] = []
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        raise SourceFault(f"{path.name} has a document type declaration, which no list needs")

    def begin(name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition("}")[2]
        if stack or local in tags:
            element = Element(local, {key.rpartition("}")[2]: value for key, value in attributes.items()})
            if stack:
                stack[-1].append(element)
            stack.append(element)

    def finish(_name: str) -> None:
        if stack:
            element = stack.pop()
            if not stack:
                ready.append(element)

    def text(data: str) -> None:
        if stack:
            element = stack[-1]
            if len(element):
                element[-1].tail = (element[-1].tail or "") + data
            else:
                element.text = (element.text or "") + data

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = begin, finish, text
    try:
        with open_bytes(path) as file:
            while chunk := file.read(_CHUNK_BYTES):
                parser.Parse(chunk)
                yield from ready
                ready.clear()
            parser.Parse(b"", True)  # noqa: FBT003
            yield from ready
    except expat.ExpatError as error:
        raise SourceFault(f"{path.name} is not well-formed XML: {error}") from None


def texts(element: Element, path: str) -> list[str]:
    """Return the non-empty texts of all elements at `path` below `element`."""
    return [text for found in element.findall(path) if (text := (found.text or "").strip())]


def text_at(element: Element, path: str) -> str:
    """Return the first non-empty text at `path`, or an empty string."""
    return next(iter(texts(element, path)), "")


_CELL = re.compile(r"([A-Z]+)\d+")


def sheet_rows(path: Path) -> Iterator[list[str]]:
    """Yield the rows of the first sheet of an XLSX workbook (ISO/IEC 29500) as texts, gaps as empty cells."""
    try:
        with zipfile.ZipFile(path) as book:
            names = book.namelist()
            sheets = sorted(
                (name for name in names if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", name)),
                key=lambda name: int(re.findall(r"\d+", name)[0]),
            )
            if not sheets:
                raise SourceFault(f"{path.name} holds no sheet")
            if sum(item.file_size for item in book.infolist()) > FILE_BYTES_MAX:
                raise SourceFault(f"{path.name} unpacks to more than a list can be")
            shared: list[str] = []
            if "xl/sharedStrings.xml" in names:
                items = _part(book, path, "xl/sharedStrings.xml", "si")
                shared = ["".join(run.text or "" for run in item.iter("t")) for item in items]
            for row in _part(book, path, sheets[0], "row"):
                yield _cells(row, shared)
    except (zipfile.BadZipFile, OSError, IndexError, ValueError) as error:
        raise SourceFault(f"{path.name} is not an XLSX workbook: {error}") from None


def _part(book: zipfile.ZipFile, path: Path, name: str, tag: str) -> Iterator[Element]:
    part = _ZipPart(book, name, path.name)
    return xml_records(part, frozenset({tag}))  # type: ignore[arg-type]


class _ZipPart:
    """A file inside an archive that can be opened like a path."""

    def __init__(self, book: zipfile.ZipFile, inner: str, name: str) -> None:
        self._book, self._inner, self.name = book, inner, name

    def open(self, _mode: str) -> IO[bytes]:
        return self._book.open(self._inner)


def _cells(row: Element, shared: list[str]) -> list[str]:
    cells: list[str] = []
    for cell in row.iter("c"):
        place = _CELL.match(cell.get("r", ""))
        column = _column(place[1]) if place else len(cells)
        cells.extend([""] * (column - len(cells)))
        value = cell.find("v")
        if value is not None and value.text is not None:
            cells.append(shared[int(value.text)] if cell.get("t") == "s" else value.text)
        else:
            cells.append("".join(run.text or "" for run in cell.iter("t")))
    return cells


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1
