"""A history made up in bulk: what a service of some months holds, put into the store past the service."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import asyncpg

#: Long ago, so that no memory is filled from it; the rows of a tenant are a minute apart.
OLD_MS: Final = 1_735_689_600_000  # 2025-01-01
MINUTE_MS: Final = 60_000
#: Half of a tenant's alerts, screenings and cases are of one customer.
BUSY: Final = "busy"

Row = dict[str, Any]


class Setting:
    """What the rows of a tenant refer to; `recent_ms` is a day ago, `later_ms` a day ahead."""

    def __init__(
        self, tenant: str, place: int, subscription: str, list_set: str, entity: str, now_ms: int
    ) -> None:
        self.tenant = tenant
        self.place = place
        self.subscription = subscription
        self.list_set = list_set
        self.entity = entity
        self.recent_ms = now_ms - 86_400_000
        self.later_ms = now_ms + 86_400_000


def name_of(prefix: str, number: int) -> str:
    """An id as the service makes them (UUIDv7), of the time of its row."""
    return f"{prefix}_{_at(number):012x}7000{number:016x}"


def _at(number: int) -> int:
    return OLD_MS + number % 1_000_000 * MINUTE_MS


def _customer(number: int) -> str:
    return BUSY if number % 2 else f"customer-{number}"


def _alert_state(number: int) -> str:
    """Of the busy customer's alerts, half stand in its open case."""
    return "OPEN" if number % 2 and number % 8 > 3 else "CLOSED"


def _event(one: Setting, number: int) -> Row:
    return {
        "seq": number,
        "id": name_of("evt", number),
        "source": "events",
        "received_at_ms": _at(number),
        "occurred_at_ms": _at(number),
        "sent": b'{"eventName":"user.login"}',
    }


def _decision(one: Setting, number: int) -> Row:
    return {
        "seq": number,
        "id": name_of("evt", number),
        "evaluated_at_ms": _at(number),
        "occurred_at_ms": _at(number),
        "received_at_ms": _at(number),
        "event_name": "user.login",
        "event_category": "AUTHENTICATION",
        "decision": "ALLOW",
        "score": 3,
        "level": "low",
        "customer_id": f"customer-{number % 100}",
        "email": f"customer-{number % 100}@mail.example",
        "fingerprint": f"fp-{number % 100}",
        "ip": "203.0.113.7",
        "country": "DE",
        "record": b"[]",
        "reasons": "A1",
    }


def _delivery(one: Setting, number: int) -> Row:
    return {
        "seq": number,
        "id": name_of("dlv", number),
        "subscription": one.subscription,
        "type": "EVENT_RISK_EVALUATED",
        "subject": name_of("evt", number),
        "created_at_ms": _at(number),
        "state": "delivered",
        "due_at_ms": _at(number),
        "settled_at_ms": _at(number),
        "attempts": 1,
        "attempts_ever": 1,
        "body": b"{}",
    }


def _attempt(one: Setting, number: int) -> Row:
    shown = {"delivery": number, "number": 1, "started_at_ms": _at(number), "duration_ms": 5, "status": 200}
    return {**shown, "answer": b""}


def _review(one: Setting, number: int) -> Row:
    opened_at_ms = _at(number)
    is_settled = number % 2 == 0
    return {
        "decision": name_of("evt", number),
        "state": "settled" if is_settled else "open",
        "score": number % 100,
        "amount_points": 0,
        "rank": (number % 100) * 1_800_000 - opened_at_ms - 86_400_000,
        "opened_at_ms": opened_at_ms,
        "due_at_ms": opened_at_ms + 86_400_000,
        # None expires meanwhile: how many an index still holds by then would hang on the moment.
        "expires_at_ms": opened_at_ms + 36_500 * 86_400_000,
        "customer": f"customer-{number % 50}",
        "outcome": "deny" if is_settled else None,
        "settled_by": "usr_9" if is_settled else None,
        "settled_at_ms": opened_at_ms + 1 if is_settled else None,
    }


def _feedback(one: Setting, number: int) -> Row:
    return {
        "id": name_of("fbk", number),
        "target": name_of("evt", number),
        "type": "DECISION",
        "label": "FRAUD",
        "created_at_ms": _at(number),
        "updated_at_ms": _at(number),
    }


