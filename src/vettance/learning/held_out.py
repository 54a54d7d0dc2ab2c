"""What a decision that was held out of blocking stands for in training."""

from typing import Final

import msgspec

from vettance.db.engine import Store
from vettance.decisions.decision import DecisionRecordData, Outcome, decide_again
from vettance.learning.training_rows import DecidedRow
from vettance.rules.ruleset import RuleSet, read_ruleset
from vettance.rules.sql import DECIDING

#: One decision stands for so many at most: otherwise a hold-out of a thousandth would decide what is learned.
_WEIGHT_MAX: Final = 100.0


class HoldOuts:
    """Weighs decisions that were held out, by the rule sets that made them, each read once."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant
        self._known: dict[int, RuleSet | None] = {}

    async def weigh(self, row: DecidedRow, record: DecisionRecordData) -> DecidedRow:
        """Return a row with the score that the rules gave, and with the weight of all that it stands for.

        Of what would be denied, a share of so many per cent was let through; nothing is presumed of the rest.
        Those that would be reviewed stand for themselves, like all other reviews.
        """
        if not record.held_out:
            return row
        ruleset = await self._ruleset(record.ruleset_version)
        if ruleset is None or ruleset.explore is None:
            return row
        otherwise = decide_again(ruleset, msgspec.structs.replace(record, held_out=False), self._tenant)
        weight = (
            min(100 / ruleset.explore.percent, _WEIGHT_MAX) if otherwise.outcome is Outcome.BLOCK else 1.0
        )
        points = otherwise.score if record.model is None else row.points
        return row._replace(weight=weight, points=points)

    async def _ruleset(self, version: int) -> RuleSet | None:
        """Return a rule set; None where it is gone or cannot be read."""
        if version not in self._known:
            rows = await self._store.read(DECIDING.select_version(self._tenant, version))
            try:
                self._known[version] = read_ruleset(rows[0][0]) if rows else None
            except Exception:  # noqa: BLE001  Without its rules a decision stands for itself.
                self._known[version] = None
        return self._known[version]
