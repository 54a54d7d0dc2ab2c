"""Faults planted into the delivery worker's own code and SQL, to see that the ledger of a day show them."""

from collections.abc import Callable
from typing import Any, NamedTuple

from vettance.db.engine import Statement
from vettance.webhooks import deliver, delivery_queue
from vettance.webhooks.attempt_results import AttemptRecorder


class Fault(NamedTuple):
    """A wrong function put in place of an owner's right one."""

    owner: object
    name: str
    wrong: Callable[[Any], Any]


def _greedy(claim: Callable[..., Statement]) -> Callable[..., Statement]:
    def wrong(*args: Any) -> Statement:
        one = claim(*args)
        text = one.sql.replace("(lease IS NULL OR", "(1 OR lease IS NULL OR")
        assert text != one.sql
        return one._replace(sql=text)

    return wrong


def _sooner(judge: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(*args: Any) -> Any:
        recorded = judge(*args)
        return recorded._replace(due_at_ms=recorded.due_at_ms - 90)

    return wrong


def _forgetful(_release_all: Callable[[], Statement]) -> Callable[[], Statement]:
    return lambda: Statement("UPDATE delivery SET lease = lease WHERE 0")


FAULTS = {
    "none": (),
    "claim regardless": (Fault(delivery_queue, "claim", _greedy),),
    "retry early": (Fault(AttemptRecorder, "_judge", _sooner),),
    "forget leases": (
        Fault(delivery_queue, "release_all", _forgetful),
        Fault(deliver, "LEASE_MS", lambda _lease_ms: 10**12),
    ),
}
PLANTS = tuple(FAULTS)


def plant(name: str) -> None:
    """Put a fault in the place of what is right there."""
    for fault in FAULTS[name]:
        setattr(fault.owner, fault.name, fault.wrong(getattr(fault.owner, fault.name)))
