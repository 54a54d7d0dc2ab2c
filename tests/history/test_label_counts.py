"""Feedback counted in the rollup, by the time and the outcome of the events that it is on."""

import random
from collections import Counter
from pathlib import Path

from tests.history.past import DAY_MS, START_MS, Archive, Made, Past
from vettance.db import migrate as embedded
from vettance.db import postgres_schema
from vettance.db.engine import Statement
from vettance.decisions.decision import Outcome
from vettance.decisions.sql import count_label
from vettance.feedback.label import Feedback, FeedbackTarget, Label
from vettance.feedback.sql import insert_feedback
from vettance.history.statistics import LabelCount

MIGRATION = "*_labels_counted.sql"


def made_up(rng: random.Random) -> Made:
    return Made(
        outcome=rng.choice([*Outcome]),
        waited_ms=rng.choice([500, 7_000, 45_000, 3_600_000, DAY_MS]),
        occurred_before_ms=rng.choice([0, 59_999, 3_600_000, DAY_MS]),
        reasons=("VELOCITY_IP",),
    )


def said_of(archive: Archive, tenant: str, past: Past, label: Label) -> Statement:
    kept = Feedback(
        id=archive.ids.make("fbk", past.evaluated_at_ms),
        tenant=tenant,
        target=past.id,
        type=FeedbackTarget.DECISION,
        label=label,
        notes=None,
        external_case_id=None,
        created_at_ms=past.evaluated_at_ms,
        updated_at_ms=past.evaluated_at_ms,
    )
    return insert_feedback(kept)


async def labelled(archive: Archive, tenants: list[str], *, counted: bool) -> list[list[tuple[Past, Label]]]:
    """Make decisions with feedback on most of them, on some twice."""
    rng = random.Random(5)
    pasts = await archive.live(tenants, [(number % 2, made_up(rng)) for number in range(80)], (20, 50))
    given: list[list[tuple[Past, Label]]] = []
    for tenant, past in zip(tenants, pasts, strict=True):
        given.append([(one, rng.choice([*Label])) for one in past for _ in range(rng.randrange(3))])
        for one, label in given[-1]:
            statements = [said_of(archive, tenant, one, label)]
            if counted:
                statements.append(count_label(tenant, one.occurred_at_ms, one.made.outcome, label.value))
            await archive.store.write(*statements)
    return given


def recount(given: list[tuple[Past, Label]], from_ms: int, to_ms: int) -> list[LabelCount]:
    """Count one by one, in whole minutes."""
    low, high = from_ms // 60_000 * 60_000, -(-to_ms // 60_000) * 60_000
    inside = [(one.made.outcome, label) for one, label in given if low <= one.occurred_at_ms < high]
    counts = Counter(inside)
    order = Outcome.ALLOW, Outcome.REVIEW, Outcome.BLOCK
    return [
        LabelCount(label.value, *(counts[outcome, label] for outcome in order))
        for label in sorted({label for _, label in inside})
    ]


def test_labels_are_those_of_a_recount_and_no_reasons(either: Archive) -> None:
    tenants = [either.tenant(), either.tenant()]

    async def scene() -> None:
        given = await labelled(either, tenants, counted=True)
        rng = random.Random(9)
        end_ms = max(one.occurred_at_ms for one, _ in given[0]) + 1
        spans = [(START_MS - 3 * DAY_MS, end_ms), (end_ms, end_ms), (end_ms - 1, end_ms)]
        for _ in range(40):
            from_ms = rng.randrange(START_MS - DAY_MS, end_ms)
            spans.append((from_ms, from_ms + rng.choice([1, 40_000, 3_600_000, 9 * DAY_MS])))
        for from_ms, to_ms in spans:
            for tenant, own in zip(tenants, given, strict=True):
                found = await either.counter.labels(tenant, from_ms, to_ms)
                assert sorted(found) == recount(own, from_ms, to_ms)
                counts = await either.counter.count(tenant, from_ms, to_ms)
                assert set(counts.codes) <= {"VELOCITY_IP"}

    either.runner.run(scene())


def test_feedback_from_before_is_counted_by_the_migration(either: Archive, tmp_path: Path) -> None:
    tenants = [either.tenant(), either.tenant()]
    folder = (embedded if either.url is None else postgres_schema).FOLDER
    (migration,) = folder.glob(MIGRATION)

    async def scene() -> None:
        given = await labelled(either, tenants, counted=False)
        await either.store.write(Statement(migration.read_text(), tenant="*"))
        for tenant, own in zip(tenants, given, strict=True):
            for from_ms in (START_MS - 3 * DAY_MS, START_MS + 5 * DAY_MS + 1):
                found = await either.counter.labels(tenant, from_ms, START_MS + 90 * DAY_MS)
                assert sorted(found) == recount(own, from_ms, START_MS + 90 * DAY_MS)

    either.runner.run(scene())
