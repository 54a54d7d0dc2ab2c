"""The request: whom a tenant asks about, parsed once at the door."""

import datetime as dt
import re
from typing import Annotated, Any, ClassVar, Final

import msgspec

from vettance.aml.aml_event import raise_all
from vettance.events.event import text_member
from vettance.reference.jurisdictions import iso_code
from vettance.watchlists.entity import BirthDate, Document, EntityType, document_kind
from vettance.watchlists.match import Subject
from vettance.watchlists.subject_screening import Profile
from vettance.wire.payload import JSON, Faults, Wire, encode

#: As long as any text of a body may be. The longest name on any list that is read has 350 characters.
NAME_CHARS_MAX: Final = 1_024
#: Each alias is searched like a name of its own, so their number bounds the time of a screening.
ALIASES_MAX: Final = 50
#: All aliases together: nothing stops a search that has begun, so the longest must end within the deadline.
ALIASES_CHARS_MAX: Final = 4_096
DOCUMENTS_MAX: Final = 50
DOCUMENT_CHARS_MAX: Final = 1_024

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARS_MAX)]
_DocumentText = Annotated[str, msgspec.Meta(min_length=1, max_length=DOCUMENT_CHARS_MAX)]


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
    ] = None
    input_dob: Annotated[str | None, msgspec.Meta(description="ISO 8601 date, `yyyy-mm-dd`.")] = None
    input_nationality: Annotated[str | None, msgspec.Meta(description="ISO 3166-1 alpha-2.")] = None
    input_aliases: Annotated[list[_Name], msgspec.Meta(max_length=ALIASES_MAX)] | None = None
    input_id_documents: Annotated[list[DocumentBody], msgspec.Meta(max_length=DOCUMENTS_MAX)] | None = None
    sensitivity_profile: Annotated[
        Profile | None, msgspec.Meta(description="The tenant's own when left out.")
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


_TYPES: Final = {
    kind.value: kind
    for kind in (EntityType.INDIVIDUAL, EntityType.ORGANIZATION, EntityType.VESSEL, EntityType.AIRCRAFT)
}
_PROFILES: Final = {profile.value: profile for profile in Profile}
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_BAD_DATE: Final = "must be a date such as 1969-10-11"


def read_screen_request(body: JSON) -> ScreenRequest:
    """Make a request of a parsed body. Raises `Unprocessable` (422) naming every fault by its field path."""
    faults = Faults()
    external_id = text_member(body, "externalId", "externalId", faults, required=True)
    if body.get("inputName") in (None, ""):
        faults.meaning["inputName"] = "is required"
    name = _read_name(body.get("inputName"), "inputName", faults)
    sent = _read_word(body, "entityType")
    kind = _TYPES.get(sent) if sent is not None else None
    if sent is not None and kind is None:
        faults.meaning["entityType"] = "must be one of " + ", ".join(_TYPES)
    sent = _read_word(body, "sensitivityProfile")
    profile = _PROFILES.get(sent) if sent is not None else None
    if sent is not None and profile is None:
        faults.meaning["sensitivityProfile"] = "must be one of " + ", ".join(_PROFILES)
    subject = Subject(
        name=name or "",
        type=kind,
        birth=_read_birth(body, faults),
        countries=_read_countries(body, faults),
        aliases=_read_aliases(body, faults),
        documents=_read_documents(body, faults),
    )
    raise_all(faults)
    return ScreenRequest(external_id or "", subject, profile)


def party_request(
    customer: str,
    name: str,
    *,
    counterparty: bool,
    kind: EntityType | None = None,
    birth: str | None = None,
    country: str | None = None,
) -> ScreenRequest | None:
    """Make a request for a party of an event, or None when its name cannot be screened.

    `customer` is whose case an alert would go into, `birth` a date `yyyy-mm-dd` and `country` ISO 3166-1
    alpha-2; of these two, what is not well-formed is left out.
    """
    if not name or len(name) > NAME_CHARS_MAX or not any(letter.isalnum() for letter in name):
        return None
    born = _birth_of(birth) if birth is not None else None
    code = iso_code(country) if country is not None and len(country) == 2 else None
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


def _read_word(body: JSON, member: str) -> str | None:
    """Read an optional text; null is absent. What is no text stands for no word of any table."""
    value = body.get(member)
    if value is None:
        return None
    return value if type(value) is str else ""


def _read_name(value: Any, path: str, faults: Faults) -> str | None:
    if value is None or value == "":
        return None
    if type(value) is not str:
        faults.meaning[path] = "must be a string"
    elif len(value) > NAME_CHARS_MAX:
        faults.meaning[path] = f"must not be longer than {NAME_CHARS_MAX} characters"
    elif not any(letter.isalnum() for letter in value):
        # It would match nobody, and clear whoever is meant by it.
        faults.meaning[path] = "must hold letters or digits"
    else:
        return value
    return None


def _read_birth(body: JSON, faults: Faults) -> BirthDate | None:
    value = body.get("inputDob")
    if value is None:
        return None
    birth = _birth_of(value) if type(value) is str else None
    if birth is None:
        faults.meaning["inputDob"] = _BAD_DATE
    return birth


def _birth_of(text: str) -> BirthDate | None:
    if not _DATE.fullmatch(text):
        return None
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return None
    return BirthDate(text)


def _read_countries(body: JSON, faults: Faults) -> tuple[str, ...]:
    value = body.get("inputNationality")
    if value is None:
        return ()
    code = iso_code(value) if type(value) is str and len(value) == 2 else None
    if code is None:
        faults.meaning["inputNationality"] = "must be an ISO 3166-1 alpha-2 code"
        return ()
    return (code,)


def _read_list(body: JSON, member: str, longest: int, faults: Faults) -> list[Any]:
    value = body.get(member)
    if value is None:
        return []
    if type(value) is not list:
        faults.meaning[member] = "must be an array"
        return []
    if len(value) > longest:
        faults.meaning[member] = f"must not hold more than {longest} elements"
        return []
    return value


def _read_aliases(body: JSON, faults: Faults) -> tuple[str, ...]:
    aliases: list[str] = []
    for number, value in enumerate(_read_list(body, "inputAliases", ALIASES_MAX, faults)):
        path = f"inputAliases.{number}"
        alias = _read_name(value, path, faults)
        if alias is None:
            faults.meaning.setdefault(path, "must not be empty")
        else:
            aliases.append(alias)
    if sum(map(len, aliases)) > ALIASES_CHARS_MAX:
        faults.meaning["inputAliases"] = f"must not hold more than {ALIASES_CHARS_MAX} characters in all"
    return tuple(dict.fromkeys(aliases))


def _read_documents(body: JSON, faults: Faults) -> tuple[Document, ...]:
    documents: list[Document] = []
    for number, value in enumerate(_read_list(body, "inputIdDocuments", DOCUMENTS_MAX, faults)):
        path = f"inputIdDocuments.{number}"
        if type(value) is not dict:
            faults.meaning[path] = "must be an object"
            continue
        texts = [_read_document_text(value, member, path, faults) for member in ("type", "value")]
        if texts[0] and texts[1]:
            documents.append(Document(document_kind(texts[0]), texts[1]))
    return tuple(dict.fromkeys(documents))


def _read_document_text(holder: JSON, member: str, path: str, faults: Faults) -> str | None:
    value = holder.get(member)
    if value is None or value == "":
        faults.meaning[f"{path}.{member}"] = "is required"
    elif type(value) is not str:
        faults.meaning[f"{path}.{member}"] = "must be a string"
    elif len(value) > DOCUMENT_CHARS_MAX:
        faults.meaning[f"{path}.{member}"] = f"must not be longer than {DOCUMENT_CHARS_MAX} characters"
    else:
        return value
    return None
