"""The request: whom a tenant asks about, parsed once at the door."""

import datetime as dt
import re
from typing import Annotated, ClassVar, Final

import msgspec

from vettance.reference.jurisdictions import iso_code
from vettance.watchlists.entity import BirthDate, Document, EntityType, document_kind
from vettance.watchlists.match import Subject
from vettance.watchlists.subject_screening import Profile
from vettance.wire.body import ALL_422, how, one_of, read_body
from vettance.wire.payload import JSON, Faults, Wire, encode, put_first

#: As long as any text of a body may be. The longest name on any list that is read has 350 characters.
NAME_CHARS_MAX: Final = 1_024
#: Each alias is searched like a name of its own, so their number bounds the time of a screening.
ALIASES_MAX: Final = 50
#: All aliases together: nothing stops a search that has begun, so the longest must end within the deadline.
ALIASES_CHARS_MAX: Final = 4_096
DOCUMENTS_MAX: Final = 50
DOCUMENT_CHARS_MAX: Final = 1_024

_TYPES: Final = {
    kind.value: kind
    for kind in (EntityType.INDIVIDUAL, EntityType.ORGANIZATION, EntityType.VESSEL, EntityType.AIRCRAFT)
}
_FIRST_ZONE_S: Final = 14 * 3600
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _name(text: str) -> str | None:
    """Refuse a name without letters and digits: it would match nobody, and clear whom it is meant for."""
    return text if any(letter.isalnum() for letter in text) else None


def _date(text: str) -> str | None:
    if not _DATE.fullmatch(text):
        return None
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return None
    return text


def _is_future(date: str, now_ms: int) -> bool:
    """Tell whether a day has begun nowhere yet: the first zone is fourteen hours ahead of UTC."""
    return date > dt.datetime.fromtimestamp(now_ms / 1000 + _FIRST_ZONE_S, dt.UTC).date().isoformat()


def _country(text: str) -> str | None:
    return iso_code(text) if len(text) == 2 else None


_TOO_MANY_CHARS: Final = f"must not hold more than {ALIASES_CHARS_MAX} characters in all"


def _within_bounds(aliases: list[str]) -> list[str] | None:
    return aliases if sum(map(len, aliases)) <= ALIASES_CHARS_MAX else None


_Name = Annotated[
    str,
    msgspec.Meta(min_length=1, max_length=NAME_CHARS_MAX),
    how(check=_name, message="must hold letters or digits"),
    ALL_422,
]
_DocumentText = Annotated[str, msgspec.Meta(min_length=1, max_length=DOCUMENT_CHARS_MAX), ALL_422]


class DocumentBody(Wire, frozen=True):
    """An identifier. `type` is free text: `passport`, `tax`, `imo`, `lei`, `tail` and the like decide."""

    type: _DocumentText
    value: _DocumentText


class ScreenBody(Wire, frozen=True):
    """Whom to screen. A `tenantId` is ignored, as is every member that is not named here."""

    EXAMPLE: ClassVar[JSON] = {
        "inputName": "Sergei Lavrov",
        "externalId": "customer-17",
        "entityType": "INDIVIDUAL",
        "inputDob": "1950-03-21",
        "inputNationality": "RU",
    }

    input_name: Annotated[_Name, msgspec.Meta(description="Full legal name, in any script.")]
    external_id: Annotated[
        str, msgspec.Meta(min_length=1, max_length=1024, description="The caller's id of the entity.")
    ]
    entity_type: Annotated[
        str | None,
        msgspec.Meta(description="`INDIVIDUAL`, `ORGANIZATION`, `VESSEL` or `AIRCRAFT`."),
        one_of(_TYPES),
        ALL_422,
    ] = None
    input_dob: Annotated[
        str | None,
        msgspec.Meta(description="ISO 8601 date, `yyyy-mm-dd`."),
        how(parse=_date, message="must be a date such as 1969-10-11"),
        ALL_422,
    ] = None
    input_nationality: Annotated[
        str | None,
        msgspec.Meta(description="ISO 3166-1 alpha-2."),
        how(parse=_country, message="must be an ISO 3166-1 alpha-2 code"),
        ALL_422,
    ] = None
    input_aliases: (
        Annotated[
            list[_Name],
            msgspec.Meta(max_length=ALIASES_MAX),
            how(check=_within_bounds, message=_TOO_MANY_CHARS),
            ALL_422,
        ]
        | None
    ) = None
    input_id_documents: (
        Annotated[list[Annotated[DocumentBody, ALL_422]], msgspec.Meta(max_length=DOCUMENTS_MAX), ALL_422]
        | None
    ) = None
    sensitivity_profile: Annotated[
        Profile | None, msgspec.Meta(description="The tenant's own when left out."), ALL_422
    ] = None


