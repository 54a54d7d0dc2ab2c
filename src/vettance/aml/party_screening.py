"""Find: whom an event names on the watchlists, while its sender waits, and never for long."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from vettance.aml.aml_event import AmlEvent
from vettance.aml.screening.screen import Screener, SearchResult
from vettance.aml.screening.screening_request import ScreenRequest, party_request, sent_of
from vettance.db.engine import StoreDown
from vettance.errors import Refusal
from vettance.telemetry.logs import logger
from vettance.watchlists.entity import EntityType
from vettance.wire.payload import JSON

#: How long an event waits for its names. One search takes some milliseconds; what is not done by then goes on
#: behind the answer.
WAIT_S: Final = 0.25
#: Searches that may continue after their answers; beyond, the log says which names were not screened.
LATE_MAX: Final = 1_000
#: A counterparty is paid again and again: how long, and of how many names, an outcome is kept. So much later
#: at the most a new version of a list is heeded.
KEPT_S: Final = 60.0
KEPT_MAX: Final = 20_000
_COMPLAIN_S: Final = 60.0

_NAMES: Final = ("name", "fullName", "full_name", "legalName", "legal_name")
_FIRST: Final = ("firstName", "first_name", "givenName", "given_name")
_LAST: Final = ("lastName", "last_name", "familyName", "family_name", "surname")
_BIRTH: Final = ("dateOfBirth", "date_of_birth", "birthDate", "birth_date", "dob")
_NATION: Final = ("nationality", "citizenship")

_log = logger()


class NamedParty(NamedTuple):
    """A party of an event that may be on a list, and what was found of it."""

    request: ScreenRequest
    found: SearchResult


class InlineScreener:
    """Screens the names of events. Nothing that goes wrong with it is the event's fault."""

    def __init__(
        self,
        screener: Screener,
        wait_s: float = WAIT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.screener = screener
        self._wait_s = wait_s
        self._clock = clock
        self._kept: dict[tuple[str, ScreenRequest], tuple[float, SearchResult]] = {}
        self._late: set[asyncio.Task[None]] = set()
        self._quiet_until = 0.0

    async def look(self, tenant: str, event: AmlEvent) -> list[NamedParty]:
        """Return the parties of an event that resemble somebody on a list.

        Whatever has not been found when the time is up is screened behind the answer, and goes into the case
        of the customer by itself.
        """
        wanted = [request for request in requests_of(event) if request is not None]
        known = [(request, self._remembered(tenant, request)) for request in wanted]
        named = [
            NamedParty(request, found) for request, found in known if found is not None and found.matches
        ]
        searches = {
            asyncio.create_task(self._search(tenant, request)): request
            for request, found in known
            if found is None
        }
        if searches:
            done, late = await asyncio.wait(searches, timeout=self._wait_s)
            for search in done:
                found = search.result()
                if found is not None and found.matches:
                    named.append(NamedParty(searches[search], found))
            for search in late:
                self._follow_up(tenant, searches[search], search)
        return named

    async def settle(self) -> None:
        """Wait for what goes on behind answers."""
        while self._late:
            await asyncio.wait(self._late)

    def close(self) -> None:
        """Give up what goes on behind answers."""
        for task in self._late:
            task.cancel()

    async def _search(self, tenant: str, request: ScreenRequest) -> SearchResult | None:
        try:
            found = await self.screener.look(tenant, request)
        except (Refusal, StoreDown) as error:
            self._complain(tenant, str(error))
            return None
        except Exception as error:  # noqa: BLE001  No name keeps its event from being watched.
            _log.error("name_not_screened", tenant=tenant, exc_info=error)
            return None
        if len(self._kept) >= KEPT_MAX:
            self._kept.clear()
        self._kept[tenant, _plain(request)] = self._clock() + KEPT_S, found
        return found

    def _remembered(self, tenant: str, request: ScreenRequest) -> SearchResult | None:
        until, found = self._kept.get((tenant, _plain(request)), (0.0, None))
        return found if until > self._clock() else None

    def _follow_up(
        self, tenant: str, request: ScreenRequest, search: "asyncio.Task[SearchResult | None]"
    ) -> None:
        if len(self._late) >= LATE_MAX:
            search.cancel()
            self._complain(tenant, "too many screenings are late")
            return
        task = asyncio.create_task(self._finish(tenant, request, search))
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def _finish(
        self, tenant: str, request: ScreenRequest, search: "asyncio.Task[SearchResult | None]"
    ) -> None:
        try:
            found = await search
            if found is not None and found.matches:
                await self.screener.screen(tenant, request, sent_of(request))
        except (Refusal, StoreDown) as error:
            self._complain(tenant, str(error))
        except Exception as error:  # noqa: BLE001  Nobody waits for it any more.
            _log.error("name_not_screened", tenant=tenant, exc_info=error)

    def _complain(self, tenant: str, reason: str) -> None:
        """Say that names go unscreened, once a minute: with no list loaded it is every name."""
        if self._clock() >= self._quiet_until:
            self._quiet_until = self._clock() + _COMPLAIN_S
            _log.warning("names_not_screened", tenant=tenant, reason=reason)


def requests_of(event: AmlEvent) -> Iterator[ScreenRequest | None]:
    """Give a request for the customer and one for the counterparty, where they are named.

    The country of a counterparty's account is no nationality: it would speak against a match, and is no help.
    """
    customer = event.customer_key
    if customer is None:
        return
    profile = event.customer.get("metadata")
    holders = [event.customer, profile if type(profile) is dict else {}]
    name = _text(holders, _NAMES) or " ".join(filter(None, (_text(holders, _FIRST), _text(holders, _LAST))))
    name = name or _text([event.metadata], ("customerName", "customer_name"))
    if name:
        yield party_request(
            customer,
            name,
            counterparty=False,
            kind=EntityType.ORGANIZATION if event.transfer.segment == "business" else None,
            birth=_text(holders, _BIRTH) or None,
            country=_text(holders, _NATION) or None,
            now_ms=event.occurred_at_ms,
        )
    if event.transfer.counterparty_name is not None:
        yield party_request(
            customer, event.transfer.counterparty_name, counterparty=True, now_ms=event.occurred_at_ms
        )


def _text(holders: list[JSON], names: tuple[str, ...]) -> str:
    found: Any = next((value for holder in holders for name in names if (value := holder.get(name))), "")
    return found.strip() if type(found) is str else ""


def _plain(request: ScreenRequest) -> ScreenRequest:
    """Return what is searched for, apart from the tenant and its customer."""
    return ScreenRequest("", request.subject, None)
