"""Figures: what a rule counted, in plain words for the summary of an alert, and exactly for its record."""

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from vettance.aml.aml_event import AmlEvent
from vettance.aml.condition_words import name_in_words, one_of
from vettance.reference.currencies import Currencies
from vettance.rules.compiler import CompiledRules
from vettance.rules.expression import AggregateExpression
from vettance.rules.language import CheckedText, check
from vettance.rules.rule import Rule
from vettance.rules.schema import Schema
from vettance.velocity.port import Value

SUMMARY_CHARS_MAX: Final = 1_000

#: What an officer wants to read of what was counted; names whose numbers are scaled; ways of money.
_TELLING: Final = frozenset({"count", "distinct", "sum", "avg"})
_IN_UNITS: Final = frozenset({"worth", "unit_price"})
_WAYS: Final = (("incoming", " in"), ("outgoing", " out"))
_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


class Money(NamedTuple):
    """How sums of units are said in the currency of an event: how many of it make one, and its code."""

    scale: float
    currency: str | None

    def said(self, units: float) -> str:
        """Write a sum in the currency of the event."""
        return f"{units * self.scale:,.2f}{f' {self.currency}' if self.currency else ''}"


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

    def __init__(self, schema: Schema, currencies: Currencies) -> None:
        """`currencies` must be those by which the names of `schema` are read."""
        self._schema = schema
        self._currencies = currencies
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
        currency = event.transfer.currency
        money = Money(self._currencies.scale(currency), currency)
        counts = _counts(checked.aggregates, counted, money, as_if_last=as_if_last)
        parts = [_money(event), *_shape(event, checked.names), *counts]
        if "unit_price" in checked.names and known.get("unit_price") is not None:
            parts.insert(1, f"one costs {money.said(known['unit_price'])}")
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


def _counts(
    aggregates: Sequence[AggregateExpression],
    counted: Mapping[str, Value],
    money: Money,
    *,
    as_if_last: bool,
) -> list[str]:
    """Say what was counted, each thing once: over the shortest of the spans that the rule asks it of.

    What a customer is used to, the extremes and the conditions are left out: `figures` have all of them, and
    the explanation of the rule says which events are meant.
    """
    shortest: dict[tuple[str, str], tuple[int, str]] = {}
    for found in aggregates:
        value = counted[found.text]
        if type(value) not in (int, float) or not value or found.kind not in _TELLING:
            continue
        assert isinstance(value, int | float)
        condition = found.condition.text if found.condition is not None else ""
        way = next((said for word, said in _WAYS if re.search(rf"\b{word}\b", condition)), "")
        named = found.value.text if found.value is not None else ""
        said = _said(found.kind, named, value, way, money)
        if said is not None:
            key = named if found.kind == "distinct" else found.kind, way
            if key not in shortest or found.window_ms < shortest[key][0]:
                shortest[key] = found.window_ms, said
    if any(kind not in _TELLING for kind, _ in shortest):
        # Who was counted says more than how often.
        shortest = {key: one for key, one in shortest.items() if key[0] != "count"}
    spans: dict[int, list[str]] = {}
    for window_ms, said in shortest.values():
        spans.setdefault(window_ms, []).append(said)
    # Readers would count a span that ends after the event up to the event.
    span = "within the {}: {}" if as_if_last else "in the {} before: {}"
    return [
        span.format(_span(window_ms / 1000).removeprefix("1 "), ", ".join(found))
        for window_ms, found in sorted(spans.items())
    ]


def _said(kind: str, named: str, value: float, way: str, money: Money) -> str | None:
    """Say one count, sum or mean; None of what has no plain name."""
    if kind == "count":
        return f"{value:,.0f} such event{'' if value == 1 else 's'}{way}"
    if named and not named.replace(".", "").replace("_", "").isalnum():
        return None
    if kind == "distinct":
        what = name_in_words(named)
        return f"{value:,.0f} {one_of(what) if value == 1 else what}"
    sum_of = money.said(value) if named in _IN_UNITS else f"{value:,.2f}"
    return f"{sum_of}{way}" if kind == "sum" else f"{sum_of} on average{way}"


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
    if not {"invoice_amount", "invoice_worth"}.isdisjoint(names) and transfer.invoice_amount is not None:
        worth = f", the goods {transfer.market_value:,.2f}" if transfer.market_value is not None else ""
        said.append(f"the invoice says {transfer.invoice_amount:,.2f}{worth}")
    return said
