"""When a delivery is tried, how long an attempt may take, and every other time that follows from these."""

from typing import Final

import msgspec

from vettance.clock import CLOCKS_APART_MS

#: How long a receiver has, from the first packet to the status of its answer.
ATTEMPT_S_MAX: Final = 10.0
#: How long its name is looked up before that. Resolvers that ask others give up after five seconds as a rule.
RESOLVE_S_MAX: Final = 5.0
#: How long attempts that failed are gathered at most: ten commits a second.
GATHER_S_MAX: Final = 0.1
#: How long recording the results of attempts may take when the process stops.
SETTLE_S_MAX: Final = 1.5

#: A lease outlives any attempt (the lookup included) and its settlement, by as much again. After it another
#: process may take the delivery.
LEASE_MS: Final = 2 * int((RESOLVE_S_MAX + ATTEMPT_S_MAX) * 1000)
#: After SIGTERM: the longest attempt, and a moment for the loop to notice its end.
DRAIN_S_MAX: Final = ATTEMPT_S_MAX + 0.5
#: From SIGTERM to the end of the process: what is under way, its settlement, and closing the store.
STOP_S_MAX: Final = DRAIN_S_MAX + SETTLE_S_MAX + 1.0
#: A test delivery, which a tenant waits for.
TEST_S_MAX: Final = int(RESOLVE_S_MAX + ATTEMPT_S_MAX)


class RetryPolicy(msgspec.Struct, frozen=True):
    """When a failed delivery is tried again. `delays_ms[n]` counts from the end of attempt n + 1.

    `fault_pause_ms` is the pause after a fault of ours that keeps something from being sent: a secret that
    does not open, a row that cannot be read.
    """

    delays_ms: tuple[int, ...] = (1000, 2000, 4000, 8000, 16000)
    attempt_s_max: float = ATTEMPT_S_MAX
    fault_pause_ms: int = 60_000

    @property
    def ahead_ms_max(self) -> int:
        """How far ahead a moment may lie that something waits for: the longest delay or pause there is.

        One that lies further ahead was noted while a clock was wrong, and nothing waits for it.
        """
        return max(*self.delays_ms, self.fault_pause_ms) + CLOCKS_APART_MS

    @property
    def gather_s(self) -> float:
        """How long attempts that failed are gathered to be recorded in one commit; what they wait for after
        that is ten times as long. Each commit keeps the decisions of everybody waiting for its while."""
        return min(GATHER_S_MAX, min(self.delays_ms) / 10_000)

    @property
    def attempts_max(self) -> int:
        """How many attempts there are before a delivery is exhausted."""
        return len(self.delays_ms) + 1

    def due_at_ms(self, attempts: int, ended_at_ms: int) -> int | None:
        """Return when to try again after `attempts` failed ones, the last ended at `ended_at_ms`; or None."""
        return ended_at_ms + self.delays_ms[attempts - 1] if attempts < self.attempts_max else None