def _answer(one: Setting, number: int) -> Row:
    return {
        "path": "/api/v1/events",
        "key": f"key-{number}",
        "status": 200,
        "content": b"{}",
        "headers": b"\x90",
        "expires_at_ms": one.later_ms,
    }


def _job(one: Setting, number: int) -> Row:
    return {
        "seq": number,
        "id": name_of("job", number),
        "received_at_ms": _at(number),
        "request_id": "req_1",
        "quiet": 0,
        "state": "completed",
        "event": name_of("evt", number),
        "settled_at_ms": _at(number),
    }


def _rollup(one: Setting, number: int) -> Row:
    counts = {"evaluated": 1, "review": 0, "block": 0, "score_sum": 3}
    return {"width_s": 60, "start_s": _at(number) // 1000, "code": "", **counts}


def _rule_count(one: Setting, number: int) -> Row:
    start_s = _at(number) // 1000
    return {"width_s": 3600, "start_s": start_s, "rule": "large", "measure": "hits", "amount": 1}


def _change(one: Setting, number: int) -> Row:
    return {"seq": number, "area": "list", "subject": name_of("lst", number), "at_ms": _at(number)}


def _list_entry(one: Setting, number: int) -> Row:
    return {
        "id": name_of("lst", number),
        "type": "DEVICE",
        "value": f"listed-{number}",
        "list_type": "block",
        "created_at_ms": _at(number),
        "updated_at_ms": _at(number),
    }


def _signal_batch(one: Setting, number: int) -> Row:
    session = {"seq": number, "sdk_session": f"session-{number}", "batch_id": f"batch-{number}"}
    return {**session, "received_at_ms": _at(number), "signals": b"{}"}


def _aml_event(one: Setting, number: int) -> Row:
    return {
        "seq": number,
        "id": name_of("evt", number + 500_000_000),
        "external_id": f"old-{number}",
        "received_at_ms": _at(number),
        "occurred_at_ms": _at(number),
        "digest": b"d",
        "status": "CLEAR",
        "alerts": b"[]",
        "sent": b'{"eventName":"transfer","externalEventId":"x"}',
        "record": b"[]",
    }


def _aml_case(one: Setting, number: int) -> Row:
    return {
        "id": name_of("cas", number),
        "customer": _customer(number),
        "state": "CLOSED",
        "severity": "HIGH",
        "assignee": "ann" if number % 2 else None,
        "alerts": 1,
        "opened_at_ms": _at(number),
        "updated_at_ms": _at(number),
        "resolution": "FALSE_POSITIVE",
        "resolved_by": "key_1",
        "resolved_at_ms": one.recent_ms,
    }


def _aml_alert(one: Setting, number: int) -> Row:
    is_open = _alert_state(number) == "OPEN"
    return {
        "id": name_of("alr", number),
        "case_id": open_case(one)["id"] if is_open else name_of("cas", number),
        "customer": _customer(number),
        "origin": "rule" if number % 4 > 1 else "screening",
        "typology": "STRUCTURING" if number % 4 > 1 else "WATCHLIST_MATCH",
        "rule_id": "old-rule",
        "severity": "HIGH",
        "summary": "Found long ago.",
        "figures": b"{}",
        "state": "OPEN" if is_open else "CLOSED",
        "resolution": None if is_open else "FALSE_POSITIVE",
        "events": 1,
        "created_at_ms": _at(number),
        "last_at_ms": _at(number),
        "resolved_at_ms": None if is_open else one.recent_ms,
    }


def open_case(one: Setting) -> Row:
    """The open case of the busy customer, into which new alerts go."""
    name = name_of("cas", 999_999 + one.place * 1_000_000)
    closed = {"resolution": None, "resolved_by": None, "resolved_at_ms": None, "assignee": None}
    return _aml_case(one, 1) | closed | {"id": name, "customer": BUSY, "state": "OPEN", "alerts": 7}


def _aml_alert_entity(one: Setting, number: int) -> Row:
    # The list has changed since, so that nothing of this is a remembered false positive.
    pair = {"alert": name_of("alr", number), "entity": one.entity, "digest": "former"}
    return {**pair, "role": ""}


def _aml_alert_event(one: Setting, number: int) -> Row:
    event = name_of("evt", number + 500_000_000)
    return {"alert": name_of("alr", number), "event": event, "rule_id": "old-rule"}


def _aml_case_entry(one: Setting, number: int) -> Row:
    said = {"kind": "OPENED", "actor": "vettance", "text": "Opened."}
    return {"seq": number, "case_id": name_of("cas", number), "at_ms": _at(number), **said}


def _aml_screening(one: Setting, number: int) -> Row:
    return {
        "seq": number,
        "id": name_of("scr", number),
        "external_id": _customer(number),
        "decision": "REVIEW",
        "profile": "BALANCED",
        "algorithm": "names-1",
        "index_id": "index",
        "alert": name_of("alr", number),
        "case_id": name_of("cas", number),
        "created_at_ms": _at(number),
        "sent": b"{}",
        "answer": b"{}",
    }


def _aml_subject(one: Setting, number: int) -> Row:
    return {
        "external_id": f"subject-{number}",
        "role": "",
        "list_set": one.list_set,
        "screening": name_of("scr", number),
        "screened_at_ms": _at(number),
        "sent": b"{}",
    }


#: The tables that grow with what a tenant does, and a row of each by its number.
GROWING: Final[Mapping[str, Callable[[Setting, int], Row]]] = {
    "event": _event,
    "decision": _decision,
    "delivery": _delivery,
    "attempt": _attempt,
    "feedback": _feedback,
    "review": _review,
    "answer": _answer,
    "job": _job,
    "rollup": _rollup,
    "rule_count": _rule_count,
    "change": _change,
    "list_entry": _list_entry,
    "signal_batch": _signal_batch,
    "aml_event": _aml_event,
    "aml_case": _aml_case,
    "aml_alert": _aml_alert,
    "aml_alert_entity": _aml_alert_entity,
    "aml_alert_event": _aml_alert_event,
    "aml_case_entry": _aml_case_entry,
    "aml_screening": _aml_screening,
    "aml_subject": _aml_subject,
}


def rows_of(table: str, settings: list[Setting], count: int) -> Iterator[Row]:
    """Make `count` rows of each tenant; numbers go on from tenant to tenant."""
    make = GROWING[table]
    for one in settings:
        own = {} if table == "attempt" else {"tenant": one.tenant}
        first = 101 + one.place * 1_000_000
        for number in range(first, first + count):
            yield own | make(one, number)
        if table == "aml_case":
            yield own | open_case(one)


def fill_sqlite(path: Path, settings: list[Setting], count: int) -> None:
    """Put a history into the embedded store."""
    with closing(sqlite3.connect(path)) as file:
        for table in GROWING:
            rows = rows_of(table, settings, count)
            first = next(rows)
            names = ", ".join(first)
            text = f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(first))})"
            file.execute(text, list(first.values()))
            file.executemany(text, (list(row.values()) for row in rows))
            file.commit()  # Each table for itself, so that the log of the store stays small.


async def fill_postgres(url: str, settings: list[Setting], count: int) -> None:
    """Put a history into a database without updating its statistics (autovacuum is off)."""
    connection = await asyncpg.connect(url)
    try:
        partitions = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = $1::regclass"
        for table in GROWING:
            parts = [row[0] for row in await connection.fetch(partitions, table)]
            for name in parts or [table]:
                await connection.execute(f"ALTER TABLE {name} SET (autovacuum_enabled = false)")
            rows = rows_of(table, settings, count)
            first = next(rows)
            records = [tuple(first.values()), *(tuple(row.values()) for row in rows)]
            await connection.copy_records_to_table(table, records=records, columns=list(first))
            if "seq" in first:
                serial = "pg_get_serial_sequence($1, 'seq')"
                if table in ("event", "decision"):
                    serial = f"'{table}_seq'"
                await connection.execute(
                    f"SELECT setval({serial.replace('$1', repr(table))}, (SELECT MAX(seq) FROM {table}))"
                )
        # Thousands of changes of one row in one commit leave what no service leaves.
        await connection.execute("VACUUM aml_alert_count, aml_case_count, review_count")
    finally:
        await connection.close()
