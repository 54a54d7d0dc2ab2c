"""The names that fraud rules may use: one row for each, with its type, its reader and its manual line."""

import functools
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final

from vettance.decisions.behaviour import behaviour_fields
from vettance.decisions.browser import SIGNALS, is_automation, signals_of
from vettance.decisions.email import EmailFacts, email_facts
from vettance.decisions.event_fields import metadata_fields, plain_fields
from vettance.decisions.field_readers import (
    Reader,
    account_age_hours,
    account_is_new,
    any_flag,
    in_person,
    member,
    names_read,
    read_code,
    read_flag,
)
from vettance.decisions.network import ADDRESS_KINDS, INVALID, IpFacts, Network
from vettance.decisions.user_agent import user_agent_client, user_agent_family, user_agent_system
from vettance.decisions.value_domains import COUNTRY, EMAIL, MEASURED
from vettance.events.event import Event
from vettance.events.event_spellings import SPELLINGS, once
from vettance.events.kind import OUTCOME_MEMBERS, EventKind, Meaning, meaning_of
from vettance.events.kind import EventOutcome as Ended
from vettance.reference.currencies import Currencies
from vettance.rules.domain import (
    ANYTHING,
    COUNT,
    NOT_NEGATIVE,
    SHARE,
    Domain,
    one_of,
)
from vettance.rules.schema import Field, Namespace, Schema, Type, reads
from vettance.wire.spelt_numbers import read_number
from vettance.wire.suggestions import KnownNames

_meaning: Final = once(meaning_of)
_BY_NAME: Final = ("moves_money", "changes_credentials")
_VERSION: Final = Domain(values=frozenset((4, 6)), low=4, high=6, whole=True)


def _meaning_reader(index: int) -> Reader:
    def read(event: Event) -> Any:
        return _meaning(event)[index]

    # The name and category alone say whether it moves money; how it ended, the members say first.
    name = Meaning._fields[index]
    said = () if name in _BY_NAME else SPELLINGS["payeeId"] if name == "kind" else OUTCOME_MEMBERS
    return reads(read, *(f"metadata.{name}" for name in said))


def _meaning_field(name: str, kind: Type, doc: str, domain: Domain = ANYTHING) -> Field:
    return Field(f"event.{name}", kind, _meaning_reader(Meaning._fields.index(name)), doc, domain=domain)


def _email_reader(index: int) -> Reader:
    def read(event: Event) -> Any:
        if not event.email:
            return None
        facts = email_facts(event.email)
        return facts[index] if facts[0] or index == 0 else None

    return read


def _email_field(name: str, kind: Type, doc: str, domain: Domain = ANYTHING) -> Field:
    return Field(f"email.{name}", kind, _email_reader(EmailFacts._fields.index(name)), doc, domain=domain)


def _user_agent_automation(event: Event) -> bool | None:
    return is_automation(event.user_agent) if event.user_agent else None


_MEANING_FIELDS: Final = (
    _meaning_field(
        "kind",
        Type.TEXT,
        "What kind of thing happened, read from the event's name and category, and from who is paid.",
        one_of(*EventKind),
    ),
    _meaning_field(
        "outcome",
        Type.TEXT,
        "How it ended: `success`, `failure` or `unknown`; never missing.",
        one_of(*Ended),
    ),
    _meaning_field("moves_money", Type.BOOL, "Whether it is a payment, checkout, withdrawal or transfer."),
    _meaning_field("spends", Type.BOOL, "Whether it moves money and is not said to have failed."),
    _meaning_field("payment_failed", Type.BOOL, "Whether it was to move money and failed."),
    _meaning_field("logged_in", Type.BOOL, "Whether it is a login that is not said to have failed."),
    _meaning_field("login_failed", Type.BOOL, "Whether it is a login or a second factor that failed."),
    _meaning_field(
        "changes_credentials",
        Type.BOOL,
        "Whether it changes or resets the password or changes e-mail, phone, address or second factor.",
    ),
    Field(
        "in_person",
        Type.BOOL,
        in_person,
        "Whether the channel is a shop, branch or machine shared by many people.",
    ),
    Field(
        "account.age_hours",
        Type.NUMBER,
        account_age_hours,
        "Age of the account in hours, when the tenant sends it.",
        domain=NOT_NEGATIVE,
    ),
    Field(
        "account.is_new",
        Type.BOOL,
        account_is_new,
        "Whether the tenant says the account is younger than a day.",
    ),
    Field(
        "user_agent.automation",
        Type.BOOL,
        _user_agent_automation,
        "Whether the user agent names a program that drives itself.",
    ),
    Field(
        "user_agent.family",
        Type.TEXT,
        lambda event: user_agent_family(event.user_agent) if event.user_agent else None,
        "The family of the browser, such as `chrome`, or a known program, such as `curl`; else `other`.",
    ),
    Field(
        "user_agent.system",
        Type.TEXT,
        lambda event: user_agent_system(event.user_agent) if event.user_agent else None,
        "The system that the user agent names, such as `windows` or `android`.",
    ),
    Field(
        "user_agent.client",
        Type.TEXT,
        lambda event: user_agent_client(event.user_agent) if event.user_agent else None,
        "Family and system together, such as `chrome on windows`.",
    ),
)


