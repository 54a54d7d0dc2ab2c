"""What the doctor looks at in the newest events: missing parts, amounts and members that nothing reads."""

import functools
from collections.abc import Iterator, Sequence
from typing import Final

from vettance.aml.coverage import event_coverage
from vettance.aml.coverage.sql import select_newest_sent as select_newest_aml
from vettance.aml.features import aml_schema
from vettance.aml.sql import RULE_SETS
from vettance.commands import counted_word
from vettance.decisions.active_rulesets import RuleCache
from vettance.decisions.coverage import BODY_BYTES_MAX, NEWEST, Coverage, NewestEvent, cover
from vettance.decisions.load_ruleset import PACK_VERSION
from vettance.decisions.sql import select_newest_sent
from vettance.ops.doctor.check import DoctorContext, DoctorFinding, ok, warning
from vettance.ops.doctor.store_checks import ask
from vettance.quality.quality_parts import QualityRules
from vettance.rules.packs import load_pack_text
from vettance.rules.rule_reads import ConditionReader
from vettance.rules.ruleset import RuleSetRefused, compile_document
from vettance.rules.schema import Schema
from vettance.tenants.sql import select_tenants

#: Each takes some milliseconds.
_TENANTS_MAX: Final = 200
#: Fewer events tell of no habit.
_EVENTS_MIN: Final = 20
#: A part that more than this share of events lacks is worth a word.
_WITHOUT_MAX: Final = 0.2
_UNKNOWN_MIN: Final = 0.05
_SHOWN_MAX: Final = 3
#: What the parts of transactions are called.
_PARTS: Final = {
    "amount": "an amount",
    "currency": "a currency",
    "counterparty": "a counterparty",
    "counterpartyCountry": "the country of the counterparty",
}


def check_sent(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Look at what the newest events of each tenant lack, and at what they carry that nothing reads."""
    rows = ask(patient, select_tenants()) or ()
    looked = 0
    for tenant, name, *_ in rows[:_TENANTS_MAX]:
        newest = ask(patient, select_newest_sent(tenant, NEWEST, BODY_BYTES_MAX)) or ()
        covered = cover(NewestEvent.of(row) for row in newest)
        if covered.events < _EVENTS_MIN:
            continue
        looked += 1
        for told, mend in _coverage_messages(covered):
            yield warning("events", f"{name} ({tenant}): {told}", mend)
    if looked:
        yield ok("events", f"looked at the newest {NEWEST} of {counted_word(looked, 'tenant')}")


def check_sent_aml(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """The same of AML events, and at amounts that cannot be read, and rules that this keeps from firing."""
    schema = aml_schema(patient.settings.jurisdictions)
    cache = RuleCache(functools.partial(compile_document, schema=schema))
    rules_of = QualityRules(RULE_SETS, cache, ConditionReader(schema))
    rows = ask(patient, select_tenants()) or ()
    looked = 0
    for tenant, name, *_ in rows[:_TENANTS_MAX]:
        asked = select_newest_aml(tenant, event_coverage.NEWEST, event_coverage.BODY_BYTES_MAX)
        newest = [event_coverage.NewestAmlEvent(*row) for row in ask(patient, asked) or ()]
        covered = event_coverage.cover(newest)
        if covered.events < _EVENTS_MIN:
            continue
        looked += 1
        for told, mend in _aml_messages(covered):
            yield warning("AML events", f"{name} ({tenant}): {told}", mend)
        silent = _silent_rules(patient, tenant, newest, rules_of, schema)
        if silent:
            yield ok(
                "AML events",
                f"{name} ({tenant}): none of the newest {covered.events} events has what these rules need: "
                f"{'; '.join(silent[:_SHOWN_MAX])}{_more(len(silent) - _SHOWN_MAX)}",
            )
    if looked:
        yield ok(
            "AML events", f"looked at the newest {event_coverage.NEWEST} of {counted_word(looked, 'tenant')}"
        )


def _silent_rules(
    patient: DoctorContext,
    tenant: str,
    newest: Sequence[event_coverage.NewestAmlEvent],
    rules: QualityRules,
    schema: Schema,
) -> list[str]:
    """Name the rules in force that none of the events can make fire, each with the values it needs."""
    rows = ask(patient, rules.sets.select_active(tenant))
    version, document = rows[0][:2] if rows else (PACK_VERSION, load_pack_text(rules.sets.pack))
    try:
        active = rules.cache.active(version, document)
    except RuleSetRefused:
        return []  # The check of rules tells.
    silent = event_coverage.silent_rules(newest, active, rules.conditions, schema)
    return [f"{rule.id} ({', '.join(names)})" for rule, names in silent]


def _more(count: int) -> str:
    return f"; and {count} more (GET /api/v1/aml/coverage)" if count > 0 else ""


def _aml_messages(covered: event_coverage.AmlCoverage) -> Iterator[tuple[str, str]]:
    unreadable = [f"{name} (in {count})" for name, count in covered.unreadable.most_common(_SHOWN_MAX)]
    if unreadable:
        yield (
            f"of the newest {covered.events} events amounts cannot be read: {', '.join(unreadable)}",
            'Send a number or a decimal text such as "9500.00", with the currency in a member of its own.',
        )
    lacking = [
        f"{count / covered.transactions:.0%} without {_PARTS[part]}"
        for part, count in covered.without.items()
        if count > _WITHOUT_MAX * covered.transactions
    ]
    if lacking:
        yield (
            f"of the newest {covered.transactions} transactions {', '.join(lacking)}",
            "Send them where you have them; rules that look at what is missing never fire (docs/aml.md).",
        )
    yield from _unread(
        covered.events, [(*one, count) for one, count in covered.unknown.most_common(_SHOWN_MAX)]
    )


def _unread(events: int, members: Sequence[tuple[str, str | None, int]]) -> Iterator[tuple[str, str]]:
    """Tell of members that nothing reads (name, what was probably meant, events), the most frequent first."""
    often = [one for one in members if one[2] > _UNKNOWN_MIN * events]
    if often:
        said = [f"{name}{f' (did you mean {nearest}?)' if nearest else ''}" for name, nearest, _ in often]
        yield (
            f"nothing reads {', '.join(said[:_SHOWN_MAX])} (in {often[0][2]} of the newest {events} events)",
            "Rename what is misspelt. What your own rules read under `extra` is fine.",
        )


def _coverage_messages(covered: Coverage) -> Iterator[tuple[str, str]]:
    lacking = [
        f"{share:.0%} without {part}" for part, share in covered.without.items() if share > _WITHOUT_MAX
    ]
    if lacking:
        yield (
            f"of the newest {covered.events} events {', '.join(lacking)}",
            "Send them where you have them; rules that look at what is missing never fire (docs/rules.md).",
        )
    yield from _unread(
        covered.events, [(one.name, one.nearest, one.events) for one in covered.unknown_members]
    )
