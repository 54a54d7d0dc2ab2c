"""A decision, and the one that is made without the service."""

from datetime import UTC, datetime
from typing import Any, Literal

from vettance_client.errors import VettanceError
from vettance_client.models import CorrelationIds, DecisionAnswer, Reason, RuleVersion

#: The levels and scores of decisions that are made without the service: a score in the middle of each band.
_ALONE = {"approve": ("low", 0), "review": ("medium", 50), "deny": ("critical", 100)}


class Decision(DecisionAnswer, frozen=True):
    """The answer of `POST /api/v1/decisions/evaluate`, or what `on_unavailable` put in its place.

    A decision of the client's own has `is_fallback`, and in `cause` the error that came instead of an answer.
    """

    is_fallback: bool = False
    cause: Any = None

    @property
    def approved(self) -> bool:
        """Go on."""
        return self.decision.lower() in ("approve", "allow")

    @property
    def needs_review(self) -> bool:
        """Let a person look first, or ask for more proof."""
        return self.decision.lower() == "review"

    @property
    def denied(self) -> bool:
        """Stop."""
        return self.decision.lower() in ("deny", "block")


def decide_alone(word: Literal["approve", "review", "deny"], cause: VettanceError) -> Decision:
    """Return the decision that a caller wants while there is none to be had."""
    level, score = _ALONE[word]
    moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Decision(
        decision=word,
        risk_score=score,
        risk_level=level,
        reason_codes=[Reason(code="SERVICE_UNAVAILABLE", explanation="The risk service gave no decision.")],
        correlation_ids=CorrelationIds(request_id=cause.request_id or "", event_id=""),
        rule_version=RuleVersion(version=""),
        recommended_actions=[],
        evaluated_at=moment,
        is_fallback=True,
        cause=cause,
    )
