"""A listed entity: one person, organisation, vessel or aircraft as a publisher describes it."""

import enum
import re
import unicodedata

import msgspec


class EntityType(enum.StrEnum):
    """What an entity is. `UNKNOWN` is a list that does not say; it is compared with everything."""

    INDIVIDUAL = "INDIVIDUAL"
    ORGANIZATION = "ORGANIZATION"
    VESSEL = "VESSEL"
    AIRCRAFT = "AIRCRAFT"
    UNKNOWN = "UNKNOWN"


class NameQuality(enum.StrEnum):
    """How much a publisher vouches for a name. A weak alias must not raise an alert by itself."""

    PRIMARY = "primary"
    STRONG = "strong"
    WEAK = "weak"


class DocumentKind(enum.StrEnum):
    """What an identifier identifies; `OTHER` may be anything and is compared by its value alone."""

    PASSPORT = "passport"
    NATIONAL_ID = "national_id"
    TAX = "tax"
    REGISTRATION = "registration"
    LEI = "lei"
    BIC = "bic"
    IMO = "imo"
    MMSI = "mmsi"
    CALL_SIGN = "call_sign"
    TAIL = "tail"
    SERIAL = "serial"
    WALLET = "wallet"
    OTHER = "other"


class ListedName(msgspec.Struct, frozen=True, array_like=True):
    """One name of an entity, as published."""

    text: str
    quality: NameQuality = NameQuality.STRONG


class BirthDate(msgspec.Struct, frozen=True, array_like=True):
    """A date of birth as far as it is known: `yyyy`, `yyyy-mm` or `yyyy-mm-dd`.

    `last` is the end of a range of years, the same as `first` otherwise. `approximate` is the publisher's
    "circa".
    """

    first: str
    last: str = ""
    approximate: bool = False

    def years(self) -> tuple[int, int]:
        """Return the first and the last year that this date allows."""
        first = int(self.first[:4])
        return first, int(self.last[:4]) if self.last else first


class Document(msgspec.Struct, frozen=True, array_like=True):
    """An identifier; `value` as published, `country` ISO 3166-1 alpha-2 or empty."""

    kind: DocumentKind
    value: str
    country: str = ""


