"""UTF-8 (RFC 3629): the first line of a file that is not written in it."""

import codecs
from typing import IO, Final

_BLOCK_BYTES: Final = 1024 * 1024


def first_line_not_utf8(file: IO[bytes]) -> int | None:
    """Read a file to its end; return its first line, counted from 1, that is not UTF-8. None if all are."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines = 1
    while block := file.read(_BLOCK_BYTES):
        pending = decoder.getstate()[0]
        try:
            decoder.decode(block)
        except UnicodeDecodeError as error:
            return lines + (pending + block).count(b"\n", 0, error.start)
        lines += block.count(b"\n")
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return lines
    return None


def skip_mark(file: IO[bytes]) -> IO[bytes]:
    """Go to the first byte behind the byte-order mark of a file, or to its beginning without one."""
    file.seek(0)
    if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
        file.seek(0)
    return file


def not_utf8(name: str, line: int) -> str:
    """Say in one sentence which line of a file is not UTF-8, and what to do."""
    return f"{name}, line {line:,}, is not UTF-8; save the file in that encoding"
