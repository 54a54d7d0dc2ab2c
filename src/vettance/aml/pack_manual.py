"""The manual page of the AML pack, made from the pack itself, so that the two cannot disagree."""

from typing import Final

from vettance.aml.aml_fields import BIRTH_MEMBERS
from vettance.aml.features import aml_schema
from vettance.aml.member_spellings import KNOWN_MEMBERS, SPELLINGS
from vettance.reference.currencies import CURRENCIES_DATE, REPORTING_LIMITS, SCALES
from vettance.reference.jurisdictions import CALL_FOR_ACTION, INCREASED_MONITORING, LISTS_DATE, SANCTIONED
from vettance.rules.packs import load_pack
from vettance.rules.rule import Rule

_INTRODUCTION = """\
# The default AML pack

A tenant's AML events are watched by these rules from the first event on. A rule whose score reaches
**{review}** alerts by itself; weaker ones are hints, and three or more of different reasons alert together
when their scores add up to {medium}. Rules in shadow mode are recorded only. `REVIEW` beside a score means:
it alerts whatever its weight, and is never suppressed. Severities: LOW below {medium}, MEDIUM from it, HIGH
from {high}, CRITICAL from {critical}. Bounds are meant for euros or dollars, and amounts of other currencies
are scaled (see *Currencies*).

Alerts that officers close as mistakes lower the weight of their rule, and keep the same typology of the same
customer quiet for 30 days. An event that repeats an open alert of the last 7 days joins it.

The rules of the family `begun` see half of a shape and alert with severity LOW. When the shape becomes clear
the same alert is raised, and takes its name: many new senders turn out to be smurfing, a chain closes to a
circle. The timeline of the case says so. A LOW alert that was closed as a mistake keeps only LOW ones quiet.

This page is made from the pack. Change the pack, then run `APPROVE=1 pytest tests/aml`.
"""

_MEMBERS: Final = """\
## Members of `metadata`

Under every spelling that is known; the first that is there counts. Each is also read from the legacy
`payload`; what is about the customer (`declaredMonthlyIncome`, `accountOpenedAt`, `segment`) from
`customer.metadata` too. Objects and dots join names: `{"counterparty": {"account": {"iban": "DE-9"}}}` and
`{"counterparty.iban": "DE-9"}` are read as `counterparty_account_iban` and `counterparty_iban`.

Every amount is also read in minor units, where the name says so: with `Minor`, `InMinor`, `MinorUnits`,
`InMinorUnits`, `Cents`, `InCents` or `CentAmount` after its name (`amountCents`, `balance_after_minor`), or
as a member of an object that holds no other number (`{"amount": {"cents": 1250}}`). The currency says how
many decimals they have (ISO 4217): 1250 is 12.50 euros, 1,250 yen, 1.25 dinars of Kuwait. Amounts in units
count first. A `unitAmount` is the price of one where a quantity or an invoice is stated; else it is an amount
in minor units, and in units where it has decimals (49.95).

| Member | Also | Meaning |
|---|---|---|
"""
_BORN: Final = (
    f"| `{BIRTH_MEMBERS[0]}` | {', '.join(f'`{name}`' for name in BIRTH_MEMBERS[1:])} "
    "| The customer's date of birth, `yyyy-mm-dd`; in `customer` and `customer.metadata` as well. |\n"
)


