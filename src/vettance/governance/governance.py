"""The parts of the life of rules, put together: what checks documents, and the doors of both kinds."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from vettance.aml.monitor import Monitor
from vettance.aml.sql import RULE_SETS
from vettance.db.engine import Store
from vettance.decisions.evaluate import Evaluator
from vettance.governance.api import RuleDoors, RuleKind
from vettance.governance.check_documents import DocumentChecker
from vettance.ids import IdSource
from vettance.reference.jurisdictions import Jurisdictions
from vettance.rules.ruleset import read_ruleset
from vettance.rules.sql import DECIDING, RuleSets
from vettance.snoozes.api import SnoozeDoors
from vettance.snoozes.keep_snoozes import SnoozeMirror
from vettance.web.routing import Route

KINDS: Final = (
    RuleKind(DECIDING, "/api/v1", "Rule sets", None),
    RuleKind(RULE_SETS, "/api/v1/aml", "AML rule sets", "aml"),
)


class Governance:
    """What a process holds of it."""

    def __init__(
        self,
        store: Store,
        ids: IdSource,
        countries: Jurisdictions,
        evaluator: Evaluator,
        monitor: Monitor,
    ) -> None:
        deciders: dict[str, Evaluator | Monitor] = {DECIDING.pack: evaluator, RULE_SETS.pack: monitor}
        sets = {kind.sets.pack: kind.sets for kind in KINDS}
        self.checker = DocumentChecker(countries)
        self.snoozes = SnoozeMirror(store, {pack: decider.snoozes for pack, decider in deciders.items()})
        self._doors: list[RuleDoors | SnoozeDoors] = [
            RuleDoors(store, ids, self.checker, kind) for kind in KINDS
        ]
        for pack, decider in deciders.items():
            rules_of = _ids_of(store, decider, sets[pack])
            self._doors.append(SnoozeDoors(store, ids, self.snoozes, pack, rules_of))

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        return tuple(route for doors in self._doors for route in doors.routes())

    async def close(self) -> None:
        """End the process that checks documents."""
        await self.checker.close()


def _ids_of(
    store: Store, decider: Evaluator | Monitor, sets: RuleSets
) -> Callable[[str], Awaitable[Iterable[str]]]:
    """Return what names the rules of a tenant that are in force, as the store has it.

    A version that has just come into force, here or in another process, is taken in within seconds only.
    """

    async def ids_of(tenant: str) -> Iterable[str]:
        if isinstance(decider, Monitor) and tenant not in decider.rules:
            await decider.prepare(tenant)  # AML rules are read for the first event of a tenant.
        active = decider.rules.get(tenant)
        rows = await store.read(sets.select_active_number(tenant))
        if rows and (active is None or active.version != rows[0][0]):
            _, document, _ = (await store.read(sets.select_active(tenant)))[0]
            ruleset = await asyncio.to_thread(read_ruleset, document)
        elif active is not None:
            ruleset = active.ruleset
        else:
            return ()
        return [rule.id for rule in ruleset.rules]

    return ids_of
