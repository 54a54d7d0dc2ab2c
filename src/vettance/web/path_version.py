"""The number of a version that a path names: one text for each number, and nothing found by any other."""

from typing import Final

from vettance.errors import NotFound
from vettance.web.routing import Call
from vettance.wire.numbers import read_whole

#: What an INTEGER of PostgreSQL holds.
VERSION_MAX: Final = 2**31 - 1


def version_in_path(call: Call) -> int:
    """Return the version that the path names. Raises `NotFound`, also for a number in another form (`01`)."""
    version = read_whole(call.path["version"], 1, VERSION_MAX)
    if version is None:
        raise NotFound
    return version
