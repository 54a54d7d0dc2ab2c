"""What the webhook endpoints answer."""

from collections.abc import Iterable, Sequence

import msgspec

from vettance.outbox import MessageType
from vettance.web.paging import PageAnswer, PageQuery
from vettance.web.query import From, To
from vettance.webhooks.sql import Attempt, Delivery
from vettance.webhooks.webhook import DeliveryState, Subscription
from vettance.wire.payload import Wire, timestamp


class SubscriptionAnswer(Wire, frozen=True, kw_only=True):
    """A subscription. `lastTriggeredAt` is null before the first delivery."""

    id: str
    url: str
    event_types: tuple[MessageType, ...]
    status: str
    created_at: str
    updated_at: str
    last_triggered_at: str | None


class SubscriptionMade(SubscriptionAnswer, frozen=True, kw_only=True):
    """A new subscription, with the secret that signs its deliveries: shown here and never again."""

    signing_secret: str


class DeliveryHealth(Wire, frozen=True):
    """How deliveries have gone. `state` is `idle` before the first, `failing` after a failed attempt.

    `overflowed` counts those given up because too much waited for the tenant; they can be replayed.
    """

    state: str
    pending: int
    oldest_pending_at: str | None
    failures_in_a_row: int
    last_success_at: str | None
    last_failure_at: str | None
    last_error: str | None
    overflowed: int
    last_overflow_at: str | None


class Rotation(Wire, frozen=True):
    """Where a rotation of the secret stands: prepared, or promoted with the former one still signing."""

    prepared: bool
    former_secret_expires_at: str | None


class SubscriptionDetail(SubscriptionAnswer, frozen=True, kw_only=True):
    """A subscription with its health."""

    health: DeliveryHealth
    rotation: Rotation


class SubscriptionList(Wire, frozen=True):
    """Every subscription of a tenant."""

    subscriptions: list[SubscriptionAnswer]


class Tried(Wire, frozen=True):
    """How a test delivery went. `statusCode` is the receiver's, 0 when it could not be reached."""

    success: bool
    status_code: int
    message: str


class SubscriptionRemoved(Wire, frozen=True):
    """What a removal answers."""

    success: bool
    message: str


class Rotated(Wire, frozen=True, omit_defaults=True):
    """`signingSecret` is the new secret, shown once, when preparing; the other the end of the old one."""

    phase: str
    signing_secret: str | None = None
    former_secret_expires_at: str | None = None


class Replayed(Wire, frozen=True):
    """How many deliveries are sent again. Without `complete` there are more: call again."""

    success: bool
    replayed: int
    complete: bool
    message: str


class AttemptAnswer(Wire, frozen=True):
    """One attempt. `error` is the class of the failure, null for a success; `answer` at most 1 KB of text."""

    number: int
    started_at: str
    duration_ms: int
    status_code: int | None
    error: str | None
    answer: str


class DeliveryAnswer(Wire, frozen=True):
    """One message to one subscription, with every attempt at it."""

    id: str
    subscription_id: str
    event_type: str
    subject_id: str
    state: str
    created_at: str
    next_attempt_at: str | None
    settled_at: str | None
    attempts: list[AttemptAnswer]


class DeliveryPage(PageAnswer[DeliveryAnswer], frozen=True):
    """A page of deliveries, newest first; `nextCursor` leads to the next one at the same cost."""


class DeliveryQuery(PageQuery, frozen=True):
    """Which deliveries, and which page of them. `from` and `to` are about when they were made."""

    state: DeliveryState | None = None
    created_from: From | None = msgspec.field(name="from", default=None)
    created_to: To | None = msgspec.field(name="to", default=None)


def moment(at_ms: int | None) -> str | None:
    """Write a moment that may be missing."""
    return None if at_ms is None else timestamp(at_ms)


def answer(one: Subscription) -> SubscriptionAnswer:
    """Write a subscription as the endpoints answer it."""
    return SubscriptionAnswer(
        id=one.id,
        url=one.url,
        event_types=one.event_types,
        status="ACTIVE",
        created_at=timestamp(one.created_at_ms),
        updated_at=timestamp(one.updated_at_ms),
        last_triggered_at=moment(one.last_triggered_at_ms),
    )


def detail(
    one: Subscription, pending: int, oldest_pending_at_ms: int | None, now_ms: int
) -> SubscriptionDetail:
    """Write a subscription with its health."""
    calm = "idle" if one.last_triggered_at_ms is None else "healthy"
    former = one.old_until_ms if one.old_until_ms is not None and one.old_until_ms > now_ms else None
    return SubscriptionDetail(
        **msgspec.structs.asdict(answer(one)),
        health=DeliveryHealth(
            state="failing" if one.failures_in_a_row else calm,
            pending=pending,
            oldest_pending_at=moment(oldest_pending_at_ms),
            failures_in_a_row=one.failures_in_a_row,
            last_success_at=moment(one.last_success_at_ms),
            last_failure_at=moment(one.last_failure_at_ms),
            last_error=one.last_error,
            overflowed=one.overflowed,
            last_overflow_at=moment(one.overflowed_at_ms),
        ),
        rotation=Rotation(prepared=one.rotating, former_secret_expires_at=moment(former)),
    )


def delivery_answers(deliveries: Sequence[Delivery], attempts: Iterable[Attempt]) -> list[DeliveryAnswer]:
    """Write deliveries, each with those of the attempts that are its own.

    Attempts are read after their deliveries. One that ended in between is left to the next look, so that an
    answer never shows an attempt with the state from before it.
    """
    noted = {one.seq: one.attempts_ever for one in deliveries}
    by_delivery: dict[int, list[AttemptAnswer]] = {seq: [] for seq in noted}
    for one in attempts:
        if one.number > noted[one.delivery]:
            continue
        by_delivery[one.delivery].append(
            AttemptAnswer(
                number=one.number,
                started_at=timestamp(one.started_at_ms),
                duration_ms=one.duration_ms,
                status_code=one.status,
                error=one.error,
                answer=one.answer.decode("utf-8", "replace"),
            )
        )
    return [
        DeliveryAnswer(
            id=one.id,
            subscription_id=one.subscription,
            event_type=one.type,
            subject_id=one.subject,
            state=one.state,
            created_at=timestamp(one.created_at_ms),
            next_attempt_at=timestamp(one.due_at_ms) if one.state == DeliveryState.PENDING else None,
            settled_at=moment(one.settled_at_ms),
            attempts=by_delivery[one.seq],
        )
        for one in deliveries
    ]
