"""What a training takes that reads many decisions: the seconds and the memory of its process."""

import asyncio
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from typing import Final

from vettance.clock import DAY_MS
from vettance.commands import open_store
from vettance.db.engine import Statement
from vettance.decisions.decision import Decision, DecisionRecordData, decide
from vettance.decisions.sql import insert_decision
from vettance.events.event import Event, read_taken_event
from vettance.feedback.label_change import LabelChange
from vettance.feedback.label_sql import insert_label
from vettance.models.discovery import EventMembers, features_of
from vettance.models.feature_set import read_feature_set, write_feature_set
from vettance.rules.packs import load_pack
from vettance.tenants.sql import insert_tenant
from vettance.tenants.tenant import Tenant
from vettance.wire.payload import encode

_TENANT: Final = "ten_bench"
_BATCH: Final = 2_000
_FRAUDS: Final = 0.01
_SPAN_MS: Final = 120 * DAY_MS
_START_MS: Final = 1_767_225_600_000
_KEYS: Final = (("customer.key", "customer"), ("metadata.terminalId", "terminalId"))


def measure_rows(count: int) -> None:
    """Fill a store with labelled decisions, train from it, and print what the process took."""
    document = write_feature_set(features_of(EventMembers(_KEYS, (), (), has_amount=True)))
    features = read_feature_set(document)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_fill(folder, count, len(features.features), features.digest))
        order = encode({"tenant": _TENANT, "features": document, "champion": None})
        began_s = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-P", "-m", "vettance.learning.training_process", folder],
            input=order,
            stdout=subprocess.PIPE,
            check=True,
        )
        took_s = time.monotonic() - began_s
    if refused := json.loads(done.stdout).get("error"):
        raise SystemExit(refused)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{count:,} decisions of {len(features.features)} features trained on in {took_s:.0f} s "
        f"({spent.ru_utime + spent.ru_stime:.0f} s of processor time),"
        f" {spent.ru_maxrss / 1024:,.0f} MB at most, a model of {len(done.stdout) / 1e6:.1f} MB with its card"
    )


async def _fill(folder: str, count: int, width: int, digest: str) -> None:
    ruleset = load_pack("fraud")
    quiet = decide(ruleset, 1, (), ())
    body = {"eventName": "payment.authorized", "metadata": {"amount": 10, "currency": "EUR"}}
    draw = random.Random(1)
    async with open_store(folder, make=True) as (store, _):
        await store.write(insert_tenant(Tenant(id=_TENANT, name="Bench"), _START_MS))
        for first in range(0, count, _BATCH):
            statements: list[Statement] = []
            for number in range(first, min(first + _BATCH, count)):
                at_ms = _START_MS + number * _SPAN_MS // count
                event = read_taken_event(body, at_ms)
                fraud = draw.random() < _FRAUDS
                values = tuple(draw.gauss(0.7 * fraud, 1) for _ in range(width))
                statements += _decided(f"evt_{number:09d}", event, quiet, values, digest, at_ms, fraud=fraud)
            await store.write(*statements)


def _decided(
    name: str,
    event: Event,
    quiet: Decision,
    values: tuple[float, ...],
    digest: str,
    at_ms: int,
    *,
    fraud: bool,
) -> Iterable[Statement]:
    record = DecisionRecordData(
        ruleset_version=1,
        outcome=quiet.outcome,
        score=quiet.score,
        level=quiet.level,
        facts=(),
        answers=(),
        inexact=0,
        fired=[],
        failed=[],
        lists=[],
        request_id="",
        processing_ms=1.0,
        features=values,
        feature_set=digest,
    )
    yield insert_decision(_TENANT, name, event, quiet, record, at_ms)
    if fraud:
        yield insert_label(_TENANT, LabelChange(f"{name}.0", name, fraud=True, weight=1, at_ms=at_ms), at_ms)
