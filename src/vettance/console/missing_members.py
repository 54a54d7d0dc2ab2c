"""What a template gets for what is not there: an error for a name, nothing for a member of a value.

Answers of the API leave optional members out, so a member may be missing; a name that no page gives may not.
"""

from collections.abc import Iterator
from typing import Any

from jinja2 import Undefined
from jinja2.utils import missing


class MissingMember(Undefined):
    """Reads as nothing where it is a member of something; raises where it is a name of its own."""

    def _check(self) -> None:
        if self._undefined_obj is missing:
            self._fail_with_undefined_error()

    def __str__(self) -> str:
        self._check()
        return ""

    def __bool__(self) -> bool:
        self._check()
        return False

    def __iter__(self) -> Iterator[Any]:
        self._check()
        yield from ()
