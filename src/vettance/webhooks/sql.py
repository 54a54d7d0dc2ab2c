"""What the store remembers of subscriptions, and of their deliveries as their tenant sees them."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from vettance.db.engine import Row, Statement, everyone, in_list, insert, scoped
from vettance.db.tables import ATTEMPT, DELIVERY, INTEREST, SUBSCRIPTION, Insert
from vettance.outbox import MessageType
from vettance.tenants.vault import Vault
from vettance.webhooks.webhook import DeliveryState, Subscription
from vettance.wire.payload import decode, encode

AREA: Final = "webhook"

_SUBSCRIPTION: Final = (
    "id, tenant, slot, url, event_types, created_at_ms, updated_at_ms, next_secret IS NOT NULL, "
    "old_until_ms, last_triggered_at_ms, last_success_at_ms, last_failure_at_ms, failures_in_a_row, "
    "last_error, overflowed, overflowed_at_ms"
)


_INSERT_SUBSCRIPTION: Final = Insert(
    SUBSCRIPTION, "tenant, id, slot, url, event_types, secret, created_at_ms, updated_at_ms"
)
_INSERT_INTEREST: Final = Insert(INTEREST, "tenant, type, subscription, slot")


def insert_subscription(subscription: Subscription, sealed: bytes) -> list[Statement]:
    """Store a new subscription with its interests; `Clash` when its slot was taken in the meantime."""
    one, created_at_ms = subscription, subscription.created_at_ms
    types = encode(one.event_types).decode()
    values = (one.id, one.slot, one.url, types, sealed, created_at_ms, created_at_ms)
    row = insert(_INSERT_SUBSCRIPTION, one.tenant, values)
    return [
        row,
        *(insert(_INSERT_INTEREST, one.tenant, (kind.value, one.id, one.slot)) for kind in one.event_types),
    ]


def delete_subscription(tenant: str, subscription_id: str) -> list[Statement]:
    """Remove a subscription and its interests; `Lost` when it is not there."""
    return [
        scoped(
            INTEREST, tenant, "DELETE FROM interest WHERE tenant = ? AND subscription = ?", (subscription_id,)
        ),
        scoped(
            SUBSCRIPTION,
            tenant,
            "DELETE FROM subscription WHERE tenant = ? AND id = ?",
            (subscription_id,),
            rows=1,
        ),
    ]


def select_subscriptions(tenant: str) -> Statement:
    """Every subscription of a tenant, oldest first."""
    return scoped(
        SUBSCRIPTION, tenant, f"SELECT {_SUBSCRIPTION} FROM subscription WHERE tenant = ? ORDER BY id"
    )


def select_subscription(tenant: str, subscription_id: str) -> Statement:
    """One subscription."""
    return scoped(
        SUBSCRIPTION,
        tenant,
        f"SELECT {_SUBSCRIPTION} FROM subscription WHERE tenant = ? AND id = ?",
        (subscription_id,),
    )


def subscription_of(row: Row) -> Subscription:
    """Make a subscription of a row."""
    return Subscription(
        id=row[0],
        tenant=row[1],
        slot=row[2],
        url=row[3],
        event_types=tuple(MessageType(name) for name in decode(row[4])),
        created_at_ms=row[5],
        updated_at_ms=row[6],
        rotating=bool(row[7]),
        old_until_ms=row[8],
        last_triggered_at_ms=row[9],
        last_success_at_ms=row[10],
        last_failure_at_ms=row[11],
        failures_in_a_row=row[12],
        last_error=row[13],
        overflowed=row[14],
        overflowed_at_ms=row[15],
    )


def select_listeners() -> Statement:
    """(tenant,) of every tenant with a subscription."""
    return everyone(SUBSCRIPTION, "SELECT DISTINCT tenant FROM subscription")


class Secrets(NamedTuple):
    """The sealed secrets of a subscription: the one in force, the one prepared, the former one."""

    current: bytes
    prepared: bytes | None
    former: bytes | None
    former_until_ms: int | None

    def signing(self, now_ms: int) -> list[bytes]:
        """Return the sealed secrets that sign at a moment, the one in force first."""
        former = self.former if self.former_until_ms is not None and now_ms < self.former_until_ms else None
        return [sealed for sealed in (self.current, self.prepared, former) if sealed is not None]


#: The columns that `Secrets` takes.
SECRETS: Final = "secret, next_secret, old_secret, old_until_ms"


_PLACE: Final = "subscription"


def seal(vault: Vault, secret: str, tenant: str, subscription_id: str) -> bytes:
    """Seal a signing secret for its subscription's row."""
    return vault.seal(secret.encode(), _PLACE, tenant, subscription_id)


