"""Runs `vettance` with a wall clock that somebody else sets wrong: `wrong_clock.py OFFSET_FILE COMMAND…`.

The file holds 8 bytes, the nanoseconds that the clock is ahead (little-endian, signed). Processes that the
command starts have the right time, as the processes of several machines differ.
"""

import mmap
import struct
import sys
import time
from pathlib import Path


def go_wrong(path: Path) -> None:
    """Shift what this process takes for the time by what stands in the file."""
    with path.open("r+b") as file:
        memory = mmap.mmap(file.fileno(), 8)
    right_ns = time.time_ns

    def wrong_ns() -> int:
        return right_ns() + int(struct.unpack_from("<q", memory)[0])

    time.time_ns = wrong_ns
    time.time = lambda: wrong_ns() / 1e9


if __name__ == "__main__":
    go_wrong(Path(sys.argv[1]))
    from vettance.cli import main

    main(sys.argv[2:])
