"""The table: which columns a file has, and how an event becomes a row of it and a row an event."""

import datetime as dt
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from vettance.aml.aml_event import MOMENTS, AmlEvent, AmlEventBody, read_aml_event
from vettance.decisions.decision import LOWERCASE, Outcome
from vettance.decisions.searchable_fields import SEARCHABLE_FIELDS
from vettance.errors import Invalid, Unprocessable
from vettance.events.event import Event, EventBody, read_event
from vettance.exchange.sql import ExportedEvent
from vettance.feedback.label import Label
from vettance.wire.large_body import parse_body
from vettance.wire.numbers import is_decimal
from vettance.wire.payload import (
    BODY_BYTES_MAX,
    JSON,
    Faults,
    decode,
    encode,
    kept,
    parse_object,
    timestamp,
)

Labels = Sequence[str]
Cell = str | int | float | None


class FileColumn(NamedTuple):
    """One column: its name, whether it holds whole numbers, and how it is read off an event."""

    name: str
    value: Callable[[ExportedEvent, Labels], Cell]
    is_number: bool = False


def _rule_version(row: ExportedEvent) -> str:
    # The record is an array that begins with the version; see `DecisionRecordData`.
    version: int = json.loads(row.record)[0]
    return str(version)


def _text_column(place: int, name: str) -> FileColumn:
    return FileColumn(name, lambda row, _: row.texts[place])


_EVENT_NAME, *_TEXTS = (
    _text_column(place, field.exported_as) for place, field in enumerate(SEARCHABLE_FIELDS)
)
_COMMON: Final = (
    FileColumn("occurredAt", lambda row, _: timestamp(row.occurred_at_ms)),
    _EVENT_NAME,
    FileColumn("eventCategory", lambda row, _: row.event_category),
    FileColumn("riskLevel", lambda row, _: row.level),
    FileColumn("reasonCodes", lambda row, _: row.reasons),
    FileColumn("ruleVersion", lambda row, _: _rule_version(row)),
    *_TEXTS,
    FileColumn("label", lambda _, labels: labels[-1] if labels else None),
)
#: What is exported, by its name on the command line; `moment` is what `--from` and `--to` are about.
DECISIONS: Final = (
    FileColumn("id", lambda row, _: row.id),
    FileColumn("evaluatedAt", lambda row, _: timestamp(row.evaluated_at_ms)),
    FileColumn("decision", lambda row, _: LOWERCASE[Outcome(row.decision)]),
    FileColumn("riskScore", lambda row, _: row.score, is_number=True),
    *_COMMON,
)
EVENTS: Final = (
    FileColumn("id", lambda row, _: row.id),
    FileColumn("source", lambda row, _: row.source),
    FileColumn("receivedAt", lambda row, _: timestamp(row.received_at_ms)),
    FileColumn("decision", lambda row, _: row.decision),
    FileColumn("score", lambda row, _: row.score, is_number=True),
    *_COMMON,
    FileColumn("event", lambda row, _: row.sent.decode()),
)
#: The columns of each kind of file, and what a span of time is about: event time, as in the statistics.
TABLES: Final = {"decisions": (DECISIONS, "occurred_at_ms"), "events": (EVENTS, "occurred_at_ms")}

#: What exported columns are called inside an event.
_PATHS: Final = {field.exported_as: field.path for field in SEARCHABLE_FIELDS}
#: Columns of an exported file that are about the decision: an import makes its own.
_RESULTS: Final = {column.name for column in (*DECISIONS, *EVENTS)} - {"eventCategory", "occurredAt", *_PATHS}
_WHOLE_OBJECT: Final = "event"
_AML_ID: Final = "externalEventId"
_NO_PART_OF_AML: Final = frozenset(("label",))
_TIMELESS: Final = "is required: history without its time cannot be replayed"


class LabelledEvent(NamedTuple):
    """An event of a file: as it will be in the log, its body, and its label, if it has one."""

    event: Event
    sent: bytes
    label: Label | None


