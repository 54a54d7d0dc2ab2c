"""The manual page of a pack, made from the pack itself, so that the two cannot disagree."""

import json
import re
from collections.abc import Iterable
from importlib import resources
from typing import Any, Final

from vettance.rules.language import check
from vettance.rules.packs import load_pack
from vettance.rules.rule import Rule
from vettance.rules.schema import Schema

#: What `python bench pack_shares --write` measured; read by nothing but the page.
SHARES_FILE: Final = "fraud_shares.json"
#: Names of amounts in minor units, which the page describes and does not list.
_MINOR: Final = re.compile(r"(?:minor|cent)_?(?:units?|amount|s)?$|unit_?amount$", re.IGNORECASE)

_INTRODUCTION = """\
# The default fraud pack

A new tenant starts with these rules. They know nothing of a tenant's own event names: names and members
are first read as one of the kinds below, so the pack works with any taxonomy. Every rule brings tests of its
own, in which it fires and in which it does not; they run whenever the pack is saved.

The score of an event is the sum of the scores of the active rules that fire, at most 100. From {review}
on the event is held for **review**, from {block} on it is **blocked**. Rules in shadow mode are recorded
and never count. The bounds in some rules (5, 50, 100, 1000) are meant for euros or dollars: rules compare
`worth`, the amount by the [scale of its currency](aml-pack.md#currencies).

This page is made from the pack. Change the pack, then run `APPROVE=1 pytest tests/packs`.
"""

_MEASURED = """\
## How much is held

Measured on generated traffic with seeds that nobody tuned on (`python bench pack_shares`: seeds {first} to
{last}, {customers} customers, {days} days of which the first third only fills the past), once with device ids
and once without. Takeovers are counted at the login. The last column of the tables below says for what share
of ordinary events each rule fires, alone or not, with device ids.

| Share that is held | with device ids | without |
|---|---|---|
{rows}
Ordinary logins have {scores} different scores with device ids and {others} without.

Your own customers are others. `vettance rules calibrate --hold 1%` says what each rule holds of your own
events, and [proposes numbers](rules.md#a-share-of-your-own-traffic) by which all together hold a share.
"""

_KINDS = """\
## Kinds of events

`event.kind` is one of {kinds}.
It is read from the words of the event's name, whatever their case and separators (`user.loginFailed` and
`USER_LOGIN_FAILED` are the same), else from its category. `event.outcome` is `success`, `failure` or
`unknown`: what members such as `outcome`, `result`, `status`, `success` or `declineCode` say, else what
the name says. A payment to an account that the customer names (`payeeId`, `beneficiary.iban` …), with
neither a card nor a merchant, is a `transfer`.
"""

_NAMES = """\
## Names

Every name that a fraud rule may use. A name is missing when the event does not say; see
[the rule language](rules.md) for what that means. Besides these, everything in the free-form objects can be
read by its path.
"""

_MEMBERS = """\
## Members that the rules read

What the rules of this pack find in the free-form objects of an event, under every spelling that they know;
the first that is there counts. What stands in `metadata` is also found in `payload`, where that is sent
instead. Objects and dots join names: `{"cart": {"total": 5}}` is read as `cart_total`. An object for the
event itself (`payment`, `transaction`, `order`, `checkout`, `purchase`, `charge`, `transfer`, `withdrawal`,
`payout`, `details`, `data`) adds nothing to a name: `{"payment": {"card": {"fingerprint": "k"}}}` is read as
`card_fingerprint`, and a `status` in it says how the event ended. Case and hyphens do not count.
Amounts in minor units are read where the name says so: the name of an amount, or `total`, `price` or `value`,
with `Minor`, `InMinor`, `MinorUnits`, `InMinorUnits`, `Cents`, `InCents` or `CentAmount` after it
(`amountCents`, `order_total_minor`), `minorAmount`, `centAmount`, a whole number as `unitAmount` (one with
decimals, as 49.95, is in units), and such a member of an object that holds no other number
(`{"amount": {"cents": 1250}}`). The currency says how many decimals they have
(ISO 4217): 1250 is 12.50 euros, 1,250 yen, 1.25 dinars of Kuwait. Amounts in units count first.
`signals` is the object `sdkSignals`, `sdk_signals` or `signals` of the event, of `metadata` or of
`payload`; the browser SDK fills it. Members of the interface itself (`ip`, `customer.externalId` and so on)
are not listed.

| Name in rules | Type | Read from | Rules |
|---|---|---|---|
"""


