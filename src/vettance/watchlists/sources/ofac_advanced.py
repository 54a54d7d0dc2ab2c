"""OFAC's lists in the "advanced" XML: `SDN_ADVANCED.XML` and `CONS_ADVANCED.XML`.

Source: U.S. Department of the Treasury, Office of Foreign Assets Control, "Advanced Sanctions Data Model"
(the data standard of the 1267 committee of the United Nations, version 1.0): reference values first, then
locations, documents, parties, and at last the entries that say by which programme a party is listed.
"""

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from vettance.reference.countries import country_code
from vettance.watchlists.birth_dates import read_birth
from vettance.watchlists.entity import (
    DocumentKind,
    Entity,
    EntityDraft,
    EntityType,
    NameQuality,
    document_kind,
)
from vettance.watchlists.sources.formats import text_at, xml_records

_TAGS = frozenset({"ReferenceValueSets", "Location", "IDRegDocument", "DistinctParty", "SanctionsEntry"})
#: Types and subtypes of parties by what OFAC calls them, in every format, and the lists made of its own.
TYPES = {
    "individual": EntityType.INDIVIDUAL,
    "entity": EntityType.ORGANIZATION,
    "vessel": EntityType.VESSEL,
    "aircraft": EntityType.AIRCRAFT,
}
#: The parts of a person's name in the order in which it is spoken; others keep that of the file.
_PARTS = ("first name", "middle name", "patronymic", "matronymic", "last name", "maiden name")
#: Features that are identifiers, and of which kind.
_IDENTIFIERS = {
    "vessel call sign": DocumentKind.CALL_SIGN,
    "aircraft tail number": DocumentKind.TAIL,
    "aircraft manufacturer’s serial number (msn)": DocumentKind.SERIAL,
    "aircraft manufacturer's serial number (msn)": DocumentKind.SERIAL,
    "swift/bic": DocumentKind.BIC,
}


