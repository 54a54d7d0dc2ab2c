"""What the store remembers for browsers: the names of signing keys, and queued batches of signals."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from vettance.db.engine import OF_TENANT, Row, Statement, everyone, in_list, in_pieces, insert, scoped
from vettance.db.tables import SIGNAL_BATCH, TOKEN_KEY, Insert
from vettance.tenants.browser_token import SigningKey

AREA: Final = "websdk"


_INSERT_TOKEN_KEY: Final = Insert(TOKEN_KEY, "kid, created_at_ms")


def insert_token_key(kid: str, now_ms: int) -> Statement:
    """Make a name that of the newest signing key."""
    return insert(_INSERT_TOKEN_KEY, None, (kid, now_ms))


def retire_token_keys(refused_from_ms: int) -> Statement:
    """Have the tokens of every signing key so far refused from a moment on, or earlier if so decided."""
    return Statement(
        "UPDATE token_key SET refused_from_ms = ? WHERE refused_from_ms IS NULL OR refused_from_ms > ?",
        (refused_from_ms, refused_from_ms),
        tables=TOKEN_KEY,
    )


def select_token_keys() -> Statement:
    """(kid, refused_from_ms) of every signing key, oldest first."""
    return Statement("SELECT kid, refused_from_ms FROM token_key ORDER BY seq", tables=TOKEN_KEY)


def signing_key_of(row: Row) -> SigningKey:
    """Make a signing key of a row."""
    return SigningKey(row[0], row[1])


class StoredBatch(NamedTuple):
    """Where a queued batch is in the store, and whose it is; `received_at_ms` is Unix milliseconds."""

    seq: int
    tenant: str
    sdk_session: str
    tenant_session: str | None
    received_at_ms: int


_INSERT_BATCH: Final = Insert(
    SIGNAL_BATCH, "tenant, sdk_session, batch_id, tenant_session, received_at_ms, signals"
)


def insert_batch(
    tenant: str,
    sdk_session: str,
    batch_id: str,
    tenant_session: str | None,
    received_at_ms: int,
    signals: bytes,
) -> Statement:
    """Store a batch; `Clash` when the session has one of this id."""
    values = (sdk_session, batch_id, tenant_session, received_at_ms, signals)
    return insert(_INSERT_BATCH, tenant, values)


def select_batch(tenant: str, sdk_session: str, batch_id: str) -> Statement:
    """One row when a session has a batch of this id, else none."""
    return scoped(
        SIGNAL_BATCH,
        tenant,
        "SELECT seq FROM signal_batch WHERE tenant = ? AND sdk_session = ? AND batch_id = ?",
        (sdk_session, batch_id),
    )


def select_batches(after: int, since_ms: int, limit: int) -> Statement:
    """The batches stored after one, received since a moment, in the order in which they were stored."""
    # The index by age would find all of them, each time.
    return everyone(
        SIGNAL_BATCH,
        "SELECT seq, tenant, sdk_session, tenant_session, received_at_ms FROM signal_batch "
        "WHERE seq > ? AND received_at_ms + 0 >= ? ORDER BY seq LIMIT ?",
        (after, since_ms, limit),
    )


def select_signals(tenant: str, seqs: Sequence[int]) -> Statement:
    """(seq, signals) of batches by their places, in any order, in pieces."""
    places, args = in_list(seqs)
    return in_pieces(
        scoped(
            SIGNAL_BATCH,
            tenant,
            f"SELECT seq, signals FROM signal_batch WHERE {OF_TENANT} AND seq IN ({places})",
            args,
        )
    )


def select_batches_of(tenant: str, sdk_session: str, limit: int = 100) -> Statement:
    """(received_at_ms, signals) of the first batches of a session, in order."""
    return in_pieces(
        scoped(
            SIGNAL_BATCH,
            tenant,
            "SELECT received_at_ms, signals FROM signal_batch WHERE tenant = ? AND sdk_session = ? "
            "ORDER BY received_at_ms LIMIT ?",
            (sdk_session, limit),
        )
    )


def batch_of(row: Row) -> StoredBatch:
    """Make a batch of a row of `select_batches`."""
    return StoredBatch(*row)


def delete_batches(before_ms: int, limit: int) -> Statement:
    """Delete some of the batches received before a moment."""
    return everyone(
        SIGNAL_BATCH,
        "DELETE FROM signal_batch WHERE seq IN "
        "(SELECT seq FROM signal_batch WHERE received_at_ms < ? ORDER BY received_at_ms LIMIT ?)",
        (before_ms, limit),
    )
