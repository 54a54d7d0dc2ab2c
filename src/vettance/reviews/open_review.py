"""Opens a review with the decision that holds an event, in its commit."""

from collections.abc import Callable
from typing import Final

from vettance.clock import DAY_MS, HOUR_MS
from vettance.db.engine import Statement, bounded_key
from vettance.decisions.decision import Outcome
from vettance.decisions.evaluated_event import EvaluatedEvent
from vettance.decisions.field_readers import bounded
from vettance.events.event_spellings import spelt_members
from vettance.reviews import sql
from vettance.reviews.amount_medians import AmountMedians
from vettance.reviews.review import Review, ReviewState, points_of_amount, rank_of
from vettance.tenants.tenant import Tenant
from vettance.wire.spelt_numbers import read_amount

_CURRENCY_CHARS: Final = 3


class ReviewOpener:
    """Says what a decision adds to its commit; `tenant_of` finds a tenant by its id."""

    def __init__(self, tenant_of: Callable[[str], Tenant | None]) -> None:
        self._tenant_of = tenant_of
        self._medians = AmountMedians()

    def __call__(self, tenant_id: str, evaluated: EvaluatedEvent) -> list[Statement]:
        """Return what opens the review of a decision, if it has one."""
        said = spelt_members(evaluated.event)
        amount, currency = _amount_of(said.get("amount")), _currency_of(said.get("currency"))
        outcome = evaluated.decision.outcome
        opened = [] if outcome is Outcome.ALLOW else self._open(tenant_id, evaluated, amount, currency)
        if amount is not None:
            self._medians.note(tenant_id, currency, amount)
        return opened

    def forget(self, tenant_id: str) -> None:
        """Drop what is remembered of a tenant."""
        self._medians.forget(tenant_id)

    def _open(
        self, tenant_id: str, evaluated: EvaluatedEvent, amount: float | None, currency: str
    ) -> list[Statement]:
        tenant = self._tenant_of(tenant_id)
        if tenant is None or (evaluated.decision.outcome is Outcome.BLOCK and not tenant.review_denied):
            return []
        at_ms, score = evaluated.evaluated_at_ms, evaluated.decision.score
        points = points_of_amount(amount, self._medians.median(tenant_id, currency))
        due_at_ms = at_ms + tenant.review_hours * HOUR_MS
        customer, email = evaluated.event.customer_key, evaluated.event.email
        review = Review(
            tenant=tenant_id,
            decision=evaluated.id,
            state=ReviewState.OPEN,
            score=score,
            amount_points=points,
            rank=rank_of(score + points, due_at_ms),
            opened_at_ms=at_ms,
            due_at_ms=due_at_ms,
            expires_at_ms=due_at_ms + tenant.review_days * DAY_MS,
            customer=bounded_key(customer) if customer is not None else None,
            email=bounded_key(email) if email is not None and email != customer else None,
        )
        return [sql.insert_review(review)]


def _amount_of(value: object) -> float | None:
    amount = read_amount(value)
    return float(bounded(amount)) if amount is not None else None


def _currency_of(value: object) -> str:
    return value.upper() if isinstance(value, str) and len(value) == _CURRENCY_CHARS else ""
