"""The row of a batch: what a file may say of a subject, and what is written of the outcome."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from vettance.aml.screening.screening_request import ScreenRequest, read_screen_request
from vettance.errors import Unprocessable
from vettance.exchange.columns import Cell
from vettance.wire.payload import JSON, encode

#: Column of the file (letters and digits only, in any case) → member of `POST /aml/screen`.
_MEMBERS: Final = {
    "inputname": "inputName",
    "name": "inputName",
    "fullname": "inputName",
    "externalid": "externalId",
    "id": "externalId",
    "customerid": "externalId",
    "entitytype": "entityType",
    "type": "entityType",
    "inputdob": "inputDob",
    "dob": "inputDob",
    "birthdate": "inputDob",
    "dateofbirth": "inputDob",
    "inputnationality": "inputNationality",
    "nationality": "inputNationality",
    "country": "inputNationality",
    "inputaliases": "inputAliases",
    "aliases": "inputAliases",
    "inputiddocuments": "inputIdDocuments",
    "documents": "inputIdDocuments",
    "sensitivityprofile": "sensitivityProfile",
    "profile": "sensitivityProfile",
}


class ResultColumn(NamedTuple):
    """One column of the results."""

    name: str
    is_number: bool = False


COLUMNS: Final = (
    ResultColumn("line", is_number=True),
    ResultColumn("externalId"),
    ResultColumn("inputName"),
    ResultColumn("decision"),
    ResultColumn("listsHit"),
    ResultColumn("matchCount", is_number=True),
    ResultColumn("score", is_number=True),
    ResultColumn("classification"),
    ResultColumn("watchlistEntityId"),
    ResultColumn("entityName"),
    ResultColumn("matchedName"),
    ResultColumn("source"),
    ResultColumn("sanctionReason"),
    ResultColumn("falsePositiveRemembered"),
    ResultColumn("screeningId"),
    ResultColumn("caseId"),
    ResultColumn("alertId"),
    ResultColumn("sensitivityProfile"),
    ResultColumn("reviewBound", is_number=True),
    ResultColumn("algorithm"),
    ResultColumn("listVersions"),
    ResultColumn("matches"),
)


def request_of(row: Mapping[str, Any], number: int, profile: str | None, now_ms: int) -> ScreenRequest:
    """Make a request of a row. Raises `Unprocessable` naming every fault by the member it stands for.

    A row without an id is known by its number. `profile` is that of rows that name none.
    """
    body: JSON = {"externalId": f"row-{number}"}
    if profile is not None:
        body["sensitivityProfile"] = profile
    for column, value in row.items():
        member = _MEMBERS.get("".join(letter for letter in column.casefold() if letter.isalnum()))
        if member is not None and value is not None and value != "":
            body[member] = _value(member, value)
    return read_screen_request(body, now_ms)


def _value(member: str, value: Any) -> Any:
    """Read a cell; what is no text was read by its format already."""
    if type(value) is int and member == "externalId":
        return str(value)
    if not isinstance(value, str):
        return value
    value = value.strip()
    if member in ("entityType", "sensitivityProfile"):
        return value.upper()
    if member == "inputAliases":
        return [text.strip() for text in value.split(";") if text.strip()]
    if member == "inputIdDocuments":
        return [_document(text) for text in value.split(";") if text.strip()]
    return value


def _document(text: str) -> JSON:
    kind, colon, value = text.strip().partition(":")
    return {"type": kind.strip(), "value": value.strip()} if colon else {"type": "other", "value": kind}


def details_of(refusal: Unprocessable) -> dict[str, Any]:
    """Return why a row was refused, by member."""
    return dict(refusal.details)


def cells_of(line: int, name: str, record: JSON) -> list[Cell]:
    """Make a row of the results of what a screening answers; the first match stands for all of them."""
    matches: Sequence[JSON] = record["matches"]
    best: JSON = matches[0] if matches else {}
    return [
        line,
        record["externalId"],
        name,
        record["decision"],
        ";".join(record["listsHit"]),
        len(matches),
        best.get("score"),
        best.get("classification"),
        best.get("watchlistEntityId"),
        best.get("entityName"),
        best.get("matchedName"),
        best.get("source"),
        best.get("sanctionReason"),
        ("true" if best["falsePositiveRemembered"] else "false") if best else None,
        record["id"] or None,
        record.get("caseId"),
        record.get("alertId"),
        record["sensitivityProfile"],
        record["reviewBound"],
        record["algorithm"],
        ";".join(f"{source}={version}" for source, version in record["listVersions"].items()),
        encode(matches).decode() if matches else None,
    ]