#: The typologies of AMLSim and of the indicators of FATF and Egmont, and the rules that find them.
TYPOLOGY_RULES: Final = (
    (
        "Structuring",
        ("structuring", "structuring-slow", "structuring-cash", "cash-alike", "structuring-begun"),
    ),
    ("Smurfing", ("smurfing", "smurfing-small", "smurfing-begun")),
    ("Fan-in", ("fan-in", "fan-in-begun", "split-transfers", "pays-collector")),
    ("Fan-out", ("fan-out", "fan-out-begun")),
    ("Cycle", ("cycle",)),
    ("Scatter-gather", ("scatter-gather", "scatter-gather-begun")),
    ("Gather-scatter", ("gather-scatter", "gather-scatter-begun")),
    ("Bipartite", ("bipartite", "bipartite-begun")),
    ("Stack (layering)", ("layering-chain", "layering-begun")),
    ("Rapid in and out", ("rapid-in-out", "rapid-begun", "pass-through", "mirror", "mirror-less-commission")),
    ("Funnel account", ("funnel-account", "funnel-begun")),
    ("Dormant account reactivated", ("dormant-large", "dormant-burst", "dormant-unseen")),
    (
        "High-risk jurisdiction",
        (
            "high-risk-large",
            "high-risk-in-parts",
            "high-risk-unlike",
            "high-risk-new-corridor",
            "high-risk-begun",
        ),
    ),
    ("Call for action, embargo", ("call-for-action", "embargo")),
    ("Round amounts", ("round-amounts", "round-begun")),
    ("Velocity burst against the own habit", ("velocity-burst", "volume-jump")),
    ("Many counterparties", ("many-counterparties", "many-counterparties-begun")),
    (
        "Profile mismatch",
        ("turnover-above-income", "turnover-above-business", "turnover-begun", "turnover-unlike-peers"),
    ),
    ("Mule: new account, money in, cash out", ("mule", "mule-begun")),
    ("Trade mispricing", ("mispriced-trade", "mispriced-goods", "paid-beside-invoice")),
    ("Early repayment", ("early-repayment",)),
    ("New payment instrument, then a large transfer", ("new-instrument-large", "new-instrument-begun")),
    (
        "Shared instruments",
        ("shared-instrument", "shared-instrument-begun", "shared-account", "shared-device"),
    ),
)
#: The public rule catalogue of Tazama (https://github.com/tazama-lf, rules 001 to 091), and ours in addition.
CATALOGUE_RULES: Final = (
    ("001", "creditor account younger than a day", ("young-account",)),
    ("002, 016", "convergence on debtor or creditor, 5 or more in 24 hours", ("fan-in",)),
    ("003, 004", "dormancy of three months", ("dormant-large", "dormant-burst", "dormant-unseen")),
    ("006", "similar outgoing amounts, the last 3 within 10 %", ("similar-outgoing",)),
    ("007", "the same descriptions", ("same-description",)),
    ("008", "the same creditor, the last 3", ("same-receiver",)),
    ("010, 011", "volume jump in 24 hours", ("volume-jump",)),
    ("017", "divergence, 5 or more in 8 hours", ("fan-out",)),
    ("018", "more than 1.5 times the largest of three months", ("above-largest",)),
    ("020, 048", "amount jump of creditor or debtor, 3 times", ("amount-jump",)),
    ("021", "similar incoming amounts, 5 or more in 24 hours within 10 %", ("similar-incoming",)),
    ("024, 025", "mirroring: in is out within 24 hours and 10 %", ("mirror",)),
    ("026, 027", "mirroring less a commission of 10 %", ("mirror-less-commission",)),
    ("028", "age", ("age-at-risk",)),
    ("030", "unfamiliar creditor", ("unfamiliar-receiver",)),
    ("044, 045", "first successful payments", ("first-payments",)),
    ("054, 063", "Benford's law, 50 or more amounts, chi-square 15.507", ("benford",)),
    ("074", "speed of travel over an hour", ("impossible-travel",)),
    ("075", "distance from habitual places, 5 km", ("unusual-place",)),
    ("076", "less than 5 minutes apart", ("quick-succession",)),
    ("078", "transaction type", ("risky-type",)),
    ("083, 084", "several accounts", ("several-accounts",)),
    ("090", "upstream divergence, 3 or more", ("upstream-divergence",)),
    ("091", "10,000 or more", ("large-sum",)),
)


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
        _MEMBERS + "".join(f"| `{name}` | {_also(name)} | {doc} |\n" for name, doc in KNOWN_MEMBERS) + _BORN,
        _countries(),
        _currencies(),
        "## Typologies\n\n| Typology | Rules |\n|---|---|\n"
        + "".join(f"| {name} | {_named(rules)} |\n" for name, rules in TYPOLOGY_RULES),
        "## Beside Tazama's public catalogue\n\n"
        "What is weak by itself is a hint here; what floods is held against the customer's own past.\n\n"
        "| Tazama | What it asks | Here |\n|---|---|---|\n"
        + "".join(f"| {number} | {what} | {_named(rules)} |\n" for number, what, rules in CATALOGUE_RULES),
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


def _also(member: str) -> str:
    return ", ".join(f"`{name}`" for name in SPELLINGS[member] if name != member)


def _named(rules: tuple[str, ...]) -> str:
    return ", ".join(f"`{rule}`" for rule in rules)


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


def _currencies() -> str:
    scales = ", ".join(f"{code} {scale:,g}" for code, scale in sorted(SCALES.items()))
    limits = ", ".join(f"{code} {limit:,g}" for code, limit in sorted(REPORTING_LIMITS.items()))
    return (
        "## Currencies\n\n"
        "The bounds of these rules are meant for dollars and euros. `worth` is an amount divided by the "
        "scale of its currency: how many units weigh as one dollar, rounded to two digits (yearly averages "
        "of 2024). Currencies within a factor of two of the dollar, unknown ones, and amounts without a "
        "currency count as they are. `VETTANCE_CURRENCY_SCALES` replaces scales; `*` in it is meant for "
        "everything that has none: `*=100` where cents are sent.\n\n"
        f"Scales: {scales}.\n\n"
        "Sums kept below a threshold of reporting are looked for below 10,000 (by that scale) and below what "
        f"the law of a currency says (as of {CURRENCIES_DATE}; each law is named in "
        f"`reference/currencies.py`): {limits}.\n"
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
