"""OpenSanctions: `targets.simple.csv` and FollowTheMoney JSON lines, politically exposed persons included.

Sources: OpenSanctions data dictionary, https://www.opensanctions.org/docs/bulk/csv/ (columns of the
simplified CSV) and the FollowTheMoney schema, https://followthemoney.tech/explorer/. The data is CC BY-NC
4.0; a licence is needed for commercial use.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from vettance.reference.countries import country_code
from vettance.watchlists.birth_dates import read_birth
from vettance.watchlists.entity import DocumentKind, Entity, EntityDraft, EntityType, NameQuality
from vettance.watchlists.sources.formats import SourceFault, csv_records, open_bytes

_TYPES = {
    "person": EntityType.INDIVIDUAL,
    "company": EntityType.ORGANIZATION,
    "organization": EntityType.ORGANIZATION,
    "publicbody": EntityType.ORGANIZATION,
    "legalentity": EntityType.UNKNOWN,
    "vessel": EntityType.VESSEL,
    "airplane": EntityType.AIRCRAFT,
}


def read_simple(source: str, paths: Sequence[Path]) -> Iterator[Entity]:
    """Yield the targets of `targets.simple.csv`; things that bear no name of their own are left out."""
    for path in paths:
        for row in csv_records(path, ("id", "schema", "name"), ","):
            kind = _TYPES.get(row["schema"].casefold())
            if kind is None:
                continue
            draft = EntityDraft(f"{source}:{row['id']}", source, kind)
            draft.add_name(row["name"], NameQuality.PRIMARY)
            for text in row.get("aliases", "").split(";"):
                draft.add_name(text)
            for text in row.get("birth_date", "").split(";"):
                draft.add_birth(read_birth(text))
            for text in row.get("countries", "").split(";"):
                draft.add("countries", country_code(text))
            draft.add("addresses", *row.get("addresses", "").split(";"))
            for text in row.get("identifiers", "").split(";"):
                kinds = _IDENTIFIER_KINDS.get(kind, DocumentKind.OTHER)
                draft.add_document(kinds, text.removeprefix("IMO"))
            draft.add("programmes", *row.get("program_ids", "").split(";"))
            draft.reason = row.get("sanctions", "")
            draft.list_name = row.get("dataset", "")
            draft.listed_on = row.get("first_seen", "")[:10]
            if draft.has_name():
                yield draft.freeze()


_IDENTIFIER_KINDS = {EntityType.VESSEL: DocumentKind.IMO, EntityType.AIRCRAFT: DocumentKind.TAIL}

#: Properties of FollowTheMoney that are identifiers.
_DOCUMENTS = {
    "passportNumber": DocumentKind.PASSPORT,
    "idNumber": DocumentKind.NATIONAL_ID,
    "socialSecurityNumber": DocumentKind.NATIONAL_ID,
    "taxNumber": DocumentKind.TAX,
    "innCode": DocumentKind.TAX,
    "vatCode": DocumentKind.TAX,
    "registrationNumber": DocumentKind.REGISTRATION,
    "ogrnCode": DocumentKind.REGISTRATION,
    "uscCode": DocumentKind.REGISTRATION,
    "leiCode": DocumentKind.LEI,
    "swiftBic": DocumentKind.BIC,
    "imoNumber": DocumentKind.IMO,
    "mmsi": DocumentKind.MMSI,
    "callSign": DocumentKind.CALL_SIGN,
    "serialNumber": DocumentKind.SERIAL,
}


def read_ftm(source: str, paths: Sequence[Path]) -> Iterator[Entity]:
    """Yield the entities of a FollowTheMoney file: one JSON object `{id, schema, properties}` a line."""
    decoder = msgspec.json.Decoder()
    for path in paths:
        with open_bytes(path) as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    record = decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    raise SourceFault(f"{path.name}, line {number}, is not JSON: {error}") from None
                draft = _record(source, record)
                if draft is not None and draft.has_name():
                    yield draft.freeze()


def _record(source: str, record: Any) -> EntityDraft | None:
    if not isinstance(record, dict) or not isinstance(record.get("properties"), dict):
        return None
    kind = _TYPES.get(str(record.get("schema", "")).casefold())
    if kind is None or record.get("target") is False:
        return None
    draft = EntityDraft(f"{source}:{record.get('id', '')}", source, kind)
    properties: dict[str, list[str]] = {
        key: [str(value) for value in values]
        for key, values in record["properties"].items()
        if isinstance(values, list)
    }
    draft.add_name(str(record.get("caption") or ""), NameQuality.PRIMARY)
    for part, quality in (
        ("name", NameQuality.STRONG),
        ("alias", NameQuality.STRONG),
        ("previousName", NameQuality.STRONG),
        ("weakAlias", NameQuality.WEAK),
    ):
        for text in properties.get(part, ()):
            draft.add_name(text, quality)
    for text in properties.get("birthDate", ()):
        draft.add_birth(read_birth(text))
    draft.add("birth_places", *properties.get("birthPlace", ()))
    for part in ("nationality", "citizenship", "jurisdiction", "flag", "registrationCountry"):
        draft.add("countries", *(country_code(text) for text in properties.get(part, ())))
    draft.add("address_countries", *(country_code(text) for text in properties.get("country", ())))
    draft.add("addresses", *properties.get("address", ()))
    for part, document in _DOCUMENTS.items():
        exact = (
            DocumentKind.TAIL if kind is EntityType.AIRCRAFT and part == "registrationNumber" else document
        )
        for text in properties.get(part, ()):
            draft.add_document(exact, text.removeprefix("IMO"))
    draft.gender = next(iter(properties.get("gender", ())), "")[:1].casefold()
    draft.add("programmes", *properties.get("program", ()), *properties.get("topics", ()))
    draft.reason = "; ".join(properties.get("position", ()) or properties.get("summary", ()))
    draft.remarks = "; ".join(properties.get("notes", ()))
    draft.list_name = ";".join(record.get("datasets") or ())
    return draft
