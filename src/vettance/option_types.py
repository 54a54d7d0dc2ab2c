"""What options and arguments of commands take: files that can be read again and are apart, plain numbers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from vettance.wire.numbers import is_decimal, read_whole


class StoredFile(click.Path):
    """The path of a file to read more than once, which a pipe cannot be."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, exists=True, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse a pipe or a device: read to its end once, it looks empty."""
        path: Any = super().convert(value, param, ctx)
        if not Path(path).is_file():
            self.fail(
                f"{path} is a pipe or a device; write it to a file first, which can be read twice", param, ctx
            )
        return path


class Whole(click.IntRange):
    """A whole number within bounds, written as `read_whole` reads it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Refuse what `int` would read in its own way, such as `1_000`."""
        if isinstance(value, str) and read_whole(value, -(2**63)) is None:
            if value.isascii() and value.isdigit() and not value.startswith("0"):
                self.fail(f"a number of {len(value)} digits is not in the range of any setting.", param, ctx)
            self.fail(f"{value!r} is not a whole number in plain digits.", param, ctx)
        return int(super().convert(value, param, ctx))


class Decimal(click.FloatRange):
    """A decimal number within bounds, written as `is_decimal` says."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Refuse what `float` would read in its own way, such as `nan`, which no bounds hold."""
        if isinstance(value, str) and not is_decimal(value):
            self.fail(f"{value!r} is not a decimal number in plain digits.", param, ctx)
        return float(super().convert(value, param, ctx))


def hold_apart(written: Mapping[str, Path], read: Mapping[str, Path | None]) -> None:
    """Refuse, as wrong use, to write one of some files over another, or over one that is read.

    Both are by the names of their options; a file that is reached by a link is the file itself. Devices take
    whatever is written to them.
    """
    taken = {path.resolve(): name for name, path in read.items() if path is not None}
    for name, path in written.items():
        if path.exists() and not path.is_file():
            continue
        other = taken.setdefault(path.resolve(), name)
        if other != name:
            raise click.UsageError(f"{other} and {name} are one file; give {name} another")
