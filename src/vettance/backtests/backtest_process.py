"""The process of one backtest: reads its order from standard input, says progress and result in lines."""

import asyncio
import sys
import time
from pathlib import Path
from typing import Final

import msgspec

from vettance.aml.features import aml_schema
from vettance.aml.sql import RULE_SETS
from vettance.backtests.aml_backtest import AmlBacktest, TriedEvent
from vettance.backtests.aml_backtest_result import aml_backtest_result
from vettance.backtests.aml_backtest_sql import count_events
from vettance.backtests.backtest_job import SAMPLES, BacktestOrder, sampler
from vettance.backtests.job_turn import JobTurn, say
from vettance.commands import open_store
from vettance.db.engine import Store
from vettance.decisions.active_rulesets import active_rules
from vettance.decisions.features import fraud_schema
from vettance.deployment.connect import connect_velocity, long_reads
from vettance.feedback.find_maturity import find_label_timing
from vettance.history.backtest import Backtest, ChangedDecision
from vettance.history.backtest_result import backtest_result
from vettance.history.sql import count_after
from vettance.reference.jurisdictions import Jurisdictions
from vettance.rules.ruleset import compile_document
from vettance.rules.schema import Schema
from vettance.wire.payload import JSON

_SAY_S: Final = 0.5


class BacktestRequest(msgspec.Struct, frozen=True):
    """What the process is to do, as it comes on standard input."""

    tenant: str
    order: BacktestOrder


class _Sayer:
    """Says how far the work is, at most twice a second."""

    def __init__(self, total: int) -> None:
        self._total = max(total, 1)
        self._done = 0
        self._next_s = 0.0
        self._turn = JobTurn()

    def advance(self, count: int) -> None:
        """Count events that were looked at, and let others have their turn when it is time."""
        self._done += count
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _SAY_S
            say({"progress": min(self._done / self._total, 0.999)})
            self._turn.pause()


async def work(store: Store, request: BacktestRequest, countries: Jurisdictions) -> JSON:
    """Do a backtest and return its result."""
    if request.order.kind == RULE_SETS.pack:
        found = await _work_aml(store, request, countries)
    else:
        found = await _work_fraud(store, request, fraud_schema(scales=countries.scales))
    return found | {"failedTests": list(request.order.missed)}


async def _work_fraud(store: Store, request: BacktestRequest, schema: Schema) -> JSON:
    order = request.order
    ruleset, compiled = compile_document(order.document, schema)
    active = active_rules(order.version, "", ruleset, compiled)
    run = Backtest(store, request.tenant, active, connect_velocity, sampler(order.sample), schema=schema)
    sayer = _Sayer((await store.read(count_after(request.tenant, 0)))[0][0])
    samples: list[ChangedDecision] = []
    flipped = 0

    def keep(change: ChangedDecision) -> None:
        nonlocal flipped
        flipped += 1
        if len(samples) < SAMPLES:
            samples.append(change)

    await run.run((order.from_ms, order.to_ms), keep, sayer.advance)
    timing = await find_label_timing(store, request.tenant)
    return backtest_result(run, ruleset.running, samples, flipped, timing.mature_ms)


async def _work_aml(store: Store, request: BacktestRequest, countries: Jurisdictions) -> JSON:
    order = request.order
    ruleset, compiled = compile_document(order.document, aml_schema(countries))
    active = active_rules(order.version, "", ruleset, compiled)
    run = AmlBacktest(store, request.tenant, active, connect_velocity, sampler(order.sample))
    sayer = _Sayer((await store.read(count_events(request.tenant)))[0][0])
    samples: list[TriedEvent] = []

    def keep(tried: TriedEvent) -> None:
        if tried.is_flip and len(samples) < SAMPLES:
            samples.append(tried)

    await run.run((order.from_ms, order.to_ms), keep, sayer.advance)
    return aml_backtest_result(run, samples)


async def main(data: str) -> None:
    """Read the order, do it, and say what came of it."""
    request = msgspec.json.decode(sys.stdin.buffer.readline(), type=BacktestRequest)
    async with open_store(data) as (store, settings):
        try:
            async with long_reads(settings, store, request.tenant) as reading:
                say({"result": await work(reading, request, settings.jurisdictions)})
        except Exception as error:
            say({"error": f"The backtest could not be done ({type(error).__name__})."})
            raise


if __name__ == "__main__":
    asyncio.run(main(str(Path(sys.argv[1]))))