def read_row(row: Mapping[str, Any], now_ms: int) -> LabelledEvent:
    """Make an event of a row: of its column `event`, else of its columns by their dotted names.

    Columns about a decision are ignored, empty cells left out. Raises `Invalid` or `Unprocessable`.
    """
    faults = Faults()
    body = _body_of(row)
    # Where only `metadata` names a time, as in what the generator writes, the reader of events finds it.
    metadata = body.get("metadata")
    inner = metadata if isinstance(metadata, Mapping) else {}
    is_inside = not (inner.get("occurredAt") is None and inner.get("occurred_at") is None)
    occurred_at = row.get("occurredAt") or body.get("occurredAt")
    if isinstance(occurred_at, dt.datetime):
        occurred_at = occurred_at.isoformat()
    elif isinstance(occurred_at, str) and is_decimal(occurred_at):
        occurred_at = float(occurred_at)  # Unix seconds in a format that has no numbers.
    if occurred_at in (None, ""):
        body.pop("occurredAt", None)
        if not is_inside:
            faults.shape["occurredAt"] = _TIMELESS
    elif isinstance(occurred_at, float) and not math.isfinite(occurred_at):
        faults.shape["occurredAt"] = "must be a time"
    else:
        body["occurredAt"] = occurred_at
    label = row.get("label") or None
    if label is not None and not (isinstance(label, str) and label in Label.__members__):
        faults.meaning["label"] = "must be one of " + ", ".join(Label)
    faults.raise_any()
    value, sent = _as_kept(body, EventBody)
    return LabelledEvent(read_event(value, sent, now_ms), sent, Label(label) if label else None)


def is_aml(row: Mapping[str, Any]) -> bool:
    """Tell whether a row is an event of AML: those alone have an id that the tenant gave them."""
    whole = row.get(_WHOLE_OBJECT)
    return _AML_ID in row or (isinstance(whole, Mapping) and _AML_ID in whole)


def read_aml_row(row: Mapping[str, Any], now_ms: int) -> tuple[AmlEvent, bytes]:
    """Make an event of AML of a row, as `read_row` does one of fraud; return it with its body.

    It has no label: the outcome of its alerts is recorded in their case.
    """
    whole = row.get(_WHOLE_OBJECT)
    body = _body_of(row) if whole not in (None, "", {}) else _unflatten(row, _NO_PART_OF_AML, {})
    value, sent = _as_kept(body, AmlEventBody)
    event = read_aml_event(value, sent, now_ms)
    if event.occurred_at_ms == now_ms and not any(body.get(name) for name in MOMENTS):
        raise Invalid("The row names no time.", {"occurredAt": _TIMELESS})
    return event, sent


def _as_kept(body: JSON, shape: type) -> tuple[JSON, bytes]:
    """Return an event as it is read, and what is kept of it."""
    sent = _encoded(body)
    value = parse_body(sent, shape)
    return value, kept(sent, value)


def _encoded(body: JSON) -> bytes:
    try:
        sent = encode(body)
    except (TypeError, ValueError, RecursionError):
        raise Invalid("The row cannot be written as JSON.", {"row": "holds what JSON cannot"}) from None
    if len(sent) > BODY_BYTES_MAX:
        raise Unprocessable("The event is too large.", {"event": f"must not exceed {BODY_BYTES_MAX} bytes"})
    return sent


def _body_of(row: Mapping[str, Any]) -> JSON:
    """Return the event of a row: its column `event`, else what its other columns say."""
    whole = row.get(_WHOLE_OBJECT)
    if isinstance(whole, str) and whole:
        return parse_object(whole.encode("utf-8", "surrogatepass"))
    if isinstance(whole, Mapping) and whole:
        return dict(whole)
    if whole in (None, "", {}):
        return _unflatten(row, _RESULTS, _PATHS)
    raise Invalid("The row holds no event.", {_WHOLE_OBJECT: "must be an object, or one as JSON text"})


def _unflatten(row: Mapping[str, Any], left_out: Collection[str], paths: Mapping[str, str]) -> JSON:
    body: JSON = {}
    for name, cell in row.items():
        if name in left_out or cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell)):
            continue
        holder = body
        *path, last = paths.get(name, name).split(".")
        for step in path:
            inner = holder.setdefault(step, {})
            holder = inner if isinstance(inner, dict) else {}
        holder[last] = _typed(name, cell)
    return body


def _typed(name: str, cell: Any) -> Any:
    """Give a cell of a text format its JSON type inside of free-form objects; names and ids stay texts."""
    if isinstance(cell, str) and name.partition(".")[0] in ("metadata", "custom_fields", "payload"):
        if cell in ("true", "false"):
            return cell == "true"
        try:
            number = float(cell)
        except ValueError:
            return cell
        if not math.isfinite(number):
            return cell  # JSON has no `nan` and no `inf`.
        # A number that does not survive the way there and back (an account number, say) stays a text.
        shown = repr(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
        return decode(cell.encode()) if shown == cell else cell
    return cell
