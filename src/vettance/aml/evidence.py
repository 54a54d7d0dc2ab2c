"""Figures: what a rule counted, in plain words for the summary of an alert, and exactly for its record."""

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from vettance.aml.aml_event import AmlEvent
from vettance.aml.condition_words import condition_in_words, name_in_words, one_of
from vettance.rules.compiler import CompiledRules
from vettance.rules.expression import AggregateExpression
from vettance.rules.language import CheckedText, check
from vettance.rules.rule import Rule
from vettance.rules.schema import Schema
from vettance.velocity.aggregates import AGGREGATES
from vettance.velocity.port import Value

SUMMARY_CHARS_MAX: Final = 1_000

_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


class Figures(msgspec.Struct, rename="camel", frozen=True):
    """What made an alert: the rule, every value it read, and the parties of a circle or chain.

    `with_rules` are the ids of the rules that fired with it: of the same reason, or as hints of one sum.
    """

    rule_id: str
    rule_name: str
    values: dict[str, Any]
    path: tuple[str, ...] = ()
    with_rules: tuple[str, ...] = ()


class EvidenceWriter:
    """Tells what rules counted. Keeps the checked texts of rules, of which there are few."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._checked: dict[str, CheckedText] = {}

    def tell(
        self,
        rule: Rule,
        compiled: CompiledRules,
        facts: Sequence[Any],
        answers: Sequence[Value],
        event: AmlEvent,
        *,
        as_if_last: bool = False,
    ) -> tuple[str, dict[str, Any]]:
        """Return the summary of an alert in plain words, and every value its rule read, by name.

        Answers about a late event `as_if_last` also count what happened after it.
        """
        checked = self._checked.get(rule.when)
        if checked is None:
            checked = self._checked[rule.when] = check(rule.when, self._schema)
        known = dict(zip(compiled.fact_names, facts, strict=True))
        counted = dict(zip(compiled.plan.aggregate_names, answers, strict=True))
        values = {name: known[name] for name in checked.names if known.get(name) is not None}
        values |= {found.text: counted[found.text] for found in checked.aggregates}
        worth = known.get("worth")
        scale = event.transfer.amount / worth if worth and event.transfer.amount is not None else 1.0
        scale = float(f"{scale:.6g}")  # As the table of currencies has it: the division leaves noise.
        parts = [_money(event)]
        for found in checked.aggregates:
            said_of = _said(found, counted[found.text], scale, as_if_last=as_if_last)
            if said_of is not None and said_of not in parts:
                parts.append(said_of)
        parts += _shape(event, checked.names)
        said = "; ".join(part for part in parts if part)
        summary = f"{rule.explanation} {said[:1].upper()}{said[1:]}." if said else rule.explanation
        return summary[:SUMMARY_CHARS_MAX], values


def _money(event: AmlEvent) -> str:
    transfer = event.transfer
    if transfer.amount is None:
        return ""
    said = f"this one is {transfer.amount:,.2f}{' ' + transfer.currency if transfer.currency else ''}"
    trail = event.trail
    if trail.sender is not None and trail.receiver is not None:
        said += f" from {_name(trail.sender)} to {_name(trail.receiver)}"
    if transfer.counterparty_country is not None:
        said += f", counterparty in {transfer.counterparty_country}"
    moment = dt.datetime.fromtimestamp(event.occurred_at_ms / 1000, dt.UTC)
    return f"{said}, on {moment:%Y-%m-%d}"


def _name(party: str) -> str:
    return party.partition(":")[2]


def _said(found: AggregateExpression, value: Value, scale: float, *, as_if_last: bool) -> str | None:
    """Say one aggregate in words, money in the currency of the event; what counted nothing says nothing.

    A span that ends after the event is left out: readers would count it up to the event.
    """
    pattern = AGGREGATES[found.kind].phrase
    if pattern is None or type(value) not in (int, float) or not value:
        return None
    if as_if_last and "{span}" in pattern:
        return None
    if found.value is not None and found.value.text == "worth" and type(value) in (int, float):
        value = float(value) * scale
    which = f" {condition_in_words(found.condition.text, scale)}" if found.condition is not None else ""
    assert isinstance(value, int | float)
    what = name_in_words(found.value.text) if found.value else ""
    what = one_of(what) if value == 1 else f"different {what}"
    return pattern.format(
        value=value,
        order="other" if as_if_last else "earlier",
        events="event" if value == 1 else "events",
        which=which,
        what=what,
        window=_span(found.window_ms / 1000),
        span=_span(float(value)),
    )


def _span(seconds: float) -> str:
    for size, unit in _UNITS:
        if seconds >= size or size == 1:
            count = seconds / size
            shown = f"{count:.0f}" if count == int(count) else f"{count:.1f}"
            return f"{shown} {unit}{'' if shown == '1' else 's'}"
    return ""


def _counted(number: int, one: str, several: str) -> str:
    """Return a number, and what it counts in the singular or the plural."""
    return f"{number:,} {one if number == 1 else several}"


def _shape(event: AmlEvent, names: Sequence[str]) -> list[str]:
    trail, said = event.trail, []
    if "cycle" in names and trail.old_cycle:
        said.append(f"the circle is {' → '.join(map(_name, (*trail.path, trail.path[0])))}")
    elif "chain" in names and trail.chain > 1:
        said.append(f"hop {trail.chain} of {' → '.join(map(_name, trail.path))}")
    if "gathered" in names and trail.gathered:
        said.append(f"over {_counted(trail.gathered, 'party', 'parties')}")
    if "spread" in names and trail.spread:
        said.append(f"the source has paid {_counted(trail.spread, 'new party', 'new parties')}")
    if "shared" in names and trail.shared:
        said.append(f"{_counted(trail.shared, 'receiver', 'receivers')} in common with another sender")
    if "grid" in names and trail.grid:
        said.append(_counted(trail.grid, "sender shares their receivers", "senders share their receivers"))
    if "idle_days" in names and trail.idle_days is not None:
        said.append(f"silent for {_counted(round(trail.idle_days), 'day', 'days')} before")
    if "awake_hours" in names and trail.awake_hours is not None:
        said.append(f"back for {_span(max(1.0, trail.awake_hours * 3600))} after a month or more of silence")
    transfer = event.transfer
    if not {"customer.income", "customer.income_worth"}.isdisjoint(names) and transfer.income is not None:
        said.append(f"declared are {transfer.income:,.2f} a month")
    if "account.age_days" in names and transfer.age_days is not None:
        said.append(f"the account is {_counted(round(transfer.age_days), 'day', 'days')} old")
    if "invoice_amount" in names and transfer.invoice_amount is not None:
        worth = f", the goods {transfer.market_value:,.2f}" if transfer.market_value is not None else ""
        said.append(f"the invoice says {transfer.invoice_amount:,.2f}{worth}")
    return said