class _Values:
    """The reference values of a file: what its numbers stand for."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str], str] = {}
        self._parents: dict[tuple[str, str], str] = {}
        self._countries: dict[str, str] = {}

    def take(self, sets: Element) -> None:
        """Remember every value."""
        for values in sets:
            for value in values:
                key = (value.tag, value.get("ID", ""))
                self._texts[key] = (value.text or "").strip()
                if parent := value.get("PartyTypeID"):
                    self._parents[key] = parent
                if value.tag == "Country":
                    self._countries[key[1]] = value.get("ISO2") or country_code(self._texts[key])
                elif value.tag == "AreaCode":
                    self._countries[f"area {key[1]}"] = country_code(value.get("Description", ""))

    def text(self, kind: str, number: str | None) -> str:
        """Return what a number stands for, or an empty string."""
        return self._texts.get((kind, number or ""), "")

    def country(self, number: str | None) -> str:
        """Return the code of a country by its number."""
        return self._countries.get(number or "", "")

    def area(self, number: str | None) -> str:
        """Return the code of the country that an area is."""
        return self._countries.get(f"area {number}", "")

    def party(self, subtype: str | None) -> EntityType:
        """Return what a party is: a subtype says it itself (vessel) or by the type above it (individual)."""
        above = self._parents.get(("PartySubType", subtype or ""))
        for text in (self.text("PartySubType", subtype), self.text("PartyType", above)):
            if (kind := TYPES.get(text.casefold())) is not None:
                return kind
        return EntityType.UNKNOWN


def read(source: str, path: Path) -> Iterator[Entity]:
    """Yield the entities of one file."""
    values = _Values()
    locations: dict[str, tuple[str, str, str]] = {}
    documents: dict[str, list[Element]] = {}
    drafts: dict[str, EntityDraft] = {}
    for record in xml_records(path, _TAGS):
        if record.tag == "ReferenceValueSets":
            values.take(record)
        elif record.tag == "Location":
            locations[record.get("ID", "")] = _location(record, values)
        elif record.tag == "IDRegDocument":
            documents.setdefault(record.get("IdentityID", ""), []).append(record)
        elif record.tag == "DistinctParty":
            for profile in record.findall("Profile"):
                draft = _party(source, record, profile, values)
                _identities(draft, profile, values, documents)
                _features(draft, profile, values, locations)
                drafts[profile.get("ID", "")] = draft
        elif (listed := drafts.get(record.get("ProfileID", ""))) is not None:
            _entry(listed, record, values)
    yield from (draft.freeze() for draft in drafts.values() if draft.has_name())


def _location(record: Element, values: _Values) -> tuple[str, str, str]:
    """Return (address, city, country code)."""
    parts = {
        values.text("LocPartType", part.get("LocPartTypeID")).casefold(): text_at(
            part, "LocationPartValue/Value"
        )
        for part in record.findall("LocationPart")
    }
    country = next((values.country(one.get("CountryID")) for one in record.findall("LocationCountry")), "")
    if not country:
        country = next((values.area(one.get("AreaCodeID")) for one in record.findall("LocationAreaCode")), "")
    return ", ".join(text for text in parts.values() if text), parts.get("city", ""), country


def _party(source: str, party: Element, profile: Element, values: _Values) -> EntityDraft:
    number = party.get("FixedRef") or profile.get("ID", "")
    draft = EntityDraft(f"{source}:{number}", source, values.party(profile.get("PartySubTypeID")))
    draft.remarks = text_at(party, "Comment")
    return draft


def _identities(
    draft: EntityDraft, profile: Element, values: _Values, documents: dict[str, list[Element]]
) -> None:
    for identity in profile.findall("Identity"):
        groups = {
            group.get("ID", ""): values.text("NamePartType", group.get("NamePartTypeID")).casefold()
            for group in identity.iter("NamePartGroup")
        }
        for alias in identity.findall("Alias"):
            weak = alias.get("LowQuality") == "true"
            for number, name in enumerate(alias.findall("DocumentedName")):
                primary = alias.get("Primary") == "true" and not number
                quality = NameQuality.PRIMARY if primary else NameQuality.STRONG
                draft.add_name(_name(name, groups), NameQuality.WEAK if weak else quality)
        for document in documents.get(identity.get("ID", ""), ()):
            label = values.text("IDRegDocType", document.get("IDRegDocTypeID"))
            kind = document_kind(label)
            value = text_at(document, "IDRegistrationNo")
            if label.casefold() == "vessel registration identification" and value.startswith("IMO "):
                kind, value = DocumentKind.IMO, value.removeprefix("IMO ")
            draft.add_document(kind, value, values.country(document.get("IssuedBy-CountryID")))
    if draft.type is EntityType.AIRCRAFT and draft.has_name():
        # An aircraft's name on this list is its registration mark.
        draft.add_document(DocumentKind.TAIL, draft.freeze().name)


def _name(name: Element, groups: dict[str, str]) -> str:
    parts = []
    for place, value in enumerate(name.iter("NamePartValue")):
        kind = groups.get(value.get("NamePartGroupID", ""), "")
        order = _PARTS.index(kind) if kind in _PARTS else len(_PARTS)
        parts.append((order, place, (value.text or "").strip()))
    return " ".join(text for _order, _place, text in sorted(parts))


def _features(
    draft: EntityDraft, profile: Element, values: _Values, locations: dict[str, tuple[str, str, str]]
) -> None:
    for feature in profile.findall("Feature"):
        label = values.text("FeatureType", feature.get("FeatureTypeID"))
        for version in feature.findall("FeatureVersion"):
            places = [
                locations.get(one.get("LocationID", ""), ("", "", ""))
                for one in version.findall("VersionLocation")
            ]
            details = [
                (detail.text or "").strip() or values.text("DetailReference", detail.get("DetailReferenceID"))
                for detail in version.findall("VersionDetail")
            ]
            _feature(draft, label.casefold(), version, places, [text for text in details if text])


def _feature(
    draft: EntityDraft,
    label: str,
    version: Element,
    places: list[tuple[str, str, str]],
    details: list[str],
) -> None:
    if label == "birthdate":
        for period in version.findall("DatePeriod"):
            draft.add_birth(read_birth(_period(period)))
    elif label == "place of birth":
        draft.add("birth_places", *details, *(address for address, _city, _country in places))
    elif label in (
        "nationality country",
        "citizenship country",
        "nationality of registration",
        "vessel flag",
    ):
        draft.add("countries", *(country_code(text) for text in details))
        draft.add("countries", *(country for _address, _city, country in places))
    elif label == "location":
        for address, city, country in places:
            draft.add("addresses", address)
            draft.add("cities", city)
            draft.add("address_countries", country)
    elif label == "gender":
        draft.gender = details[0][:1].casefold() if details else ""
    elif label.startswith("digital currency address"):
        for text in details:
            draft.add_document(DocumentKind.WALLET, text)
    elif label in _IDENTIFIERS:
        for text in details:
            draft.add_document(_IDENTIFIERS[label], text)
    elif label == "title":
        draft.reason = draft.reason or next(iter(details), "")


def _period(period: Element) -> str:
    """Write a period as `read_birth` reads it: a date, or the years between which it lies."""
    dates = []
    for end in ("Start/From", "End/To"):
        year = text_at(period, f"{end}/Year")
        month, day = text_at(period, f"{end}/Month"), text_at(period, f"{end}/Day")
        if year:
            full = month and day
            dates.append(f"{int(year):04}-{int(month):02}-{int(day):02}" if full else f"{int(year):04}")
    circa = "circa " if period.find("Start[@Approximate='true']") is not None else ""
    if len(dates) == 2 and dates[0] != dates[1]:
        if dates[0][:4] == dates[1][:4]:
            return circa + dates[0][:4]
        return f"{dates[0][:4]}-{dates[1][:4]}"
    return circa + dates[0] if dates else ""


def _entry(draft: EntityDraft, record: Element, values: _Values) -> None:
    for measure in record.findall("SanctionsMeasure"):
        # The type "Program" carries the programme in its comment; other types say what is done.
        if values.text("SanctionsType", measure.get("SanctionsTypeID")).casefold() == "program":
            draft.add("programmes", text_at(measure, "Comment"))
    for event in record.findall("EntryEvent"):
        year, month, day = (text_at(event, f"Date/{part}") for part in ("Year", "Month", "Day"))
        if year and month and day and not draft.listed_on:
            draft.listed_on = f"{int(year):04}-{int(month):02}-{int(day):02}"
