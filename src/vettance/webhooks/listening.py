"""What keeps deliveries from `webhooks listen`, read from what the store knows of its subscription."""

from typing import Final

from vettance.webhooks.retry_policy import ATTEMPT_S_MAX
from vettance.webhooks.webhook import AttemptFailure, Subscription

#: So long a delivery waits before somebody wonders who sends it.
WAITS_MS_MAX: Final = 5_000

_WHY: Final = {
    AttemptFailure.ADDRESS: "the server sends nothing to this machine: start it with "
    "VETTANCE_UNSAFE_WEBHOOKS=1 (in development and tests; production refuses it)",
    AttemptFailure.REFUSED: "the server finds nobody at this address: it runs on another machine or in a "
    "container, whose 127.0.0.1 is not this one. Run `listen` where the server runs",
    AttemptFailure.NETWORK: "the server finds no way to this address: it runs on another machine or in a "
    "container. Run `listen` where the server runs",
    AttemptFailure.TIMEOUT: f"nothing was answered within {ATTEMPT_S_MAX:g} seconds; "
    "look at what --forward-to leads to",
    AttemptFailure.SECRET: "the server has another VETTANCE_SECRET than this command",
}
_NOBODY: Final = (
    "deliveries wait and nobody sends them: no server runs on this store, it runs without the background "
    "work (`--role web`), or its VETTANCE_SECRET is not that of this command"
)


def hindrance(found: Subscription | None, oldest_pending_at_ms: int | None, now_ms: int) -> str | None:
    """Say why deliveries of a subscription on this machine do not come, None when they do."""
    if found is None:
        return "the subscription of this session was removed; nothing more will come"
    if found.failures_in_a_row and found.last_error is not None:
        kind, _, status = found.last_error.partition(" ")
        if kind in _WHY:
            return _WHY[AttemptFailure(kind)]
        if not status:
            return f"an attempt failed ({kind}); `vettance doctor` may tell more"
    waits_since_ms = max(oldest_pending_at_ms or now_ms, found.last_triggered_at_ms or 0)
    return _NOBODY if now_ms - waits_since_ms > WAITS_MS_MAX else None


def unheard(types: tuple[str, ...], every: tuple[str, ...], forward_to: str | None) -> list[str]:
    """Say what this session does not receive by its nature."""
    left_out = [name for name in every if name not in types]
    lines = ["What happened before now, other subscriptions of the tenant, and AML (which has no webhooks)."]
    if left_out:
        lines.append(f"Left out by --event: {', '.join(left_out)}.")
    if forward_to is None:
        lines.append("Nothing is passed on without --forward-to.")
    return lines
