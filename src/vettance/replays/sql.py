"""What the store remembers of answers given under an `Idempotency-Key`."""

from typing import Final, NamedTuple

import msgspec

from vettance.db.engine import Row, Statement, bounded_key, everyone, insert, scoped
from vettance.db.tables import ANSWER, Insert

Headers = tuple[tuple[bytes, bytes], ...]

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Headers).decode


class AnswerKey(NamedTuple):
    """Where an answer is kept: `path` is the raw path, as Latin-1 text."""

    tenant: str
    path: str
    key: str

    @property
    def names(self) -> tuple[str, str]:
        """Path and key as the store keeps them: a path may be longer than a key of the store."""
        return bounded_key(self.path), bounded_key(self.key)


class StoredAnswer(NamedTuple):
    """An answer read back."""

    status: int
    content: bytes
    headers: Headers


_INSERT_ANSWER: Final = Insert(ANSWER, "tenant, path, key, status, content, headers, expires_at_ms")


def keep_answer(
    place: AnswerKey, status: int, content: bytes, headers: Headers, now_ms: int, expires_at_ms: int
) -> tuple[Statement, Statement]:
    """Store an answer in place of an expired one; `Clash` when another one is there."""
    forget = scoped(
        ANSWER,
        place.tenant,
        "DELETE FROM answer WHERE tenant = ? AND path = ? AND key = ? AND expires_at_ms <= ?",
        (*place.names, now_ms),
    )
    values = (*place.names, status, content, _encode(headers), expires_at_ms)
    return forget, insert(_INSERT_ANSWER, place.tenant, values)


def select_answer(place: AnswerKey, now_ms: int) -> Statement:
    """The answer kept in a place, unless it has expired."""
    return scoped(
        ANSWER,
        place.tenant,
        "SELECT status, content, headers FROM answer "
        "WHERE tenant = ? AND path = ? AND key = ? AND expires_at_ms > ?",
        (*place.names, now_ms),
    )


def kept_of(row: Row) -> StoredAnswer:
    """Make a kept answer of a row of `select_answer`."""
    return StoredAnswer(row[0], row[1], _decode(row[2]))


def forget_expired(now_ms: int, limit: int) -> Statement:
    """Remove up to `limit` answers that have expired."""
    return everyone(
        ANSWER,
        "DELETE FROM answer WHERE (tenant, path, key) IN "
        "(SELECT tenant, path, key FROM answer WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ?)",
        (now_ms, limit),
    )
