"""Roles: what a user may do for a tenant. A user has one or more of them, and their rights add up."""

import enum
from collections.abc import Iterable, Mapping
from typing import Final


class Role(enum.StrEnum):
    """The six roles of the console."""

    VIEWER = "viewer"
    ANALYST = "analyst"
    LEAD = "lead"
    EDITOR = "editor"
    ADMIN = "admin"
    AUDITOR = "auditor"


#: What each role is for, in the words that pages and `--help` show.
MEANINGS: Final[Mapping[Role, str]] = {
    Role.VIEWER: "reads decisions, sessions, entities, reports, lists and cases; personal data is masked",
    Role.ANALYST: "also works the queue, labels, notes, lists, AML alerts and cases, screenings",
    Role.LEAD: "also assigns, takes from others, gives the second signature, checks quality",
    Role.EDITOR: "reads, and drafts, tests, backtests and proposes rules",
    Role.ADMIN: "also manages users, keys, webhooks, settings, models; approves and rolls back rules",
    Role.AUDITOR: "reads everything, the audit log included, and changes nothing",
}


def read_roles(text: str) -> frozenset[Role]:
    """Read roles as the store holds them; a role that only a newer version knows gives no right."""
    known = set(Role)
    return frozenset(Role(word) for word in text.split() if word in known)


def write_roles(roles: Iterable[Role]) -> str:
    """Write roles as the store holds them."""
    return " ".join(sorted(roles))
