"""The members that rules can read are those that the manuals name: each is set, and what changes is seen."""

import ast
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from vettance.aml.aml_event import read_aml_event
from vettance.aml.aml_fields import BIRTH_MEMBERS
from vettance.aml.features import aml_schema
from vettance.aml.transfer import SPELLINGS
from vettance.decisions.features import fraud_schema
from vettance.decisions.network import Network
from vettance.errors import Refusal
from vettance.events.event import read_taken_event
from vettance.events.event_spellings import MINOR_SPELLINGS
from vettance.events.event_spellings import SPELLINGS as FRAUD_SPELLINGS
from vettance.rules.schema import Field
from vettance.wire.payload import JSON, encode

SOURCE = Path(__file__).parents[2] / "src" / "vettance"
NAME = re.compile(r"[a-z][A-Za-z0-9_]*", re.ASCII)
NOW_MS = 1_700_000_000_000
#: Where the signals of a browser stand; the manual says so in words.
SIGNALS = {"sdkSignals", "sdk_signals", "signals"}
#: What the interface itself names.
INTERFACE = {"externalId", "email", "metadata", "payload"}
HOLDERS = ("metadata", "customer", "customer.metadata", "signals", "signals.fields", "signals.mouse")
#: One of these changes what is read of any member.
VALUES: tuple[Any, ...] = (
    *(True, False, 7, -7, "7", "failed", "pos", "JPY", "KP", "out", "person", "cash", "2023-11-10T03:00:00Z"),
    *(
        "1950-02-03",
        [100, 140, 90, 160, 120, 210, 75, 130, 180, 95, 150, 310],
        ["fr"],
        {"latitude": 1, "longitude": 2},
    ),
)


def words_of(*places: str) -> set[str]:
    """Every text in the source that could be the name of a member."""
    trees = [ast.parse(file.read_text("utf-8")) for place in places for file in SOURCE.glob(place)]
    texts = (node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and NAME.fullmatch(text)}


def body_with(name: str, holder: str, members: JSON, *, full: bool) -> JSON:
    """An event in which some members stand in one of its objects; a `full` one has what some depend on."""
    signals: JSON = {"fields": {"x": 1}, "mouse": {"x": 1}}
    if full:
        signals |= {"acceptLanguage": "de", "languages": ["de"], "timezoneOffset": 600}
    metadata: JSON = (
        {"ip_country": "DE", "amount": 20_000, "counterparty_id": "x", "goods": "x"} if full else {}
    )
    customer: JSON = {"externalId": "c"}
    match holder:
        case "metadata":
            metadata |= members
        case "customer":
            customer |= members
        case "customer.metadata":
            customer["metadata"] = members
        case "signals":
            signals |= members
        case _:
            signals[holder.partition(".")[2]] |= members
    return {
        "eventName": name, "ip": "8.8.8.8", "customer": customer, "metadata": metadata, "sdkSignals": signals,
    }  # fmt: skip


class Watch:
    """Reads every name of a schema from events, beside an event in which nothing was set."""

    def __init__(self, fields: Sequence[Field], parse: Callable[[JSON], Any], events: Sequence[str]) -> None:
        self.fields = fields
        self._parse = parse
        self._plain = {
            (name, full): self._read(body_with(name, "metadata", {}, full=full))
            for name, full in itertools.product(events, (False, True))
        }

    def _read(self, body: JSON) -> list[Any]:
        event = self._parse(body)
        return [field.read(event) for field in self.fields]

    def changed(self, holder: str, names: Iterable[str]) -> set[str]:
        """Return the names of rules that read something else when these members are set to anything."""
        found: set[str] = set()
        for (event, full), value in itertools.product(self._plain, VALUES):
            try:
                seen = self._read(body_with(event, holder, dict.fromkeys(names, value), full=full))
            except Refusal:
                continue
            before = zip(self.fields, seen, self._plain[event, full], strict=True)
            found |= {field.name for field, now, then in before if now != then}
        return found


def below(holder: str, paths: Iterable[str]) -> set[str]:
    return {path.removeprefix(f"{holder}.") for path in paths if path.rpartition(".")[0] == holder}


def test_fraud_rules_read_the_members_that_are_declared_and_no_other() -> None:
    tables = (*FRAUD_SPELLINGS.values(), *MINOR_SPELLINGS.values())
    spelt = {spelling for spellings in tables for spelling in spellings}
    names = words_of("decisions/*.py", "events/*.py") | spelt
    fields = list(fraud_schema(Network()).fields.values())
    watch = Watch(fields, lambda body: read_taken_event(body, NOW_MS), ("payment", "login", "x"))
    for holder in HOLDERS:
        declared = {name for field in fields for name in below(holder, field.members)}
        assert declared <= names
        assert not watch.changed(holder, names - declared - SIGNALS - INTERFACE - {"fields", "mouse"}), holder
        for name in declared:
            readers = {field.name for field in fields if f"{holder}.{name}" in field.members}
            assert watch.changed(holder, [name]) == readers, f"{holder}.{name}"


def test_aml_rules_read_the_members_of_the_manual_and_no_other() -> None:
    names = words_of("aml/*.py", "decisions/members.py")
    known = {*BIRTH_MEMBERS, *(name for spellings in SPELLINGS.values() for name in spellings)}

    def parse(body: JSON) -> Any:
        return read_aml_event({"externalEventId": "e", **body}, encode(body), NOW_MS)

    watch = Watch(list(aml_schema().fields.values()), parse, ("transfer.received", "loan", "x"))
    assert not watch.changed("metadata", names - known - INTERFACE)
    for name in known:
        assert watch.changed("metadata", [name]), name
