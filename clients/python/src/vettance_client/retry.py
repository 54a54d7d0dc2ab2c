"""When a call is tried again: as the service's specification says, while the caller has time."""

import random
from dataclasses import dataclass

from vettance_client.endpoint import Repeat
from vettance_client.errors import ApiError, ConnectionFailed, NotReached, QuotaExceeded, VettanceError


@dataclass(frozen=True)
class Retry:
    """How often and how long to try.

    4xx is never tried again, except 429, which waits as long as the service says. 5xx and lost connections
    are tried again after `first_wait_s`, doubled each time up to `wait_s_max`, if that cannot have a second
    effect: `POST /aml/screen` is only repeated after a 429, or when it was never sent. If the service asks
    for a wait of more than `wait_s_max` seconds, the error is raised at once.
    """

    attempts: int = 4
    first_wait_s: float = 0.2
    wait_s_max: float = 10.0

    def wait_s(
        self, failure: VettanceError, attempt: int, repeat: Repeat, left_s: float | None
    ) -> float | None:
        """Return how long to wait before the next attempt, None when there is none.

        `attempt` counts from 1; `left_s` is the time that the caller still has, None for any.
        """
        if attempt >= self.attempts or not _may_repeat(failure, repeat):
            return None
        asked = failure.retry_after_s if isinstance(failure, ApiError) else None
        if asked is None:
            # Half of it by chance, so that many clients do not come back at one moment.
            full = min(self.first_wait_s * 2 ** (attempt - 1), self.wait_s_max)
            asked = full * (0.5 + random.random() / 2)  # noqa: S311 (no secret)
        elif asked > self.wait_s_max:
            return None
        return asked if left_s is None or asked < left_s else None


NO_RETRY = Retry(attempts=1)


def _may_repeat(failure: VettanceError, repeat: Repeat) -> bool:
    if isinstance(failure, QuotaExceeded) or (isinstance(failure, ConnectionFailed) and not failure.sent):
        return True  # It had no effect.
    if repeat is Repeat.NEVER:
        return False
    return isinstance(failure, NotReached) or (isinstance(failure, ApiError) and failure.http_status >= 500)
