"""Counts the work of an act, where a clock would say how busy the machine is."""

import sys
from collections.abc import Callable


def lines_run(act: Callable[[], object]) -> int:
    """Count the lines of Python that an act runs: its cost, whatever else the machine is doing."""
    count = 0

    def trace(_frame: object, event: str, _argument: object) -> object:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count