class ScreenRequest(msgspec.Struct, frozen=True):
    """A request as it is worked on; a `profile` of None is the tenant's own.

    `external_id` is whose case an alert goes into. `role` is empty where the subject is that very customer,
    and names the other party otherwise: what is found of a counterparty is never held against the customer's
    own name, nor forgiven with it. `trigger` says what made the screening, where that was no request.
    """

    external_id: str
    subject: Subject
    profile: Profile | None
    role: str = ""
    trigger: str | None = None


def read_screen_request(body: JSON, now_ms: int | None = None) -> ScreenRequest:
    """Make a request of a parsed body. Raises `Unprocessable` (422) naming every fault by its field path.

    Nobody is born after `now_ms` (Unix ms): such a date would speak against every match, and clear whom it is
    meant for. It is None for a body that was taken before.
    """
    faults = Faults()
    asked = read_body(body, ScreenBody, faults)
    if now_ms is not None and asked.input_dob is not None and _is_future(asked.input_dob, now_ms):
        faults.meaning["inputDob"] = "must not be in the future"
    faults.meaning = put_first(faults.meaning, ("inputName", "entityType", "sensitivityProfile"))
    faults.raise_unprocessable()
    documents = [Document(document_kind(one.type), one.value) for one in asked.input_id_documents or ()]
    subject = Subject(
        name=asked.input_name,
        type=_TYPES[asked.entity_type] if asked.entity_type is not None else None,
        birth=BirthDate(asked.input_dob) if asked.input_dob is not None else None,
        countries=(asked.input_nationality,) if asked.input_nationality is not None else (),
        aliases=tuple(dict.fromkeys(asked.input_aliases or ())),
        documents=tuple(dict.fromkeys(documents)),
    )
    return ScreenRequest(asked.external_id, subject, asked.sensitivity_profile)


def party_request(
    customer: str,
    name: str,
    *,
    counterparty: bool,
    kind: EntityType | None = None,
    birth: str | None = None,
    country: str | None = None,
    now_ms: int,
) -> ScreenRequest | None:
    """Make a request for a party of an event, or None when its name cannot be screened.

    `customer` is whose case an alert would go into, `birth` a date `yyyy-mm-dd` and `country` ISO 3166-1
    alpha-2; of these two, what is not well-formed is left out, and so is a birth after `now_ms` (Unix ms).
    """
    if len(name) > NAME_CHARS_MAX or _name(name) is None:
        return None
    is_date = birth is not None and _date(birth) is not None and not _is_future(birth, now_ms)
    born = BirthDate(birth) if birth is not None and is_date else None
    code = _country(country) if country is not None else None
    subject = Subject(name=name, type=kind, birth=born, countries=(code,) if code is not None else ())
    role = f"counterparty {' '.join(name.casefold().split())}" if counterparty else ""
    return ScreenRequest(customer, subject, None, role, "EVENT")


def sent_of(request: ScreenRequest) -> bytes:
    """Write the body that stands for a request which did not come as one; `read_screen_request` reads it."""
    subject = request.subject
    members = {
        "inputName": subject.name,
        "externalId": request.external_id,
        "entityType": subject.type.value if subject.type is not None else None,
        "inputDob": subject.birth.first if subject.birth is not None else None,
        "inputNationality": subject.countries[0] if subject.countries else None,
        "inputAliases": list(subject.aliases) or None,
        "inputIdDocuments": [
            {"type": document.kind.value, "value": document.value} for document in subject.documents
        ]
        or None,
        "sensitivityProfile": request.profile.value if request.profile is not None else None,
    }
    return encode({name: value for name, value in members.items() if value is not None})