_EMAIL_FIELDS: Final = (
    _email_field("valid", Type.BOOL, "Whether the customer's e-mail has the form of an address."),
    _email_field("domain", Type.TEXT, "The part after the @.", EMAIL),
    _email_field("mailbox", Type.TEXT, "The address without dots and tags that its provider ignores.", EMAIL),
    _email_field(
        "disposable", Type.BOOL, "Whether the domain, or one above it, hands out throw-away mailboxes."
    ),
    _email_field("free", Type.BOOL, "Whether the provider gives a mailbox to anybody."),
    _email_field("plus_tag", Type.BOOL, "Whether the address carries a `+tag`."),
    _email_field(
        "digits_ratio", Type.NUMBER, "Share of digits in the part before the @, from 0 to 1.", SHARE
    ),
    _email_field("local_length", Type.NUMBER, "Length of the part before the @, without a tag.", COUNT),
    _email_field(
        "random_local", Type.BOOL, "Whether the part before the @ looks typed by a machine (a heuristic)."
    ),
)


_IP_COUNTRY: Final = member(read_code, "ipCountry", "ip_country")
_IP_ASN: Final = member(read_number, "ipAsn", "ip_asn")
_IP_HOSTING: Final = member(read_flag, "ipHosting", "ip_hosting", "isHosting", "is_hosting")
_IP_ANONYMOUS: Final = any_flag(
    (
        "ipProxy",
        "ip_proxy",
        "isProxy",
        "is_proxy",
        "isVpn",
        "is_vpn",
        "isTor",
        "is_tor",
        "isAnonymous",
        "is_anonymous",
    )
)


def _ip_fields(network: Network) -> tuple[Field, ...]:
    """What is known of the address; where no file says it, what the product itself sends is taken."""
    facts = network.facts

    def fact(
        name: str,
        kind: Type,
        index: int,
        doc: str,
        sent: Reader | None = None,
        domain: Domain = ANYTHING,
    ) -> Field:
        def read(event: Event) -> Any:
            found = facts(event.ip)[index] if event.ip else None
            return sent(event) if found is None and sent is not None else found

        reads(read, *getattr(sent, "members", ()))
        return Field(f"ip.{name}", kind, read, doc, domain=domain)

    def whether(kind: str, doc: str) -> Field:
        def read(event: Event) -> bool | None:
            found = facts(event.ip) if event.ip else INVALID
            return found.kind == kind if found.valid else None

        return Field(f"ip.{kind}", Type.BOOL, read, doc)

    valid, version, kind, country, asn, organisation, hosting, prefix = range(len(IpFacts._fields))
    return (
        fact("valid", Type.BOOL, valid, "Whether `ip` is an address at all."),
        fact(
            "prefix",
            Type.TEXT,
            prefix,
            "The network around it: the first 24 bits of an IPv4 address, 48 of an IPv6 one.",
        ),
        fact("version", Type.NUMBER, version, "4 or 6.", domain=_VERSION),
        fact(
            "kind",
            Type.TEXT,
            kind,
            f"{', '.join(ADDRESS_KINDS[:-1])} or {ADDRESS_KINDS[-1]}.",
            domain=one_of(*ADDRESS_KINDS),
        ),
        whether("public", "Whether the address is one of the public Internet."),
        whether("private", "Whether the address is one of a private network."),
        whether("loopback", "Whether the address is the machine itself."),
        whether("link_local", "Whether the address reaches one link only."),
        whether("multicast", "Whether the address is one of a group."),
        whether("documentation", "Whether the address exists in examples only."),
        whether("reserved", "Whether the address is reserved and routed nowhere."),
        fact(
            "country",
            Type.TEXT,
            country,
            "Its country, by the file or `metadata.ipCountry`.",
            _IP_COUNTRY,
            COUNTRY,
        ),
        fact("asn", Type.NUMBER, asn, "Its network's number, by the file or `metadata.ipAsn`.", _IP_ASN),
        fact("organisation", Type.TEXT, organisation, "Who runs its network, by the file."),
        fact(
            "hosting",
            Type.BOOL,
            hosting,
            "Whether its network rents out servers, by the file or `metadata.ipHosting`.",
            _IP_HOSTING,
        ),
        Field(
            "ip.anonymous",
            Type.BOOL,
            _IP_ANONYMOUS,
            "Whether it hides its user, by `metadata.isProxy`, `isVpn`, `isTor` or `isAnonymous`.",
        ),
    )