class Entity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that a list says of one entity. Countries are ISO 3166-1 alpha-2."""

    id: str
    source: str
    type: EntityType
    names: tuple[ListedName, ...]
    births: tuple[BirthDate, ...] = ()
    birth_places: tuple[str, ...] = ()
    #: Nationality, citizenship, flag or country of registration; these are compared.
    countries: tuple[str, ...] = ()
    #: Where it lives or trades; shown, and compared only in its favour.
    addresses: tuple[str, ...] = ()
    address_countries: tuple[str, ...] = ()
    cities: tuple[str, ...] = ()
    documents: tuple[Document, ...] = ()
    gender: str = ""
    programmes: tuple[str, ...] = ()
    reason: str = ""
    remarks: str = ""
    listed_on: str = ""
    #: A code that other lists cite for the same entity, for example a United Nations reference.
    reference: str = ""
    #: The list inside a collection such as the US Consolidated Screening List; empty otherwise.
    list_name: str = ""

    @property
    def name(self) -> str:
        """The name that the publisher prints first."""
        return self.names[0].text


class EntityDraft:
    """Collects the parts of one entity while a file is read, in any order and with repetitions."""

    def __init__(self, entity_id: str, source: str, entity_type: EntityType = EntityType.UNKNOWN) -> None:
        self.id = entity_id
        self.source = source
        self.type = entity_type
        self.gender = self.reason = self.remarks = self.listed_on = self.reference = self.list_name = ""
        self._names: dict[str, NameQuality] = {}
        self._births: dict[BirthDate, None] = {}
        self._documents: dict[Document, None] = {}
        self._texts: dict[str, dict[str, None]] = {}

    def add_name(self, text: str, quality: NameQuality = NameQuality.STRONG) -> None:
        """Add a name; of one that comes twice the better quality counts."""
        text = clean(text)
        if not any(letter.isalnum() for letter in text):
            return
        known = self._names.get(text)
        if known is None or _RANK[quality] < _RANK[known]:
            self._names[text] = quality

    def add_birth(self, birth: BirthDate | None) -> None:
        """Add a date of birth, or nothing when it could not be read."""
        if birth is not None:
            self._births[birth] = None

    def add_document(self, kind: DocumentKind, value: str, country: str = "") -> None:
        """Add an identifier; one without letters or digits says nothing."""
        value = clean(value)
        if any(letter.isalnum() for letter in value):
            self._documents[Document(kind, value, country)] = None

    def add(self, part: str, *values: str) -> None:
        """Add texts to a part of `Entity` that holds several; empty ones and repetitions are left out."""
        bag = self._texts.setdefault(part, {})
        for value in values:
            if value := clean(value):
                bag[value] = None

    def has_name(self) -> bool:
        """Tell whether the entity can be found by anything."""
        return bool(self._names)

    def freeze(self) -> Entity:
        """Return the entity, its primary name first."""
        ordered = sorted(self._names.items(), key=lambda item: _RANK[item[1]])
        return Entity(
            id=self.id,
            source=self.source,
            type=self.type,
            names=tuple(ListedName(text, quality) for text, quality in ordered),
            births=tuple(self._births),
            documents=tuple(self._documents),
            gender=self.gender,
            reason=clean(self.reason),
            remarks=clean(self.remarks),
            listed_on=self.listed_on,
            reference=self.reference,
            list_name=self.list_name,
            **{part: tuple(values) for part, values in self._texts.items()},
        )


_RANK = {NameQuality.PRIMARY: 0, NameQuality.STRONG: 1, NameQuality.WEAK: 2}
_SPACES = re.compile(r"\s+")


def clean(text: str) -> str:
    """Return `text` in NFKC form (no Arabic presentation forms), on one line, without control characters."""
    if text.isascii():
        return _SPACES.sub(" ", text.replace("\x00", "")).strip()
    text = unicodedata.normalize("NFKC", text)
    text = "".join(letter for letter in text if letter.isspace() or unicodedata.category(letter)[0] != "C")
    return _SPACES.sub(" ", text).strip()


_KIND_WORDS = (
    (DocumentKind.PASSPORT, ("passport", "passeport", "pasaporte", "travel document", "laissez")),
    (DocumentKind.IMO, ("imo",)),
    (DocumentKind.MMSI, ("mmsi", "maritime mobile")),
    (DocumentKind.CALL_SIGN, ("call sign",)),
    (DocumentKind.LEI, ("lei", "legal entity identifier", "legal entity number")),
    (DocumentKind.BIC, ("swift", "bic", "bik")),
    (DocumentKind.TAIL, ("tail", "aircraft registration", "registration mark")),
    (DocumentKind.SERIAL, ("serial", "msn")),
    (DocumentKind.WALLET, ("digital currency", "wallet", "crypto")),
    (
        DocumentKind.TAX,
        ("tax", "inn", "nit", "rfc", "r f c", "ruc", "vat", "fiscal", "steuer", "rif", "cuit", "tin"),
    ),
    (
        DocumentKind.NATIONAL_ID,
        (
            "national",
            "identity",
            "identification",
            "cedula",
            "curp",
            "c u r p",
            "citizen",
            "ssn",
            "social security",
            "id card",
            "identidad",
            "tazkira",
            "personal",
            "nric",
            "cnp",
            "idcard",
            "ni number",
            "birth certificate",
        ),
    ),
    (
        DocumentKind.REGISTRATION,
        (
            "registration",
            "company number",
            "business",
            "commercial",
            "registry",
            "ogrn",
            "gazette",
            "okpo",
            "trade",
            "enterprise",
            "unified social credit",
            "uscc",
            "licence",
            "license",
            "duns",
            "d u n s",
            "folio",
            "matricula",
        ),
    ),
)
_NOT_WORD = re.compile(r"[\W_]+")


def document_kind(label: str) -> DocumentKind:
    """Read the kind of an identifier out of the words by which a publisher or a tenant calls it."""
    words = f" {_NOT_WORD.sub(' ', label.casefold()).strip()} "
    for kind, hints in _KIND_WORDS:
        for hint in hints:
            # Short codes must be whole words: "inn" is not in "beginning".
            if (f" {hint} " if len(hint) <= 4 else hint) in words:
                return kind
    return DocumentKind.OTHER
