"""The door to the coverage of AML events: what they lack, what nothing reads, which rules stay silent."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from vettance import clock
from vettance.aml.coverage.event_coverage import BODY_BYTES_MAX, NEWEST, NewestAmlEvent, cover, silent_rules
from vettance.aml.coverage.sql import select_newest_sent
from vettance.db.engine import Store
from vettance.decisions.active_rulesets import ActiveRules
from vettance.decisions.coverage import UnknownMember
from vettance.decisions.load_ruleset import load_active
from vettance.quality.quality_parts import QualityRules
from vettance.rules.schema import Schema
from vettance.tenants.key_scope import KeyScope
from vettance.web.routing import Call, Route, RouteReply, reached_by
from vettance.wire.payload import Wire

_SHARE_DIGITS: Final = 4
_MEMBERS_SHOWN: Final = 10
#: How long an answer is given again: it costs tens of milliseconds of a thread that all tenants share.
_KEPT_MS: Final = 10_000
_KEPT_MAX: Final = 256


class UnreadableAmount(Wire, frozen=True):
    """An amount that was sent as no number can be read, and in how many events."""

    name: str
    events: int


class SilentRule(Wire, frozen=True):
    """A rule that none of the newest events can make fire, and the values (`names`) that none of them has."""

    rule_id: str
    name: str
    names: list[str]


class AmlCoverageAnswer(Wire, frozen=True):
    """The newest AML events of a tenant; those of category TRANSACTION, or of none, are transactions.

    `without` has the share of transactions that lack each part; it is empty where there are none. Rules that
    are off are not among the silent ones.
    """

    events: int
    transactions: int
    without: dict[str, float]
    unreadable_amounts: list[UnreadableAmount]
    unknown_members: list[UnknownMember]
    silent_rules: list[SilentRule]


class AmlCoverageDoors:
    """Looks through the newest AML events of a tenant, one tenant's at most once at a time."""

    def __init__(
        self, store: Store, rules: QualityRules, schema: Schema, now_ms: Callable[[], int] = clock.now_ms
    ) -> None:
        self._store = store
        self._rules = rules
        self._schema = schema
        self._now_ms = now_ms
        self._kept: OrderedDict[str, tuple[int, AmlCoverageAnswer]] = OrderedDict()
        self._turns: dict[str, asyncio.Lock] = {}

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        show = Route(
            "GET",
            "/api/v1/aml/coverage",
            self.show,
            "What the newest AML events lack, and which rules that keeps from firing",
            "AML",
            answers=AmlCoverageAnswer,
            product="aml",
        )
        return reached_by((show,), KeyScope.DECIDE, KeyScope.MANAGE, KeyScope.RULES)

    async def show(self, call: Call) -> RouteReply:
        """GET /aml/coverage."""
        tenant = call.tenant.id
        turn = self._turns.setdefault(tenant, asyncio.Lock())
        async with turn:
            at_ms, found = self._kept.get(tenant, (0, None))
            if found is None or not found.events or not 0 <= self._now_ms() - at_ms < _KEPT_MS:
                found = await self._look(tenant)
                self._kept[tenant] = (self._now_ms(), found)
                self._kept.move_to_end(tenant)
                while len(self._kept) > _KEPT_MAX:
                    forgotten, _ = self._kept.popitem(last=False)
                    self._turns.pop(forgotten, None)
        return RouteReply(found)

    async def _look(self, tenant: str) -> AmlCoverageAnswer:
        rows = await self._store.read(select_newest_sent(tenant, NEWEST, BODY_BYTES_MAX))
        active = await load_active(self._store, self._rules.cache, tenant, self._rules.sets)
        newest = [NewestAmlEvent(*row) for row in rows]
        return await asyncio.to_thread(self._answer, newest, active)

    def _answer(self, newest: Sequence[NewestAmlEvent], active: ActiveRules) -> AmlCoverageAnswer:
        covered = cover(newest)
        silent = silent_rules(newest, active, self._rules.conditions, self._schema)
        return AmlCoverageAnswer(
            events=covered.events,
            transactions=covered.transactions,
            without={
                part: round(count / covered.transactions, _SHARE_DIGITS)
                for part, count in covered.without.items()
            },
            unreadable_amounts=[
                UnreadableAmount(name, count) for name, count in covered.unreadable.most_common()
            ],
            unknown_members=[
                UnknownMember(name=name, events=count, nearest=nearest)
                for (name, nearest), count in covered.unknown.most_common(_MEMBERS_SHOWN)
            ],
            silent_rules=[SilentRule(rule.id, rule.name, names) for rule, names in silent],
        )
