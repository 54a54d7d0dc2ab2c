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
from vettance.rules.remote_rules import RemoteRules, tenant_or_server
from vettance.wire.payload import JSON, encode

if TYPE_CHECKING:
    from vettance.db.engine import Store

#: Steps of counting that the command waits for at most: a million decisions.
_STEPS_MAX = 2_000


def add_quality_command(group: click.Group) -> None:
    """Add the command to the group of fraud rules."""

    @group.command("quality")
    @tenant_or_server
    @from_option
    @to_option
    @json_option
    @data_option
    def quality(
        tenant_id: str,
        server: RemoteRules | None,
        from_ms: int | None,
        to_ms: int | None,
        as_json: bool,
        data: str | None,
    ) -> None:
        """Show what each rule of a tenant is worth: its hits, and how many of them were fraud.

        Without --from and --to, of the last 30 days. Precision and recall come from labelled decisions.

        Example: vettance rules quality --tenant ten_0190… --from 2026-10-01
        """
        if server is not None:
            span = {"from_": from_ms and from_ms / 1000, "to": to_ms and to_ms / 1000}
            found = server.get("/rules/quality", **span)
        else:
            found = run_for_tenant(data, tenant_id, lambda store: _answer(store, tenant_id, from_ms, to_ms))
        if as_json:
            show(found, "", as_json=True)
            return
        click.echo(
            f"{counted(found['decisions'], 'decision')} from {found['from']} to {found['to']}, "
            f"{found['held']} of them held, {found['fraud']} labelled as fraud and "
            f"{found['legit']} as legitimate."
        )
        rules = found["rules"]
        fired = [one for one in rules if one["hits"] or one["shadow"]["hits"] or one["failures"]]
        fired.sort(key=lambda one: (-one["hits"], one["ruleId"]))
        show_table("Rules that fired", [_row(one) for one in fired], as_json=False)
        idle = [one["ruleId"] for one in rules if "never_hits" in one["remarks"]]
        if idle:
            click.echo(f"Never fired: {', '.join(idle)}.")


async def _answer(store: Store, tenant_id: str, from_ms: int | None, to_ms: int | None) -> JSON:
    from vettance.decisions.active_rulesets import RuleCache
    from vettance.decisions.features import fraud_schema
    from vettance.quality.answers import quality_answer
    from vettance.quality.quality_parts import assemble_quality
    from vettance.rules.rule_reads import ConditionReader
    from vettance.rules.ruleset import compile_document

    schema = fraud_schema()
    cache = RuleCache(lambda document: compile_document(document, schema))
    parts = assemble_quality(store, cache, ConditionReader(schema), lambda: (tenant_id,))
    await parts.counter.catch_up(tenant_id, _STEPS_MAX)
    answer = quality_answer(await parts.desk.report(tenant_id, from_ms, to_ms))
    found: JSON = msgspec.json.decode(encode(answer))
    return found


def _row(one: JSON) -> dict[str, str | int]:
    return {
        "rule": one["ruleId"],
        "mode": one["mode"],
        "hits": one["hits"],
        "share": f"{one['share']:.2%}",
        "fraud": one["fraud"],
        "legit": one["legit"],
        "precision": _percent(one["precision"]),
        "recall": _percent(one["recall"]),
        "alone": one["alone"],
        "in shadow": one["shadow"]["hits"],
        "µs": "" if one["costUs"] is None else f"{one['costUs']:.1f}",
        "remarks": ", ".join(one["remarks"]).replace("_", " "),
    }


def _percent(share: JSON | None) -> str:
    return "" if share is None else f"{share['value']:.0%} ({share['low']:.0%} to {share['high']:.0%})"
