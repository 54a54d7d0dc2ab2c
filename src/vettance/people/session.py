"""Sessions of the console: their cookie, how long they live, and who is signed in by them."""

import enum
import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec

from vettance.clock import DAY_MS, HOUR_MS, MINUTE_MS
from vettance.people.role import Role
from vettance.people.user import UserMembership

COOKIE: Final = "vettance_session"
#: Behind https: browsers take a cookie of this name only with `Secure`, for one host and the whole of it.
SECURE_COOKIE: Final = f"__Host-{COOKIE}"
#: Who has given the password has so long for the second factor.
FACTOR_MS: Final = 10 * MINUTE_MS
#: A session that is over is known for so long: what its pages still send is then known to be whose.
KNOWN_MS: Final = 3 * DAY_MS
#: How often a session writes down that it is used.
TOUCH_MS: Final = MINUTE_MS
#: Sessions of one user at a time; the oldest ends when there are more.
SESSIONS_MAX: Final = 20


class Stage(enum.StrEnum):
    """How far a session has come: it is full, or what it still lacks."""

    FULL = "full"
    FACTOR = "factor"
    ENROLMENT = "enrolment"


class SignInMethod(enum.StrEnum):
    """What a user signed in with."""

    PASSWORD = "password"  # noqa: S105 - a word, not a password
    LINK = "link"
    OIDC = "oidc"


class SessionLife(msgspec.Struct, frozen=True):
    """How long sessions live: unused, and at most (Unix milliseconds)."""

    idle_ms: int = 30 * MINUTE_MS
    most_ms: int = 12 * HOUR_MS


class ConsoleSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session as the store holds it, by the digest of its cookie."""

    digest: str
    id: str
    user_id: str
    tenant_id: str
    stage: Stage
    method: SignInMethod
    address: str
    user_agent: str
    created_at_ms: int
    seen_at_ms: int

    def is_over(self, life: SessionLife, now_ms: int) -> bool:
        """Tell whether it has ended by itself."""
        most_ms = life.most_ms if self.stage is not Stage.FACTOR else FACTOR_MS
        return now_ms - self.seen_at_ms >= life.idle_ms or now_ms - self.created_at_ms >= most_ms


class SignedIn(msgspec.Struct, frozen=True, kw_only=True):
    """Who is signed in, for the tenant that is chosen; `memberships` are all of theirs by tenant id.

    `stage` says what the session still lacks. Only with a full one may any page of a tenant be shown; `roles`
    are empty before.
    """

    session_id: str
    user_id: str
    email: str
    name: str
    tenant_id: str
    roles: frozenset[Role]
    csrf_token: str
    theme: str
    time_zone: str
    memberships: Mapping[str, UserMembership]
    stage: Stage = Stage.FULL
    has_second_factor: bool = False

    @property
    def actor(self) -> str:
        """The name by which the audit log and others know this person."""
        return self.email


def csrf_token(token: str) -> str:
    """Return the token that the forms of a session carry: bound to its cookie, which it does not tell."""
    return hashlib.blake2b(token.encode(), person=b"vettance-csrf", digest_size=32).hexdigest()
