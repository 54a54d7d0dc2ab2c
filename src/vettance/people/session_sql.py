"""What the store remembers of sessions of the console and of failed sign-ins."""

from collections.abc import Sequence
from typing import Final

from vettance.db.engine import EVERYBODY, Row, Statement, everyone, in_list, insert
from vettance.db.tables import (
    CONSOLE_SESSION,
    KNOWN_ADDRESS,
    SIGN_IN_FAILURE,
    TENANT,
    USER_ACCOUNT,
    USER_MEMBERSHIP,
    Insert,
)
from vettance.people.backoff import FIRST_PAUSE_MS, FORGOTTEN_MS, PAUSE_MS_MAX, TRIES
from vettance.people.session import ConsoleSession, SignInMethod, Stage
from vettance.people.sql import ACCOUNT_COLUMNS

_SESSION: Final = "tenant, digest, id, user_id, stage, method, address, user_agent, created_at_ms, seen_at_ms"
_INSERT_SESSION: Final = Insert(CONSOLE_SESSION, _SESSION)
_NOTE_ADDRESS: Final = Insert(
    KNOWN_ADDRESS, "user_id, address_digest, seen_at_ms", key="user_id, address_digest", replaces="seen_at_ms"
)
SESSION_WIDTH: Final = len(_SESSION.split(", "))
ACCOUNT_WIDTH: Final = len(ACCOUNT_COLUMNS.split(", "))