def unseal(vault: Vault, sealed: bytes, tenant: str, subscription_id: str) -> str:
    """Open a signing secret. Raises `UnsealFailure`."""
    return vault.open_again(sealed, _PLACE, tenant, subscription_id)


def select_newest_sealed(limit: int) -> Statement:
    """(tenant, subscription, its sealed secret) of the subscriptions made last, of all tenants."""
    return everyone(
        SUBSCRIPTION,
        "SELECT tenant, id, secret FROM subscription ORDER BY created_at_ms DESC LIMIT ?",
        (limit,),
    )


def select_secrets(tenant: str, subscription_id: str) -> Statement:
    """The sealed secrets of one subscription, as `Secrets` takes them."""
    return scoped(
        SUBSCRIPTION,
        tenant,
        f"SELECT {SECRETS} FROM subscription WHERE tenant = ? AND id = ?",
        (subscription_id,),
    )


# What `scoped` builds begins with its tenant; an update that sets it to itself keeps that order.
def prepare_secret(tenant: str, subscription_id: str, sealed: bytes, now_ms: int) -> Statement:
    """Add a new secret to the one in force; `Lost` when the subscription is gone."""
    return scoped(
        SUBSCRIPTION,
        tenant,
        "UPDATE subscription SET tenant = ?, next_secret = ?, updated_at_ms = ? WHERE tenant = ? AND id = ?",
        (sealed, now_ms, tenant, subscription_id),
        rows=1,
    )


def promote_secret(tenant: str, subscription_id: str, old_until_ms: int, now_ms: int) -> Statement:
    """Put the prepared secret in force and keep the former one for a while; `Lost` when none is prepared."""
    return scoped(
        SUBSCRIPTION,
        tenant,
        "UPDATE subscription SET tenant = ?, old_secret = secret, secret = next_secret, next_secret = NULL, "
        "old_until_ms = ?, updated_at_ms = ? WHERE tenant = ? AND id = ? AND next_secret IS NOT NULL",
        (old_until_ms, now_ms, tenant, subscription_id),
        rows=1,
    )


_DELIVERY: Final = (
    "seq, id, subscription, type, subject, state, attempts, attempts_ever, created_at_ms, due_at_ms, "
    "settled_at_ms, lease IS NOT NULL"
)


class Delivery(NamedTuple):
    """A row of the log."""

    seq: int
    id: str
    subscription: str
    type: str
    subject: str
    state: str
    attempts: int
    attempts_ever: int
    created_at_ms: int
    due_at_ms: int
    settled_at_ms: int | None
    sending: int


class Attempt(NamedTuple):
    """A row of the log of attempts."""

    delivery: int
    number: int
    started_at_ms: int
    duration_ms: int
    status: int | None
    error: str | None
    answer: bytes


def select_delivery(tenant: str, delivery_id: str) -> Statement:
    """One delivery by its id, as `Delivery` takes it."""
    return scoped(
        DELIVERY, tenant, f"SELECT {_DELIVERY} FROM delivery WHERE tenant = ? AND id = ?", (delivery_id,)
    )


def select_deliveries_about(tenant: str, subject: str, from_ms: int, to_ms: int) -> Statement:
    """The deliveries about a subject that were made within [from, to); their ids begin with the moment."""
    # Found by their ids: an index that begins with the tenant leads to all that it ever had.
    return scoped(
        DELIVERY,
        tenant,
        f"SELECT {_DELIVERY} FROM delivery WHERE tenant || '' = ? AND id >= ? AND id < ? AND subject = ? "
        "ORDER BY id",
        (f"dlv_{from_ms:012x}", f"dlv_{to_ms:012x}", subject),
    )


