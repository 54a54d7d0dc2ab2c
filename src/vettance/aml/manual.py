"""The manual page of the AML pack, made from the pack itself, so that the two cannot disagree."""

from vettance.aml.features import aml_schema
from vettance.aml.jurisdiction import CALL_FOR_ACTION, INCREASED_MONITORING, LISTS_DATE, SANCTIONED
from vettance.aml.transfer import KNOWN_MEMBERS
from vettance.rules.packs import load_pack
from vettance.rules.rule import Rule

_INTRODUCTION = """\
# The default AML pack

A tenant's AML events are watched by these rules from the first event on. A rule whose score reaches
**{review}** alerts by itself; weaker ones are hints, and three or more of different reasons alert together
when their scores add up to it. Rules in shadow mode are recorded only. `REVIEW` beside a score means: it
alerts whatever its weight, and is never suppressed. Severities: MEDIUM from {medium}, HIGH from {high},
CRITICAL from {critical}. Amounts are in whatever unit the tenant sends; the bounds are meant for euros or
dollars.

Alerts that officers close as mistakes lower the weight of their rule, and keep the same typology of the same
customer quiet for 30 days. An event that repeats an open alert of the last 7 days joins it.

This page is made from the pack. Change the pack, then run `APPROVE=1 pytest tests/aml`.
"""


def aml_pack_page() -> str:
    """Return the manual page of the AML pack in Markdown: members, countries, rules by family, names."""
    pack = load_pack("aml")
    parts = [
        _INTRODUCTION.format(
            review=pack.thresholds.review,
            medium=pack.levels.medium,
            high=pack.levels.high,
            critical=pack.levels.critical,
        ),
        "## Members of `metadata`\n\nEach is also read in snake_case.\n\n| Member | Meaning |\n|---|---|\n"
        + "".join(f"| `{name}` | {doc} |\n" for name, doc in KNOWN_MEMBERS),
        _countries(),
        "## Actions\n\n| Action | What to do |\n|---|---|\n"
        + "".join(f"| `{action}` | {doc} |\n" for action, doc in pack.actions.items()),
    ]
    for family in dict.fromkeys(rule.family for rule in pack.rules):
        rules = [rule for rule in pack.rules if rule.family == family]
        parts.append(f"## Family `{family}` ({len(rules)} rules)\n\n{_table(rules)}")
    fields = aml_schema().fields.values()
    parts.append(
        "## Names\n\n| Name | Type | Meaning |\n|---|---|---|\n"
        + "".join(f"| `{field.name}` | {field.type.value} | {field.doc} |\n" for field in fields)
    )
    return "\n".join(parts)


def _countries() -> str:
    rows = (
        ("Call for action", "VETTANCE_AML_CALL_FOR_ACTION", CALL_FOR_ACTION, f"FATF, {LISTS_DATE}"),
        ("High risk", "VETTANCE_AML_HIGH_RISK", INCREASED_MONITORING, f"FATF, {LISTS_DATE}"),
        ("Embargo", "VETTANCE_AML_SANCTIONED", SANCTIONED, "OFAC, 31 CFR 510, 515, 560, 2025-10"),
    )
    head = "## Jurisdictions\n\n| List | Setting | Default | Source, date |\n|---|---|---|---|\n"
    return head + "".join(
        f"| {name} | `{setting}` | {', '.join(sorted(codes))} | {source} |\n"
        for name, setting, codes, source in rows
    )


def _table(rules: list[Rule]) -> str:
    head = "| Rule | Fires when | Why | Score | Typology | Action | Mode |\n|---|---|---|---|---|---|---|\n"
    return head + "".join(_line(rule) for rule in rules)


def _line(rule: Rule) -> str:
    when = " ".join(rule.when.split()).replace("|", "\\|")
    score = f"{rule.score}, `{rule.outcome}`" if rule.outcome else str(rule.score)
    return (
        f"| **{rule.name}** `{rule.id}` | `{when}` | {rule.explanation} | {score} | `{rule.reason}` "
        f"| `{rule.action}` | {rule.mode} |\n"
    )
