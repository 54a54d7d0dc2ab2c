"""The command that shows what rules are worth."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
    from vettance.quality.quality_desk import SpanReport
    from vettance.quality.quality_parts import QualityParts

#: Steps of counting that the command waits for at most: a million decisions.
_STEPS_MAX = 2_000
_HELP: Final = """Show what each rule of a tenant is worth: its hits, and {worth}.

Example: {example}
"""


class QualityCommand(NamedTuple):
    """What the command of one kind of rules needs: its endpoint, an example, what it shows of an answer.

    `answer` counts in the store of this computer and says what the endpoint would.
    """

    path: str
    example: str
    worth: str
    answer: Callable[[Store, str, int | None, int | None], Coroutine[Any, Any, msgspec.Struct]]
    head: Callable[[JSON], str]
    row: Callable[[JSON], dict[str, str | int]]


def add_quality_command(group: click.Group, kind: QualityCommand | None = None) -> None:
    """Add the command to the group of a kind of rules, those of fraud where none is given."""
    shown = kind or _fraud_command()

    @group.command("quality", help=_HELP.format(worth=shown.worth, example=shown.example))
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
        if server is not None:
            span = {"from_": from_ms and from_ms / 1000, "to": to_ms and to_ms / 1000}
            found = server.get(shown.path, **span)
        else:
            answer = run_for_tenant(
                data, tenant_id, lambda store: shown.answer(store, tenant_id, from_ms, to_ms)
            )
            found = msgspec.json.decode(encode(answer))
        if as_json:
            show(found, "", as_json=True)
            return
        click.echo(shown.head(found))
        rules = found["rules"]
        fired = [one for one in rules if one["hits"] or one["shadow"]["hits"] or one["failures"]]
        fired.sort(key=lambda one: (-one["hits"], one["ruleId"]))
        show_table("Rules that fired", [shown.row(one) for one in fired], as_json=False)
        idle = [one["ruleId"] for one in rules if "never_hits" in one["remarks"]]
        if idle:
            click.echo(f"Never fired: {', '.join(idle)}.")


async def caught_up(
    parts: QualityParts, tenant_id: str, from_ms: int | None, to_ms: int | None
) -> SpanReport:
    """Count what is new, and return what rules are worth."""
    await parts.counter.catch_up(tenant_id, _STEPS_MAX)
    return await parts.desk.report(tenant_id, from_ms, to_ms)


def _fraud_command() -> QualityCommand:
    return QualityCommand(
        "/rules/quality",
        "vettance rules quality --tenant ten_0190… --from 2026-10-01",
        "how many of them were fraud. Without --from and --to, of the last 30 days. Precision and recall\n"
        "come from labelled decisions",
        _answer,
        _head,
        _row,
    )


async def _answer(store: Store, tenant_id: str, from_ms: int | None, to_ms: int | None) -> msgspec.Struct:
    from vettance.decisions.active_rulesets import RuleCache
    from vettance.decisions.features import fraud_schema
    from vettance.quality.answers import quality_answer
    from vettance.quality.quality_parts import assemble_quality
    from vettance.rules.rule_reads import ConditionReader
    from vettance.rules.ruleset import compile_document

    schema = fraud_schema()
    cache = RuleCache(lambda document: compile_document(document, schema))
    parts = assemble_quality(store, cache, ConditionReader(schema))
    return quality_answer(await caught_up(parts, tenant_id, from_ms, to_ms))


def _head(found: JSON) -> str:
    return (
        f"{counted(found['decisions'], 'decision')} from {found['from']} to {found['to']}, "
        f"{found['held']} of them held, {found['fraud']} labelled as fraud and "
        f"{found['legit']} as legitimate."
    )


def _row(one: JSON) -> dict[str, str | int]:
    return {
        "rule": one["ruleId"],
        "mode": one["mode"],
        "hits": one["hits"],
        "share": f"{one['share']:.2%}",
        "fraud": one["fraud"],
        "legit": one["legit"],
        "precision": percent_text(one["precision"]),
        "recall": percent_text(one["recall"]),
        "alone": one["alone"],
        "in shadow": one["shadow"]["hits"],
        "µs": cost_text(one["costUs"]),
        "remarks": ", ".join(one["remarks"]).replace("_", " "),
    }


def cost_text(cost_us: float | None) -> str:
    """Write what a condition costs, in microseconds."""
    return "" if cost_us is None else f"{cost_us:.1f}"


def percent_text(share: JSON | None) -> str:
    """Write a share with its interval."""
    return "" if share is None else f"{share['value']:.0%} ({share['low']:.0%} to {share['high']:.0%})"