def pack_page(name: str, schema: Schema, kinds: Iterable[str]) -> str:
    """Return the manual page of a pack in Markdown: kinds of events, actions, rules by family, names.

    Raises `PackUnknown`.
    """
    pack = load_pack(name)
    thresholds = pack.thresholds
    parts = [_INTRODUCTION.format(review=thresholds.review, block=thresholds.block)]
    parts.append(_measured())
    parts.append(_KINDS.format(kinds=", ".join(f"`{kind}`" for kind in kinds)))
    parts.append("## Actions\n\n| Action | What to do |\n|---|---|\n" + _rows(pack.actions.items()))
    for family in dict.fromkeys(rule.family for rule in pack.rules):
        rules = [rule for rule in pack.rules if rule.family == family]
        parts.append(f"## Family `{family}` ({len(rules)} rules)\n\n" + _table(rules))
    parts.append(_MEMBERS + _members(pack.rules, schema))
    parts.append(_NAMES + "\n| Name | Type | Meaning |\n|---|---|---|\n" + _fields(schema))
    parts.append("| Object | Meaning |\n|---|---|\n" + _namespaces(schema))
    return "\n".join(parts)


def _shares() -> Any:
    return json.loads(resources.files(__package__).joinpath(SHARES_FILE).read_text("utf-8"))


def _measured() -> str:
    """Return the section of what the pack holds, by the figures that the benchmark kept."""
    kept = _shares()
    held, other = (kept[name]["held"] for name in ("with", "without"))
    named = [row for row in held if row.startswith(("ordinary", "other"))]
    named += sorted(row for row in held if row not in named)
    return _MEASURED.format(
        first=kept["seeds"][0],
        last=kept["seeds"][1],
        customers=kept["customers"],
        days=kept["days"],
        rows="".join(
            f"| {row.replace('_', ' ')} | {held[row][0]:.1%} | {other.get(row, [0.0])[0]:.1%} |\n"
            for row in sorted(named, key=lambda row: not row.startswith("o"))
        ),
        scores=kept["with"]["scores"],
        others=kept["without"]["scores"],
    )


def _rows(rows: Iterable[tuple[str, str]]) -> str:
    return "".join(f"| `{first}` | {second} |\n" for first, second in rows)


def _table(rules: Iterable[Rule]) -> str:
    head = "| Rule | Fires when | Why | Score | Reason | Action | Mode | Fires for |\n"
    shares = _shares()["with"]["rules"]
    return f"{head}|{'---|' * 8}\n" + "".join(_line(rule, shares[rule.id][0]) for rule in rules)


def _line(rule: Rule, share: float) -> str:
    when = " ".join(rule.when.split()).replace("|", "\\|")
    return (
        f"| **{rule.name}** `{rule.id}` | `{when}` | {rule.explanation} | {rule.score} | `{rule.reason}` "
        f"| `{rule.action}` | {rule.mode} | {share:.2%} |\n"
    )


def _members(rules: Iterable[Rule], schema: Schema) -> str:
    """Return a row for each name that rules use and that is read from a member of a free-form object."""
    users: dict[str, list[str]] = {}
    for rule in rules:
        for name in check(rule.when, schema).names:
            users.setdefault(name, []).append(rule.id)
    rows = []
    for name, using in sorted(users.items()):
        field = schema.fields.get(name)
        paths = (name,) if field is None else field.members
        if paths:
            kind = "any" if field is None else field.type.value
            shown = ", ".join(f"`{rule}`" for rule in using)
            rows.append(f"| `{name}` | {kind} | {_spellings(paths)} | {shown} |\n")
    return "".join(rows)


def _spellings(paths: Iterable[str]) -> str:
    """Write paths by the object that holds them: `metadata`: `cardHash`, `card_hash`."""
    holders: dict[str, list[str]] = {}
    for path in paths:
        holder, _, member = path.rpartition(".")
        if _MINOR.search(member):
            continue
        holders.setdefault(holder, []).append(member)
    return "; ".join(
        f"`{holder}`: " + ", ".join(f"`{member}`" for member in members)
        for holder, members in holders.items()
    )


def _fields(schema: Schema) -> str:
    fields = schema.fields.values()
    return "".join(f"| `{field.name}` | {field.type.value} | {field.doc} |\n" for field in fields)


def _namespaces(schema: Schema) -> str:
    return _rows((f"{namespace.name}.*", namespace.doc) for namespace in schema.namespaces.values())
