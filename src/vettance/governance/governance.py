"""The parts of the life of rules, put together: what checks documents, and the doors of both kinds."""

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
from vettance.rules.sql import DECIDING
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
        self.checker = DocumentChecker(countries)
        self.snoozes = SnoozeMirror(store, {pack: decider.snoozes for pack, decider in deciders.items()})
        self._doors: list[RuleDoors | SnoozeDoors] = [
            RuleDoors(store, ids, self.checker, kind) for kind in KINDS
        ]
        for pack, decider in deciders.items():
            self._doors.append(SnoozeDoors(store, ids, self.snoozes, pack, _ids_of(decider)))

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        return tuple(route for doors in self._doors for route in doors.routes())

    async def close(self) -> None:
        """End the process that checks documents."""
        await self.checker.close()


def _ids_of(decider: Evaluator | Monitor) -> Callable[[str], Awaitable[Iterable[str]]]:
    """Return what names the rules of a tenant that are in force."""

    async def ids_of(tenant: str) -> Iterable[str]:
        if isinstance(decider, Monitor) and tenant not in decider.rules:
            await decider.prepare(tenant)  # AML rules are read for the first event of a tenant.
        active = decider.rules.get(tenant)
        return () if active is None else (rule.id for rule in active.ruleset.rules)

    return ids_of
