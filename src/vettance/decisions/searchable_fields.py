"""The fields of an event by which decisions are searched: one row for each, in one table.

Columns, filters, searches, exported files, erasure, the names of rules and the links between entities are
made from it. A new field is a row here, an attribute of `Event`, and a column of the table `decision` in a
migration of each engine. Decisions made before that have no value in it.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from vettance.decisions.value_domains import ADDRESS, COUNTRY, EMAIL
from vettance.events.event import Event
from vettance.events.ip_address import canonical_ip
from vettance.rules.domain import ANYTHING, Domain
from vettance.rules.schema import Field, Type, reads


class FieldFilter(NamedTuple):
    """A query parameter of the lists; where fields share one, any of them may have the value."""

    name: str
    doc: str = ""


class SearchableField(NamedTuple):
    """A field that decisions keep in a column of its own. Its texts may name a customer.

    `column` is its name in the table `decision`, in segments and in lists; `attribute` is where `Event` has
    it, `path` where the body of an event has it, `exported_as` its column in files. `term_bit` is its bit in
    `term.fields`: it is stored, so it is never changed, nor given to another field.
    `searched_as` is what the documentation of `search` calls it; without one, `search` does not look into it.
    `normalize` gives a text that is looked for the form in which the field is stored.
    """

    column: str
    attribute: str
    path: str
    exported_as: str
    term_bit: int
    rule_names: tuple[Field, ...]
    filter: FieldFilter | None = None
    searched_as: str | None = None
    normalize: Callable[[str], str] = str


def attribute_field(name: str, path: str, doc: str, domain: Domain = ANYTHING) -> Field:
    """Return a name of rules that is a text attribute of the event."""
    return Field(name, Type.TEXT, operator.attrgetter(path), doc, path, domain)


def normalized_email(text: str) -> str:
    """Return an address as events have it: without blanks around it, in lower case."""
    return text.strip().lower()


def _canonical_address(text: str) -> str:
    return canonical_ip(text.strip()) or text


def _capitals(text: str) -> str:
    return text.strip().upper()


_CUSTOMER: Final = FieldFilter("customer", "An external id or an e-mail address.")
_DEVICE: Final = FieldFilter("device", "An external id or a fingerprint.")

SEARCHABLE_FIELDS: Final = (
    SearchableField(
        column="event_name",
        attribute="name",
        path="eventName",
        exported_as="eventName",
        term_bit=5,
        rule_names=(
            attribute_field("event.name", "name", "The name of the event as the tenant sent it."),
            attribute_field("event_name", "name", "The same as `event.name`."),
        ),
        searched_as="event name",
    ),
    SearchableField(
        column="customer_id",
        attribute="customer_id",
        path="customer.externalId",
        exported_as="customerId",
        term_bit=0,
        rule_names=(
            attribute_field("customer.external_id", "customer_id", "The tenant's own id of the customer."),
        ),
        filter=_CUSTOMER,
        searched_as="customer",
    ),
    SearchableField(
        column="email",
        attribute="email",
        path="customer.email",
        exported_as="customerEmail",
        term_bit=1,
        rule_names=(
            attribute_field("customer.email", "email", "The customer's e-mail address in lower case.", EMAIL),
        ),
        filter=_CUSTOMER,
        searched_as="customer",
        normalize=normalized_email,
    ),
    SearchableField(
        column="device_id",
        attribute="device_id",
        path="device.externalId",
        exported_as="deviceId",
        term_bit=2,
        rule_names=(
            attribute_field("device.external_id", "device_id", "The tenant's own id of the device."),
        ),
        filter=_DEVICE,
        searched_as="device",
    ),
    SearchableField(
        column="fingerprint",
        attribute="fingerprint",
        path="device.fingerprint",
        exported_as="deviceFingerprint",
        term_bit=3,
        rule_names=(attribute_field("device.fingerprint", "fingerprint", "The fingerprint of the device."),),
        filter=_DEVICE,
        searched_as="device",
    ),
    SearchableField(
        column="ip",
        attribute="ip",
        path="ip",
        exported_as="ip",
        term_bit=4,
        rule_names=(
            attribute_field("ip", "ip", "The address the event came from, in canonical form.", ADDRESS),
        ),
        filter=FieldFilter("ip", "In any notation."),
        searched_as="IP",
        normalize=_canonical_address,
    ),
    SearchableField(
        column="country",
        attribute="country",
        path="country",
        exported_as="country",
        term_bit=6,
        rule_names=(
            attribute_field(
                "country",
                "country",
                "The country code of the event in upper case, as long as it was sent.",
                COUNTRY,
            ),
        ),
        filter=FieldFilter("country", "In any letter case."),
        normalize=_capitals,
    ),
    SearchableField(
        column="session_id",
        attribute="session_id",
        path="sessionId",
        exported_as="sessionId",
        term_bit=7,
        rule_names=(
            Field(
                "session_id",
                Type.TEXT,
                reads(lambda event: event.session_id, "metadata.sessionId"),
                "The session: `sessionId`, else `metadata.sessionId`.",
                "session_id",
            ),
        ),
        filter=FieldFilter("session_id"),
    ),
)
#: The bit of reason codes in `term.fields`; they are searched as fields are, but an event has several.
REASONS_BIT: Final = 8
#: The column of reason codes: those of a decision, with blanks between them.
REASONS: Final = "reasons"

#: The columns of the fields, in the order in which rows of the store are read and written.
COLUMNS: Final = tuple(field.column for field in SEARCHABLE_FIELDS)
FIELD_OF_COLUMN: Final = {field.column: field for field in SEARCHABLE_FIELDS}

#: What ties events to each other, and the columns that tell it: the first that has a value.
ENTITIES: Final[Mapping[str, tuple[str, ...]]] = {
    "customer": ("customer_id", "email"),
    "device": ("fingerprint", "device_id"),
    "ip": ("ip",),
    "email": ("email",),
    "session": ("session_id",),
}

#: The texts of the fields of an event, in the order of `COLUMNS`.
Texts = tuple[str | None, ...]
_texts_of: Final = operator.attrgetter(*(field.attribute for field in SEARCHABLE_FIELDS))


def texts_of_event(event: Event) -> Texts:
    """Return the texts of an event, in the order of `COLUMNS`."""
    texts: Texts = _texts_of(event)
    return texts


def by_column(texts: Texts) -> dict[str, Any]:
    """Return texts by the names of their columns."""
    return dict(zip(COLUMNS, texts, strict=True))


def entity_sql(kind: str, table: str = "") -> str:
    """Return the SQL expression of an entity: the first of its columns that has a value."""
    columns = [f"{table}.{column}" if table else column for column in ENTITIES[kind]]
    return f"COALESCE({', '.join(columns)})" if len(columns) > 1 else columns[0]
