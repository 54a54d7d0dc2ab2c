"""What an API key may do: scopes, by which a key reaches some endpoints and not others."""

import enum
from collections.abc import Collection, Iterable
from typing import Final


class KeyScope(enum.StrEnum):
    """A part of the API that a key may call."""

    DECIDE = "decide"
    READ = "read"
    RULES = "rules"
    REVIEW = "review"
    MANAGE = "manage"


#: What each scope lets a key do, for help texts and forms.
SCOPES: Final = {
    KeyScope.DECIDE: "Send events, read decisions, keep lists, give feedback, settle reviews; not rules.",
    KeyScope.READ: "Read everything, and change nothing.",
    KeyScope.RULES: "Read, try, propose, approve and activate rules.",
    KeyScope.REVIEW: "Read and settle reviews.",
    KeyScope.MANAGE: "Keep webhook subscriptions, lists and the settings of AML.",
}
#: What a key may do for which nobody said anything, and what every key could do before there were scopes.
SCOPES_DEFAULT: Final = frozenset({KeyScope.DECIDE})
_READS: Final = ("GET", "HEAD")


def lacking(scopes: Collection[str], demanded: tuple[KeyScope, ...], method: str) -> KeyScope | None:
    """Return the scope that a key lacks for an endpoint, or None where one of those `demanded` is there.

    `read` reaches whatever changes nothing.
    """
    for scope in demanded:
        if scope in scopes:
            return None
    return None if KeyScope.READ in scopes and method in _READS else demanded[0]


def stored_scopes(scopes: Iterable[KeyScope]) -> str:
    """Write scopes as they are stored."""
    return " ".join(sorted(scopes))


def read_scopes(stored: str | None) -> frozenset[KeyScope]:
    """Read stored scopes. What only a later version of the service knows is left out, and opens nothing."""
    if stored is None:
        return SCOPES_DEFAULT
    known = {scope.value for scope in KeyScope}
    return frozenset(KeyScope(word) for word in stored.split() if word in known)
