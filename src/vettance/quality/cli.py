"""The command that shows what rules are worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from vettance.commands import (
    counted,
    data_option,
    from_option,
    json_option,
    run_for_tenant,
    show,
    show_table,
    to_option,
)
from vettance.rules.version_cli import tenant_option
from vettance.wire.payload import encode, timestamp

if TYPE_CHECKING:
    from vettance.db.engine import Store
    from vettance.quality.quality_desk import SpanReport
    from vettance.quality.rule_quality import RuleQuality
    from vettance.quality.wilson import Share

#: Steps of counting that the command waits for at most: a million decisions.
_STEPS_MAX = 2_000


def add_quality_command(group: click.Group) -> None:
    """Add the command to the group of fraud rules."""

    @group.command("quality")
    @tenant_option
    @from_option
    @to_option
    @json_option
    @data_option
    def quality(
        tenant_id: str, from_ms: int | None, to_ms: int | None, as_json: bool, data: str | None
    ) -> None:
        """Show what each rule of a tenant is worth: its hits, and how many of them were fraud.

        Without --from and --to, of the last 30 days. Precision and recall come from labelled decisions.

        Example: vettance rules quality --tenant ten_0190… --from 2026-10-01
        """
        report = run_for_tenant(data, tenant_id, lambda store: _report(store, tenant_id, from_ms, to_ms))
        if as_json:
            from vettance.quality.answers import quality_answer

            show(msgspec.json.decode(encode(quality_answer(report))), "", as_json=True)
            return
        quality = report.quality
        click.echo(
            f"{counted(quality.decisions, 'decision')} from {timestamp(report.from_ms)} to "
            f"{timestamp(report.to_ms)}, {quality.held} of them held, "
            f"{quality.labelled.fraud} labelled as fraud and {quality.labelled.legit} as legitimate."
        )
        fired = [one for one in quality.rules if one.hits or one.shadow_hits or one.failures]
        fired.sort(key=lambda one: (-one.hits, one.rule))
        show_table("Rules that fired", [_row(one) for one in fired], as_json=False)
        idle = [one.rule for one in quality.rules if "never_hits" in one.remarks]
        if idle:
            click.echo(f"Never fired: {', '.join(idle)}.")


async def _report(store: Store, tenant_id: str, from_ms: int | None, to_ms: int | None) -> SpanReport:
    from vettance.decisions.active_rulesets import RuleCache
    from vettance.decisions.features import fraud_schema
    from vettance.quality.quality_parts import assemble_quality
    from vettance.rules.rule_reads import ConditionReader
    from vettance.rules.ruleset import compile_document

    schema = fraud_schema()
    cache = RuleCache(lambda document: compile_document(document, schema))
    parts = assemble_quality(store, cache, ConditionReader(schema), lambda: (tenant_id,))
    await parts.counter.catch_up(tenant_id, _STEPS_MAX)
    return await parts.desk.report(tenant_id, from_ms, to_ms)


def _row(one: RuleQuality) -> dict[str, str | int]:
    return {
        "rule": one.rule,
        "mode": one.mode,
        "hits": one.hits,
        "share": f"{one.share:.2%}",
        "fraud": one.labelled.fraud,
        "legit": one.labelled.legit,
        "precision": _percent(one.labelled.precision),
        "recall": _percent(one.recall),
        "alone": one.alone,
        "in shadow": one.shadow_hits,
        "µs": "" if one.cost_us is None else f"{one.cost_us:.1f}",
        "remarks": ", ".join(one.remarks).replace("_", " "),
    }


def _percent(share: Share | None) -> str:
    return "" if share is None else f"{share.value:.0%} ({share.low:.0%} to {share.high:.0%})"
