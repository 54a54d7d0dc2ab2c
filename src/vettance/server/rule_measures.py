"""What measures rules in a process, of fraud and of AML: quality counted behind the logs, and jobs."""

from typing import Final

from vettance.aml.coverage.api import AmlCoverageDoors
from vettance.aml.features import aml_schema
from vettance.aml.quality.assemble_aml_quality import assemble_aml_quality
from vettance.backtests.api import AML_BACKTESTS, FRAUD_BACKTESTS, Admit, BacktestDoors
from vettance.backtests.backtest_job import BACKTEST_PREFIX
from vettance.backtests.run_backtests import BACKTEST_PROCESS, BacktestRunner
from vettance.db.engine import Store
from vettance.decisions.active_rulesets import RuleCache
from vettance.decisions.load_ruleset import load_active
from vettance.ids import IdSource
from vettance.quality.quality_parts import assemble_quality
from vettance.rules.rule_reads import ConditionReader
from vettance.rules.schema import Schema
from vettance.settings.settings import Settings
from vettance.suggestions.api import SuggestionDoors
from vettance.suggestions.suggestion_order import SUGGESTION_PREFIX, SUGGESTION_PROCESS
from vettance.web.routing import Route

#: What does a job in a process of its own, by what its id begins with.
_JOB_PROCESSES: Final = {BACKTEST_PREFIX: BACKTEST_PROCESS, SUGGESTION_PREFIX: SUGGESTION_PROCESS}


class RuleMeasures:
    """The parts; `acts` is the store that keeps the audit log."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        acts: Store,
        ids: IdSource,
        cache: RuleCache,
        schema: Schema,
        admit: Admit,
    ) -> None:
        reader, watching = ConditionReader(schema), aml_schema(settings.jurisdictions)
        aml = assemble_aml_quality(store, watching)
        self.quality = (assemble_quality(store, cache, reader), aml)
        self._coverage = AmlCoverageDoors(store, aml.rules, watching)
        self._backtests = tuple(
            BacktestDoors(acts, ids, admit, kind) for kind in (FRAUD_BACKTESTS, AML_BACKTESTS)
        )
        #: Does jobs that measure rules, in processes of their own.
        self.runner = BacktestRunner(store, settings.data, _JOB_PROCESSES)
        self._suggestions = SuggestionDoors(
            acts, ids, lambda tenant: load_active(store, cache, tenant), reader
        )

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        quality = [route for one in self.quality for route in one.doors.routes()]
        backtests = [route for one in self._backtests for route in one.routes()]
        return (*quality, *self._coverage.routes(), *backtests, *self._suggestions.routes())
