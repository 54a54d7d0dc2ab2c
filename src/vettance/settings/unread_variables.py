"""Variables of the environment that look like settings and that nothing reads: most are misspelt."""

import difflib
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from vettance.settings.settings import SETTINGS
from vettance.telemetry.shared_counters import VARIABLE as BOARD

PREFIX: Final = "VETTANCE_"
#: What single commands and their processes read, and what the examples of the clients do.
_READ_ELSEWHERE: Final = (
    "VETTANCE_API_KEY",
    "VETTANCE_CONSUME_DEAD",
    "VETTANCE_CONSUME_FROM",
    "VETTANCE_CONSUME_TO",
    "VETTANCE_KEY",
    "VETTANCE_URL",
    "VETTANCE_WEBHOOK_SECRET",
    BOARD,
)
_KNOWN: Final = frozenset((*(row.variable for row in SETTINGS), *_READ_ELSEWHERE))
_OF_TESTS: Final = "VETTANCE_TEST_"
#: What is expected of the environment, as in other services, and is an option of `vettance serve`.
_OPTIONS: Final = ("host", "port", "role", "workers")
#: What Kubernetes adds for a Service whose name begins with `vettance`
#: (kubernetes.io/docs/tutorials/services/connect-applications-service, "Environment Variables").
_OF_KUBERNETES: Final = re.compile(
    r"_SERVICE_(HOST|PORT(_\w+)?)|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?"
)
_LINK: Final = re.compile(r"(tcp|udp|sctp)://")
#: How alike two names must be, by `difflib`: one letter of five may be another.
_LIKENESS_MIN: Final = 0.75


class UnreadVariable(msgspec.Struct, frozen=True):
    """A variable that nothing reads. `hint` says what may be meant. Its value may be a secret."""

    name: str
    hint: str


def find_unread(environ: Mapping[str, str]) -> list[UnreadVariable]:
    """Return the variables that begin as settings do and are none, by name."""
    names = sorted(
        name for name, value in environ.items() if name.startswith(PREFIX) and _is_unread(name, value)
    )
    return [UnreadVariable(ascii(name)[1:-1], _hint(name)) for name in names]


def _is_unread(name: str, value: str) -> bool:
    if name in _KNOWN or name.startswith(_OF_TESTS):
        return False
    rest = name.removeprefix(PREFIX.rstrip("_"))
    return not (_ends_as_of_kubernetes(rest) or (rest.endswith("_PORT") and _LINK.match(value)))


def _ends_as_of_kubernetes(rest: str) -> bool:
    return any(_OF_KUBERNETES.fullmatch(rest, place) for place, sign in enumerate(rest) if sign == "_")


def _hint(name: str) -> str:
    rest = name.upper().removeprefix(PREFIX)
    if rest.lower() in _OPTIONS:
        return f"It is an option: `vettance serve --{rest.lower()}`."
    # What all names begin with would make all of them alike.
    known = sorted(one.removeprefix(PREFIX) for one in _KNOWN - {BOARD})
    near = difflib.get_close_matches(rest, known, 1, _LIKENESS_MIN)
    return f"Is {PREFIX}{near[0]} meant?" if near else "docs/settings.md has all settings."
