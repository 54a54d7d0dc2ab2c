"""The two clients: a method for each endpoint, and decisions that a shop goes on without."""

from typing import Literal

from vettance_client import endpoints
from vettance_client.async_methods import AsyncMethods
from vettance_client.bodies import EventBody, TokenBody
from vettance_client.decision import Decision, decide_alone
from vettance_client.endpoint import Endpoint, Repeat
from vettance_client.errors import ApiError, NotReached, QuotaExceeded, UnreadableAnswer, VettanceError
from vettance_client.models import TokenAnswer
from vettance_client.sync_methods import Methods

OnUnavailable = Literal["approve", "review", "deny", "raise"]
_EVALUATE: Endpoint[Decision] = Endpoint(
    "evaluate", "POST", endpoints.EVALUATE.path, Decision, Repeat.WITH_KEY
)
_CHOICES = ("approve", "review", "deny", "raise")


class Client(Methods):
    """A client that waits for its answers.

    ```python
    with Client("https://risk.example.com", api_key) as client:
        decision = client.evaluate({"eventName": "user.login", "customer": {"externalId": "c-1"}})
    ```
    """

    def evaluate(
        self,
        body: EventBody,
        *,
        deadline_ms: float | None = None,
        on_unavailable: OnUnavailable = "raise",
        idempotency_key: str | None = None,
        timeout_s: float | None = None,
    ) -> Decision:
        """Evaluate an event and return the decision.

        `deadline_ms` bounds the call with all its attempts. When there is no decision (the service is away,
        too slow, over a limit, or at fault), `on_unavailable` says what to go on with; the decision then has
        `is_fallback` and `cause`. Faults of the caller (a wrong key, a wrong event) are raised all the same.

        `POST /api/v1/decisions/evaluate`
        """
        _check(deadline_ms, on_unavailable)
        try:
            decision: Decision = self._call(
                _EVALUATE,
                body=body,
                idempotency_key=idempotency_key,
                timeout_s=timeout_s,
                deadline_s=None if deadline_ms is None else deadline_ms / 1000,
            )
        except VettanceError as error:
            return decide_alone(_wanted(on_unavailable, error), error)
        return decision

    def mint_token(self, body: TokenBody, *, deadline_s: float) -> TokenAnswer:
        """Mint a token for a page as `create_token` does, within `deadline_s` with all attempts."""
        minted: TokenAnswer = self._call(endpoints.CREATE_TOKEN, body=body, deadline_s=deadline_s)
        return minted


class AsyncClient(AsyncMethods):
    """A client that awaits its answers.

    ```python
    async with AsyncClient("https://risk.example.com", api_key) as client:
        decision = await client.evaluate({"eventName": "user.login", "customer": {"externalId": "c-1"}})
    ```
    """

    async def evaluate(
        self,
        body: EventBody,
        *,
        deadline_ms: float | None = None,
        on_unavailable: OnUnavailable = "raise",
        idempotency_key: str | None = None,
        timeout_s: float | None = None,
    ) -> Decision:
        """Evaluate an event and return the decision; see `Client.evaluate`."""
        _check(deadline_ms, on_unavailable)
        try:
            decision: Decision = await self._call(
                _EVALUATE,
                body=body,
                idempotency_key=idempotency_key,
                timeout_s=timeout_s,
                deadline_s=None if deadline_ms is None else deadline_ms / 1000,
            )
        except VettanceError as error:
            return decide_alone(_wanted(on_unavailable, error), error)
        return decision

    async def mint_token(self, body: TokenBody, *, deadline_s: float) -> TokenAnswer:
        """Mint a token for a page as `create_token` does, within `deadline_s` with all attempts."""
        minted: TokenAnswer = await self._call(endpoints.CREATE_TOKEN, body=body, deadline_s=deadline_s)
        return minted


def _check(deadline_ms: float | None, on_unavailable: str) -> None:
    if on_unavailable not in _CHOICES:
        raise ValueError(f"on_unavailable is one of {', '.join(_CHOICES)}")
    if deadline_ms is not None and not deadline_ms > 0:
        raise ValueError("deadline_ms must be more than 0")


def _wanted(on_unavailable: OnUnavailable, error: VettanceError) -> Literal["approve", "review", "deny"]:
    """Return what to go on with; raise what is the caller's own fault, or not to be gone on without."""
    away = isinstance(error, NotReached | QuotaExceeded | UnreadableAnswer) or (
        isinstance(error, ApiError) and error.http_status >= 500
    )
    if on_unavailable == "raise" or not away:
        raise error
    return on_unavailable