#: The signals that may be negative.
_SIGNED: Final = ("timezone_offset",)
_SIGNAL_TYPES: Final = {"bool": Type.BOOL, "number": Type.NUMBER}
_SIGNAL_FIELDS: Final = tuple(
    Field(f"signals.{name}", _SIGNAL_TYPES[kind], read, doc, domain=ANYTHING if name in _SIGNED else MEASURED)
    for name, kind, read, doc in SIGNALS
)


def _inner_metadata(holder: str) -> Callable[[Event], Mapping[str, Any]]:
    def read(event: Event) -> Mapping[str, Any]:
        found = getattr(event, holder).get("metadata")
        return found if type(found) is dict else {}

    return read


_NAMESPACES: Final = (
    Namespace("metadata", attrgetter("metadata"), "Everything sent in `metadata`.", "metadata"),
    Namespace(
        "custom_fields",
        attrgetter("custom_fields"),
        "Everything in `custom_fields`.",
        "custom_fields",
    ),
    Namespace("payload", attrgetter("payload"), "Everything sent in `payload`.", "payload"),
    Namespace(
        "extra",
        attrgetter("extra"),
        "Members of the event that the interface does not name.",
        "extra",
    ),
    Namespace("customer.metadata", _inner_metadata("customer"), "Everything sent in `customer.metadata`."),
    Namespace("device.metadata", _inner_metadata("device"), "Everything sent in `device.metadata`."),
    Namespace("signals", signals_of, "Everything the browser's signals hold."),
)


#: What the tenant's model says of the event. It is put in when the event is decided.
_MODEL_FIELDS: Final = (
    Field(
        "model.score",
        Type.NUMBER,
        lambda _event: None,
        "The score of the tenant's model, 0 to 100; unknown without one.",
        domain=Domain(low=0, high=100),
    ),
    Field(
        "model.probability",
        Type.NUMBER,
        lambda _event: None,
        "The probability of fraud by the tenant's model; unknown without one.",
        domain=SHARE,
    ),
)


def fraud_schema(network: Network | None = None, scales: Mapping[str, float] | None = None) -> Schema:
    """Return the names of fraud rules. `network` knows addresses; without one, only their kinds are known.

    `scales` replace those of the table of currencies.
    """
    ip_fields = _ip_fields(network or Network())
    country_of = next(field.read for field in ip_fields if field.name == "ip.country")
    return Schema(
        (
            *plain_fields(),
            *_MEANING_FIELDS,
            *metadata_fields(Currencies(scales)),
            *_EMAIL_FIELDS,
            *ip_fields,
            *_SIGNAL_FIELDS,
            *behaviour_fields(country_of),
            *_MODEL_FIELDS,
        ),
        _NAMESPACES,
        labelled=True,
    )


@functools.cache
def known_names() -> KnownNames:
    """Return every name with a meaning within the members of a fraud event, by where it is read."""
    fraud_schema()  # Making the schema makes every reader.
    return names_read()
