"""Checks documents of rules in a process of its own, so that no decision waits for the tests of rules."""

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from vettance.errors import Unavailable
from vettance.governance.check_process import DocumentCall
from vettance.governance.checked_document import CheckedDocument
from vettance.governance.checked_features import CheckedFeatures, FeatureCall
from vettance.processes.standard_input import tell
from vettance.reference.jurisdictions import Jurisdictions
from vettance.rules.rule import Fault, RuleSetRefused
from vettance.rules.sql import RuleSets
from vettance.rules.versioning import NewRules
from vettance.watchlists.search_protocol import LENGTH_BYTES, framed

#: The tests of one document may run 50,000 events, on a machine that is busy.
_CHECK_S_MAX: Final = 60.0
#: Documents that may wait at a time; a check of a large pack takes a second.
_WAITING_MAX: Final = 16
#: And those of one tenant: somebody who types is answered for the last letter.
_WAITING_OF_TENANT_MAX: Final = 3
#: A process that nobody has asked for so long is ended; starting one takes half a second.
_IDLE_S: Final = 120.0

_Answer = TypeVar("_Answer")


class _TenantLine:
    """The documents of one tenant that wait: one of them at a time is in the line of all tenants."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.waiting = 0


class DocumentChecker:
    """Passes documents through the gate in one process, which is started when it is first asked.

    Tenants take turns: nobody waits for more than one document of another.
    """

    def __init__(self, countries: Jurisdictions) -> None:
        self._countries = countries
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._lines: dict[str, _TenantLine] = {}
        self._idle: asyncio.TimerHandle | None = None

    async def check(self, tenant: str, sets: RuleSets, document: str) -> CheckedDocument:
        """Return what the gate finds. Raises `Unavailable` when too many ask or the check does not end."""
        return await self._check(tenant, DocumentCall(sets.pack, document, self._countries), CheckedDocument)

    async def check_features(self, tenant: str, call: FeatureCall) -> CheckedFeatures:
        """Return what is wrong with a document of features. Raises as `check`."""
        return await self._check(tenant, call, CheckedFeatures)

    async def _check(self, tenant: str, call: DocumentCall | FeatureCall, answer: type[_Answer]) -> _Answer:
        line = self._lines.get(tenant) or _TenantLine()
        waiting = sum(each.waiting for each in self._lines.values())
        if line.waiting >= _WAITING_OF_TENANT_MAX or waiting >= _WAITING_MAX:
            raise Unavailable("Other documents are being checked. Try again.", 2)
        self._lines[tenant] = line
        line.waiting += 1
        try:
            async with line.turn, self._turn:
                return await self._ask(call, answer)
        finally:
            line.waiting -= 1
            if not line.waiting:
                del self._lines[tenant]

    async def admit_trial(
        self, tenant: str, sets: RuleSets, document: str
    ) -> tuple[NewRules, Sequence[Fault]]:
        """Return the rules of a document to be tried, and which of their tests fail: that refuses no trial.

        Raises `RuleSetRefused` for rules that cannot run.
        """
        found = await self.check(tenant, sets, document)
        if found.broken or found.cost is None:
            raise RuleSetRefused(found.faults)
        return found.new_rules, found.missed

    async def close(self) -> None:
        """End the process."""
        if self._idle is not None:
            self._idle.cancel()
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _ask(self, call: DocumentCall | FeatureCall, answer: type[_Answer]) -> _Answer:
        if self._idle is not None:
            self._idle.cancel()
        try:
            async with asyncio.timeout(_CHECK_S_MAX):
                if self._process is not None and self._process.returncode is not None:
                    await self.close()
                process = self._process = self._process or await _start()
                assert process.stdout is not None
                tell(process, framed(msgspec.msgpack.encode(call)))
                length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES))
                found = msgspec.msgpack.decode(await process.stdout.readexactly(length), type=answer)
        except asyncio.CancelledError:
            # Its answer would be taken for that of the next document.
            await self.close()
            raise
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            await self.close()
            raise Unavailable("The document could not be checked. Try again.") from None
        self._idle = asyncio.get_running_loop().call_later(_IDLE_S, self._end)
        return found

    def _end(self) -> None:
        """End a process that nobody asks any more: it ends with its standard input."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()


async def _start() -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "vettance.governance.check_process"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        # A terminal's Ctrl-C is for the service, which ends this by closing its input.
        start_new_session=True,
    )
