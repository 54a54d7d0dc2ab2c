"""The process of one suggestion: reads its order from standard input, says progress and result in lines."""

import asyncio
import sys
import time
from typing import Final

import msgspec

from vettance.backtests.job_turn import JobTurn, say
from vettance.commands import open_store
from vettance.deployment.connect import long_reads
from vettance.suggestions.suggest import NoSuggestion, suggest
from vettance.suggestions.suggestion_order import SuggestionOrder

_SAY_S: Final = 0.5


class SuggestionRequest(msgspec.Struct, frozen=True):
    """What the process is to do, as it comes on standard input."""

    tenant: str
    order: SuggestionOrder


class _ProgressLines:
    """Says how far the work is, at most twice a second."""

    def __init__(self) -> None:
        self._next_s = 0.0
        self._turn = JobTurn()

    def advance(self, progress: float) -> None:
        """Say it, unless it was said a moment ago; let others have their turn when it is time."""
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _SAY_S
            say({"progress": progress})
            self._turn.pause()


async def main(data: str) -> None:
    """Read the order, do it, and say what came of it."""
    request = msgspec.json.decode(sys.stdin.buffer.readline(), type=SuggestionRequest)
    async with open_store(data) as (store, settings):
        try:
            async with long_reads(settings, store, request.tenant) as reading:
                advance, scales = _ProgressLines().advance, settings.jurisdictions.scales
                say({"result": await suggest(reading, request.tenant, request.order, advance, scales)})
        except NoSuggestion as reason:
            say({"error": str(reason)})
        except Exception as error:
            say({"error": f"The suggestion could not be made ({type(error).__name__})."})
            raise


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