class DeliveryFilter:
    """The deliveries of a subscription that a page of the log asks for."""

    def __init__(
        self,
        tenant: str,
        subscription: str,
        state: DeliveryState | None,
        from_ms: int | None,
        to_ms: int | None,
    ) -> None:
        self._tenant = tenant
        self._where = "tenant = ? AND subscription = ?"
        self._args: list[Any] = [subscription]
        for condition, value in (
            ("state = ?", state and state.value),
            ("created_at_ms >= ?", from_ms),
            ("created_at_ms < ?", to_ms),
        ):
            if value is not None:
                self._where += f" AND {condition}"
                self._args.append(value)

    def count(self) -> Statement:
        """How many there are in all."""
        return scoped(
            DELIVERY, self._tenant, f"SELECT COUNT(*) FROM delivery WHERE {self._where}", self._args
        )

    def page(self, limit: int, offset: int, last: int | None, *, descending: bool) -> Statement:
        """One page, by creation. `last` is the number of the last delivery of the page before."""
        where, args = self._where, list(self._args)
        beyond, order = ("<", "DESC") if descending else (">", "ASC")
        if last is not None:
            where += f" AND seq {beyond} ?"
            args.append(last)
        return scoped(
            DELIVERY,
            self._tenant,
            f"SELECT {_DELIVERY} FROM delivery WHERE {where} ORDER BY seq {order} LIMIT ? OFFSET ?",
            [*args, limit, offset],
        )


def select_attempts(numbers: Sequence[int]) -> Statement:
    """The attempts of some deliveries of one tenant, in order; `numbers` come from that tenant's rows."""
    places, args = in_list(numbers)
    return everyone(
        ATTEMPT,
        "SELECT delivery, number, started_at_ms, duration_ms, status, error, answer FROM attempt "
        f"WHERE delivery IN ({places}) ORDER BY delivery, number",
        args,
    )


def select_backlog(tenant: str, subscription_id: str) -> Statement:
    """(how many wait, when the oldest was made) for one subscription; counting stops at `BACKLOG_MAX`."""
    # The index of what waits begins with the subscription; by that of the log, everything ever sent was read.
    return scoped(
        DELIVERY,
        tenant,
        "SELECT COUNT(*), MIN(created_at_ms) FROM (SELECT created_at_ms FROM delivery WHERE tenant || '' = ? "
        "AND subscription = ? AND state = 'pending' LIMIT ?) AS waiting",
        (subscription_id, BACKLOG_MAX),
    )


BACKLOG_MAX: Final = 10_000


def count_waiting(tenant: str, limit: int) -> Statement:
    """How many deliveries wait for a tenant; counting stops at a limit."""
    return scoped(
        DELIVERY,
        tenant,
        "SELECT COUNT(*) FROM (SELECT seq FROM delivery WHERE tenant = ? AND state = 'pending' LIMIT ?) "
        "AS waiting",
        (limit,),
    )


_AGAIN: Final = (
    "UPDATE delivery SET tenant = ?, state = 'pending', due_at_ms = ?, attempts = 0, settled_at_ms = NULL "
)


def replay(tenant: str, delivery_id: str, now_ms: int) -> Statement:
    """Queue a delivery again, with all its attempts before it; one that is being sent right now stays."""
    return scoped(
        DELIVERY,
        tenant,
        _AGAIN + "WHERE tenant = ? AND id = ? AND lease IS NULL",
        (now_ms, tenant, delivery_id),
    )


def replay_many(
    tenant: str,
    subscription_id: str,
    state: DeliveryState | None,
    span_ms: tuple[int, int],
    now_ms: int,
    limit: int,
) -> Statement:
    """Queue again what was made for a subscription in a span (from inclusive, to exclusive).

    Without a state: everything that did not arrive. `limit` rows at a time; when fewer changed, none is left.
    """
    states = ("pending", "exhausted", "canceled") if state is None else (state.value,)
    wanted = ", ".join(f"'{name}'" for name in states)
    return scoped(
        DELIVERY,
        tenant,
        _AGAIN + "WHERE seq IN (SELECT seq FROM delivery WHERE tenant = ? AND subscription = ? "
        f"AND state IN ({wanted}) AND created_at_ms >= ? AND created_at_ms < ? AND lease IS NULL "
        "AND NOT (state = 'pending' AND attempts = 0 AND due_at_ms <= ?) ORDER BY seq LIMIT ?)",
        (now_ms, tenant, subscription_id, *span_ms, now_ms, limit),
    )
