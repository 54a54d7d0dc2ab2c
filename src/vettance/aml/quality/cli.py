"""The command that shows what AML rules are worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from vettance.commands import counted
from vettance.quality.cli import QualityCommand, add_quality_command, caught_up, cost_text, percent_text

if TYPE_CHECKING:
    import msgspec

    from vettance.db.engine import Store
    from vettance.wire.payload import JSON


def add_aml_quality_command(group: click.Group) -> None:
    """Add the command to the group of AML rules."""
    add_quality_command(
        group,
        QualityCommand(
            "/aml/rules/quality",
            "vettance aml quality --tenant ten_0190… --from 2026-10-01",
            "what the alerts that it raised turned out to be. Without --from and --to, of the last 30 days.\n"
            "Events count at their own time, alerts when they were raised; precision comes from closed\n"
            "cases",
            _answer,
            _head,
            _row,
        ),
    )


async def _answer(store: Store, tenant_id: str, from_ms: int | None, to_ms: int | None) -> msgspec.Struct:
    from vettance.aml.features import aml_schema
    from vettance.aml.quality.answers import aml_quality_answer
    from vettance.aml.quality.assemble_aml_quality import assemble_aml_quality

    parts = assemble_aml_quality(store, aml_schema())
    return aml_quality_answer(await caught_up(parts, tenant_id, from_ms, to_ms))


def _head(found: JSON) -> str:
    alerts = found["alerts"]
    return (
        f"{counted(found['events'], 'event')} from {found['from']} to {found['to']}, "
        f"{found['alerted']} of them alerted; {counted(alerts['raised'], 'alert')} raised, of which "
        f"{alerts['trueMatches']} were true matches and {alerts['falsePositives']} false positives."
    )


def _row(one: JSON) -> dict[str, str | int]:
    return {
        "rule": one["ruleId"],
        "mode": one["mode"],
        "hits": one["hits"],
        "share": f"{one['share']:.2%}",
        "alerts": one["alerts"]["raised"],
        "true": one["alerts"]["trueMatches"],
        "false": one["alerts"]["falsePositives"],
        "precision": percent_text(one["precision"]),
        "alone": one["alone"],
        "in shadow": one["shadow"]["hits"],
        "µs": cost_text(one["costUs"]),
        "remarks": ", ".join(one["remarks"]).replace("_", " "),
    }