def _pause(failures: str) -> str:
    """Write the pause after so many failures as SQL: one second that doubles, up to the longest."""
    doublings = (PAUSE_MS_MAX // FIRST_PAUSE_MS).bit_length()
    return (
        f"CASE WHEN {failures} < {TRIES} THEN 0 WHEN {failures} >= {TRIES + doublings} THEN {PAUSE_MS_MAX} "
        f"ELSE CAST({FIRST_PAUSE_MS} AS BIGINT) << CAST({failures} - {TRIES} AS INTEGER) END"
    )


def insert_session(session: ConsoleSession) -> Statement:
    """Store a new session."""
    return insert(
        _INSERT_SESSION,
        session.tenant_id,
        (
            session.digest,
            session.id,
            session.user_id,
            session.stage.value,
            session.method.value,
            session.address,
            session.user_agent,
            session.created_at_ms,
            session.seen_at_ms,
        ),
    )


def select_session(digest: str) -> Statement:
    """A session, its user, and a row for each membership of theirs (or one with none)."""
    session = ", ".join(f"one.{name}" for name in _SESSION.split(", "))
    account = ", ".join(f"person.{name}" for name in ACCOUNT_COLUMNS.split(", "))
    return everyone(
        CONSOLE_SESSION.reading(USER_ACCOUNT, USER_MEMBERSHIP, TENANT),
        f"SELECT {session}, {account}, tenant.id, tenant.name, part.roles, tenant.settings "
        "FROM console_session AS one JOIN user_account AS person ON person.id = one.user_id "
        "LEFT JOIN user_membership AS part ON part.user_id = person.id "
        "LEFT JOIN tenant ON tenant.id = part.tenant "
        "WHERE one.digest = ? ORDER BY tenant.name, tenant.id",
        (digest,),
    )


def select_sessions_of(user_id: str) -> Statement:
    """The sessions of a user, the one that was used last first."""
    return everyone(
        CONSOLE_SESSION,
        f"SELECT {_SESSION} FROM console_session WHERE user_id = ? ORDER BY seen_at_ms DESC, id",
        (user_id,),
    )


def session_of(row: Row) -> ConsoleSession:
    """Make a session of the first columns of a row."""
    return ConsoleSession(
        tenant_id=row[0],
        digest=row[1],
        id=row[2],
        user_id=row[3],
        stage=Stage(row[4]),
        method=SignInMethod(row[5]),
        address=row[6],
        user_agent=row[7],
        created_at_ms=row[8],
        seen_at_ms=row[9],
    )


def touch_session(digest: str, now_ms: int) -> Statement:
    """Write down that a session is used."""
    return everyone(
        CONSOLE_SESSION, "UPDATE console_session SET seen_at_ms = ? WHERE digest = ?", (now_ms, digest)
    )


def keep_form(digest: str, sealed: bytes) -> Statement:
    """Keep what came of a session after its time."""
    return everyone(
        CONSOLE_SESSION, "UPDATE console_session SET kept_form = ? WHERE digest = ?", (sealed, digest)
    )


def select_kept_form(user_id: str, session_id: str) -> Statement:
    """The digest of a session of a user, and what was kept of it."""
    return everyone(
        CONSOLE_SESSION,
        "SELECT digest, kept_form FROM console_session "
        "WHERE user_id = ? AND id = ? AND kept_form IS NOT NULL",
        (user_id, session_id),
    )


def forget_kept_form(user_id: str, session_id: str) -> Statement:
    """Forget what was kept of a session of a user."""
    return everyone(
        CONSOLE_SESSION,
        "UPDATE console_session SET kept_form = NULL WHERE user_id = ? AND id = ?",
        (user_id, session_id),
    )


def forget_kept_forms(tenant: str) -> Statement:
    """Forget what was kept of those who have a role for a tenant: a customer may be named in it."""
    return everyone(
        CONSOLE_SESSION.reading(USER_MEMBERSHIP),
        "UPDATE console_session SET kept_form = NULL WHERE kept_form IS NOT NULL "
        "AND user_id IN (SELECT user_id FROM user_membership WHERE tenant = ?)",
        (tenant,),
    )


def choose_tenant(session_id: str, tenant: str) -> Statement:
    """Have a session be about another tenant."""
    return everyone(
        CONSOLE_SESSION, "UPDATE console_session SET tenant = ? WHERE id = ?", (tenant, session_id), rows=1
    )


def end_session(digest: str) -> Statement:
    """End a session."""
    return everyone(CONSOLE_SESSION, "DELETE FROM console_session WHERE digest = ?", (digest,))


def end_session_by_id(user_id: str, session_id: str) -> Statement:
    """End a session of a user by its id."""
    return everyone(
        CONSOLE_SESSION, "DELETE FROM console_session WHERE user_id = ? AND id = ?", (user_id, session_id)
    )


def end_oldest_sessions(user_id: str, keep: int) -> Statement:
    """End all sessions of a user but those that were used last."""
    return everyone(
        CONSOLE_SESSION,
        "DELETE FROM console_session WHERE user_id = ? AND digest NOT IN (SELECT digest FROM console_session "
        "WHERE user_id = ? ORDER BY seen_at_ms DESC, id DESC LIMIT ?)",
        (user_id, user_id, keep),
    )


def remove_old_sessions(unused_since_ms: int) -> Statement:
    """Remove sessions that nobody can use any more."""
    return everyone(CONSOLE_SESSION, "DELETE FROM console_session WHERE seen_at_ms < ?", (unused_since_ms,))


def select_next_try(subjects: Sequence[str]) -> Statement:
    """When the next try is taken for some subjects (Unix milliseconds), NULL for at once."""
    places, args = in_list(subjects)
    return everyone(
        SIGN_IN_FAILURE, f"SELECT MAX(next_at_ms) FROM sign_in_failure WHERE subject IN ({places})", args
    )


def forget_failures(now_ms: int) -> Statement:
    """Forget counts without a failure for long."""
    return everyone(
        SIGN_IN_FAILURE, "DELETE FROM sign_in_failure WHERE last_at_ms < ?", (now_ms - FORGOTTEN_MS,)
    )


def count_failure(subject: str, now_ms: int) -> Statement:
    """Count a try as failed before it is known; `Lost`, and not counted, while the pause lasts.

    Counting first is what makes tries at the same moment as few as tries in a row.
    """
    failures = "sign_in_failure.failures + 1"
    return everyone(
        SIGN_IN_FAILURE,
        "INSERT INTO sign_in_failure (subject, failures, next_at_ms, last_at_ms) VALUES (?, 1, 0, ?) "
        f"ON CONFLICT (subject) DO UPDATE SET failures = {failures}, last_at_ms = excluded.last_at_ms, "
        f"next_at_ms = excluded.last_at_ms + {_pause(failures)} "
        "WHERE sign_in_failure.next_at_ms <= excluded.last_at_ms",
        (subject, now_ms),
        rows=1,
    )


def take_back_failures(address: str, pair: str) -> Statement:
    """Take the failures of an account from an address off those of the address."""
    left = (
        "failures - COALESCE((SELECT pair.failures FROM sign_in_failure AS pair WHERE pair.subject = ?), 0)"
    )
    return everyone(
        SIGN_IN_FAILURE,
        f"UPDATE sign_in_failure SET failures = {left}, next_at_ms = last_at_ms + {_pause(f'({left})')} "
        "WHERE subject = ?",
        (pair, pair, pair, pair, address),
    )


def clear_failures(subjects: Sequence[str]) -> Statement:
    """Begin some counts anew."""
    places, args = in_list(subjects)
    return everyone(SIGN_IN_FAILURE, f"DELETE FROM sign_in_failure WHERE subject IN ({places})", args)


def note_address(user_id: str, digest: str, now_ms: int) -> Statement:
    """Remember that a user has signed in from an address."""
    return insert(_NOTE_ADDRESS, EVERYBODY, (user_id, digest, now_ms))


def exists_address(user_id: str, digest: str) -> Statement:
    """A row when a user has signed in from an address before."""
    return everyone(
        KNOWN_ADDRESS,
        "SELECT 1 FROM known_address WHERE user_id = ? AND address_digest = ?",
        (user_id, digest),
    )
