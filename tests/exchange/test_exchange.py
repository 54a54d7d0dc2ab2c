"""Exports and imports through the command line, in all formats, with interruptions and faulty rows."""

import csv
import datetime as dt
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.live import Caller, Service, ask_store, place_store, run_cli
from vettance.errors import Refusal
from vettance.exchange.columns import read_row
from vettance.exchange.row_files import rows_of

NOW = int(time.time())


@pytest.fixture(scope="module")
def events(service: Service) -> tuple[Caller, list[str]]:
    """A tenant with three events, the second one labelled."""
    caller = Caller(service, *service.new_tenant("Exchange"))
    ids = []
    for number in range(3):
        body = {
            "eventName": "payment.attempt",
            "customer": {"externalId": f"c{number}", "email": "=x@mail.example"},
            "metadata": {"amount": number + 0.5, "note": 'a,b\n"c"'},
        }
        ids.append(caller.post("/api/v1/events", body).json["eventId"])
    assert caller.post(f"/api/v1/feedback/event/{ids[1]}", {"label": "FRAUD"}).status == 201
    return caller, ids


def export(service: Service, what: str, tenant: str, out: Path, *more: str) -> list[dict[str, Any]]:
    service.cli(
        "export", what, "--tenant", tenant, "--format", out.suffix[1:], "--output", str(out), "--force", *more
    )
    rows = []
    for _, row in rows_of(out.suffix[1:], out):
        assert not isinstance(row, str), row
        rows.append(dict(row))
    return rows


@pytest.mark.parametrize("file_format", ["csv", "ndjson", "parquet"])
@pytest.mark.parametrize("what", ["events", "decisions"])
def test_every_format_holds_every_row_in_order(
    service: Service, events: tuple[Caller, list[str]], tmp_path: Path, what: str, file_format: str
) -> None:
    caller, ids = events
    rows = export(service, what, caller.id, tmp_path / f"out.{file_format}")
    assert [row["id"] for row in rows] == ids
    assert [row["label"] or None for row in rows] == [None, "FRAUD", None]
    assert [row["customerId"] for row in rows] == ["c0", "c1", "c2"]
    assert {row["decision"] for row in rows} <= {"approve", "ALLOW", "review", "REVIEW"}
    assert {row["customerEmail"] for row in rows} == {"=x@mail.example"}
    if what == "events":
        sent = rows[2]["event"]
        sent = json.loads(sent) if isinstance(sent, str) else sent
        assert sent["metadata"] == {"amount": 2.5, "note": 'a,b\n"c"'}


def test_a_formula_is_made_harmless_for_spreadsheets(
    service: Service, events: tuple[Caller, list[str]], tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    export(service, "decisions", events[0].id, out)
    with out.open(newline="") as file:
        assert {row["customerEmail"] for row in csv.DictReader(file)} == {"'=x@mail.example"}


def test_from_and_to_bound_an_export(
    service: Service, events: tuple[Caller, list[str]], tmp_path: Path
) -> None:
    caller, _ = events
    out = tmp_path / "out.ndjson"
    assert export(service, "events", caller.id, out, "--from", str(NOW + 3600)) == []
    assert export(service, "events", caller.id, out, "--to", str(NOW - 3600)) == []
    assert len(export(service, "events", caller.id, out, "--from", "2026-01-01T00:00:00Z")) == 3


def test_standard_output_takes_an_export(service: Service, events: tuple[Caller, list[str]]) -> None:
    done = service.cli("export", "events", "--tenant", events[0].id)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == events[1]


def test_a_script_is_told_what_was_exported_and_the_name_tells_the_format(
    service: Service, events: tuple[Caller, list[str]], tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    told = service.cli("export", "events", "--tenant", events[0].id, "--out", str(out), "--json")
    assert told == {"what": "events", "rows": 3, "format": "csv", "out": str(out)}
    assert [dict(row)["id"] for _, row in rows_of("csv", out) if not isinstance(row, str)] == events[1]
    for more in (("--json",), ("--out", str(tmp_path / "out.xls"))):
        refused = service.cli("export", "events", "--tenant", events[0].id, *more, ok=False)
        assert refused.returncode == 1
        assert refused.stderr.count("\n") == 1


def test_ctrl_c_ends_a_dry_run_at_once(tmp_path: Path) -> None:
    data, env = tmp_path / "data", place_store()
    tenant = run_cli(data, "tenant", "create", "Interrupted", "--json", env=env)["tenantId"]
    file = history(tmp_path / "long.ndjson", ["not json"])
    with file.open("a") as long:
        long.write((json.dumps(past(1)) + "\n") * 200_000)
    command = ("import", str(file), "--tenant", tenant, "--dry-run", "--data", str(data))
    process = subprocess.Popen(
        [sys.executable, "-m", "vettance.cli", *command],
        env={**os.environ, **env}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while process.poll() is None and not file.with_name("long.ndjson.errors.ndjson").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said.strip() == "Aborted!"


def test_an_unknown_tenant_is_said_in_one_line(service: Service) -> None:
    done = service.cli("export", "events", "--tenant", "ten_x", ok=False)
    assert done.returncode != 0
    assert "there is no tenant" in done.stderr


def test_a_span_that_ends_before_it_begins_is_refused(
    service: Service, events: tuple[Caller, list[str]]
) -> None:
    done = service.cli("export", "events", "--tenant", events[0].id, "--from", "5", "--to", "4", ok=False)
    assert done.returncode != 0
    assert "--to" in done.stderr


def history(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def past(number: int, **more: Any) -> dict[str, Any]:
    event = {"eventName": "payment.attempt", "customer": {"externalId": f"past-{number}"}}
    return {"event": event, "occurredAt": NOW - 86_400 * 30 + number, **more}


def wait_total(caller: Caller, count: int) -> list[Any]:
    caller.service.wait_for(lambda: caller.get("/api/v1/events").json["total"] >= count, 20)
    found = caller.get("/api/v1/events?sortOrder=asc").json
    assert found["total"] == count
    data: list[Any] = found["data"]
    return data


def test_history_is_imported_in_order_with_its_labels(service: Service, tmp_path: Path) -> None:
    caller = Caller(service, *service.new_tenant("Import"))
    file = history(tmp_path / "h.ndjson", [past(1, label="FRAUD"), past(2), past(3, label="LEGIT")])
    done = service.cli("import", str(file), "--tenant", caller.id, "--json")
    known = {"accepted": 3, "known": 0, "refused": 0, "labelled": 2, "labelsUnused": 0}
    known |= {"dryRun": False, "reasons": []}
    assert done == known
    data = wait_total(caller, 3)
    assert [one["customer"]["externalId"] for one in data] == ["past-1", "past-2", "past-3"]
    assert [[said["label"] for said in one["feedback"]] for one in data] == [["FRAUD"], [], ["LEGIT"]]
    stats = caller.get(f"/api/v1/decisions/stats?from={NOW - 86_400 * 31}&to={NOW - 86_400 * 29}").json
    assert stats["totals"]["evaluated"] == 3
    asked = (
        f"SELECT code, SUM(evaluated) FROM rollup WHERE tenant = '{caller.id}' AND width_s = 60 GROUP BY code"
    )
    counted = dict(ask_store(service.data, service.env, asked))
    assert {name: counted.get(f"label:{name}") for name in ("FRAUD", "LEGIT")} == {"FRAUD": 1, "LEGIT": 1}


def test_importing_a_file_again_takes_nothing_twice(service: Service, tmp_path: Path) -> None:
    caller = Caller(service, *service.new_tenant("Again"))
    file = history(tmp_path / "h.ndjson", [past(number) for number in range(5)])
    for _ in range(2):
        done = service.cli("import", str(file), "--tenant", caller.id, "--json")
        assert done["accepted"] == 5
    wait_total(caller, 5)


def test_refused_rows_are_written_with_their_lines(service: Service, tmp_path: Path) -> None:
    caller = Caller(service, *service.new_tenant("Refused"))
    lines = [
        past(1),
        "not json",
        {"eventName": "no.time"},
        past(2, label="SCAM"),
        past(3),
        {"occurredAt": NOW},
    ]
    file = history(tmp_path / "h.ndjson", lines)
    errors = tmp_path / "errors.ndjson"
    told = service.cli(
        "import", str(file), "--tenant", caller.id, "--errors", str(errors), "--json", ok=False
    )
    assert told.returncode == 1
    done = json.loads(told.stdout)
    assert (done["accepted"], done["refused"]) == (2, 4)
    refused = [json.loads(line) for line in errors.read_text().splitlines()]
    assert [one["line"] for one in refused] == [2, 3, 4, 6]
    assert [set(one["details"]) for one in refused] == [{"row"}, {"occurredAt"}, {"label"}, {"eventName"}]
    wait_total(caller, 2)


def jobs_of(data: Path, env: dict[str, str]) -> list[str]:
    """Return the customers of the accepted events, in the order of their receipt."""
    sent = ask_store(data, env, "SELECT sent FROM job ORDER BY seq")
    return [json.loads(body)["customer"]["externalId"] for (body,) in sent]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_file_that_is_not_utf8_is_refused_before_a_row_is_taken(
    service: Service, tmp_path: Path, encoding: str
) -> None:
    file = tmp_path / "history.csv"
    names = "\n".join(f"payment,{NOW},{name}" for name in ("Ada", *["Peña"] * 300))
    file.write_text(f"eventName,occurredAt,metadata.name\n{names}\n", encoding)
    errors = tmp_path / "errors.ndjson"
    for options in ((), ("--dry-run",)):
        arguments = (str(file), "--tenant", service.tenant_id, "--errors", str(errors), *options)
        told = service.cli("import", *arguments, ok=False)
        assert told.returncode == 1
        line = 3 if encoding == "latin-1" else 1
        assert (
            told.stderr == f"Error: history.csv, line {line}, is not UTF-8; save the file in that encoding\n"
        )
        assert not errors.exists()


def test_an_import_that_was_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    data, errors, rows = tmp_path / "data", tmp_path / "errors.ndjson", 12_000
    env = place_store()
    tenant = run_cli(data, "tenant", "create", "Killed", "--json", env=env)["tenantId"]
    lines = [{"eventName": "no.time"} if number % 100 == 7 else past(number) for number in range(rows)]
    file = history(tmp_path / "h.ndjson", lines)
    command = ("import", str(file), "--tenant", tenant, "--errors", str(errors))
    begun = [sys.executable, "-m", "vettance.cli", *command, "--data", str(data)]
    first = subprocess.Popen(begun, env={**os.environ, **env})
    while first.poll() is None and not jobs_of(data, env):
        time.sleep(0.001)
    first.send_signal(signal.SIGKILL)
    first.wait(20)
    assert jobs_of(data, env), "it ended before it began"
    done = json.loads(run_cli(data, *command, "--json", ok=False, env=env).stdout)
    assert (done["accepted"], done["refused"]) == (rows * 99 // 100, rows // 100)
    assert jobs_of(data, env) == [f"past-{number}" for number in range(rows) if number % 100 != 7]
    said = Counter(json.loads(line)["line"] for line in errors.read_text().splitlines())
    assert said == Counter(number + 1 for number in range(rows) if number % 100 == 7)


def test_a_file_that_grows_while_it_is_imported_is_taken_once_it_is_whole(tmp_path: Path) -> None:
    data, rows = tmp_path / "data", 12_000
    env = place_store()
    tenant = run_cli(data, "tenant", "create", "Growing", "--json", env=env)["tenantId"]
    file = history(tmp_path / "h.ndjson", [past(number) for number in range(rows)])
    command = ("import", str(file), "--tenant", tenant)
    begun = [sys.executable, "-m", "vettance.cli", *command, "--data", str(data)]
    first = subprocess.Popen(begun, env={**os.environ, **env}, stderr=subprocess.PIPE)
    while first.poll() is None and not ask_store(data, env, "SELECT 1 FROM import_mark"):
        time.sleep(0.001)
    with file.open("a") as end:
        end.write(json.dumps(past(rows)) + "\n")
    assert b"h.ndjson changed while it was read" in first.communicate(timeout=60)[1]
    assert first.returncode == 1
    for table in ("job", "import_mark", "import_run"):
        assert ask_store(data, env, f"SELECT COUNT(*) FROM {table}") == [(0,)]
    assert run_cli(data, *command, "--json", env=env)["accepted"] == rows + 1
    assert jobs_of(data, env) == [f"past-{number}" for number in range(rows + 1)]


def test_a_large_event_survives_a_csv_file(tmp_path: Path) -> None:
    file = tmp_path / "large.csv"
    with file.open("w", newline="") as written:
        table = csv.writer(written)
        table.writerow(["occurredAt", "event"])
        full = {"text": "x" * 32_000}
        members = dict.fromkeys(("metadata", "custom_fields", "payload", "location"), full)
        table.writerow([NOW, json.dumps({"eventName": "e", **members, "extra": full})])
    [(line, row)] = rows_of("csv", file)
    assert line == 2
    assert not isinstance(row, str)
    assert read_row(row, NOW * 1000).event.extra == {"extra": full}


def test_a_dry_run_checks_and_keeps_nothing(service: Service, tmp_path: Path) -> None:
    caller = Caller(service, *service.new_tenant("Dry"))
    file = history(tmp_path / "h.ndjson", [past(1), "{"])
    done = service.cli("import", str(file), "--tenant", caller.id, "--dry-run", ok=False)
    assert done.returncode == 1
    assert "1 events are good, 1 refused" in done.stdout
    assert caller.get("/api/v1/events").json["total"] == 0


@pytest.mark.parametrize("file_format", ["csv", "ndjson", "parquet"])
def test_what_was_exported_can_be_imported(
    service: Service, events: tuple[Caller, list[str]], tmp_path: Path, file_format: str
) -> None:
    caller = Caller(service, *service.new_tenant("Back"))
    out = tmp_path / f"out.{file_format}"
    exported = export(service, "events", events[0].id, out)
    done = service.cli("import", str(out), "--tenant", caller.id, "--json")
    assert (done["accepted"], done["refused"]) == (3, 0)
    data = wait_total(caller, 3)
    assert [one["metadata"]["amount"] for one in data] == [0.5, 1.5, 2.5]
    assert [one["occurredAt"] for one in data] == [row["occurredAt"] for row in exported]
    assert [[said["label"] for said in one["feedback"]] for one in data] == [[], ["FRAUD"], []]


def test_columns_by_dotted_names_make_an_event() -> None:
    row = {
        "eventName": "login",
        "customer.externalId": "007",
        "metadata.amount": "12.5",
        "metadata.account": "0012",
        "metadata.vip": "true",
        "country": "",
        "occurredAt": str(NOW),
        "label": "LEGIT",
    }
    one = read_row(row, NOW * 1000)
    assert one.event.customer_id == "007"
    assert one.event.metadata == {"amount": 12.5, "account": "0012", "vip": True}
    assert one.event.country is None
    assert one.label == "LEGIT"


def test_columns_of_an_exported_decision_make_an_event() -> None:
    row = {"id": "evt_1", "decision": "deny", "customerId": "c", "deviceFingerprint": "f", "eventName": "e"}
    one = read_row({**row, "occurredAt": NOW}, NOW * 1000)
    assert (one.event.customer_id, one.event.fingerprint) == ("c", "f")
    assert one.event.extra == {}


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"event": "[1]"},
        {"event": "{"},
        {"event": {"eventName": 1}},
        {"event": 5},
        {"event": [1, 2]},
        {"eventName": "e", "label": ["FRAUD"]},
        {"eventName": "e", "label": 5},
        {"eventName": "e", "metadata.a": b"\xff", "metadata.b": object()},
        {"eventName": "e", "userAgent": "\ud800"},
        {"eventName": "e", "occurredAt": float("nan")},
        {"eventName": "e", "occurredAt": "9" * 400},
        {"eventName": "e", "extra": "x" * 1_100_000},
    ],
)
def test_a_row_that_is_no_event_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(Refusal):
        read_row({"occurredAt": NOW, **row}, NOW * 1000)


@pytest.mark.parametrize("line", [b"{", b"[1]", b'{"a": NaN}', b'{"a": "\xff"}', b"[" * 100_000])
def test_a_line_that_is_no_json_object_is_said_with_its_number(tmp_path: Path, line: bytes) -> None:
    file = tmp_path / "h.ndjson"
    file.write_bytes(b'{"a": 1}\n\n' + line + b"\n")
    found = list(rows_of("ndjson", file))
    assert found[0] == (1, {"a": 1})
    assert found[1][0] == 3
    assert found[1][1] == ("is not UTF-8" if b"\xff" in line else found[1][1])
    assert isinstance(found[1][1], str)


def test_a_file_that_is_there_is_overwritten_only_when_that_is_asked_for(
    service: Service, events: tuple[Caller, list[str]], tmp_path: Path
) -> None:
    out = tmp_path / "kept.csv"
    out.write_text("mine")
    export = ("export", "events", "--tenant", events[0].id)
    refused = service.cli(*export, "--output", str(out), ok=False)
    assert refused.returncode == 1
    assert "--force" in refused.stderr
    assert out.read_text() == "mine"
    service.cli(*export, "--out", str(out), "--force")
    assert out.read_text() != "mine"


def test_a_span_is_about_the_time_of_the_events(service: Service, tmp_path: Path) -> None:
    tenant = Caller(service, *service.new_tenant())
    for moment in ("2026-01-05T00:00:00Z", "2026-02-05T00:00:00Z"):
        answer = tenant.post("/api/v1/events", {"eventName": "x", "occurredAt": moment})
        assert answer.status == 201, answer.body
    out = tmp_path / "january.ndjson"
    for what in ("events", "decisions"):
        span = ("--from", "2026-01-01", "--to", "2026-02-01")
        service.cli("export", what, "--tenant", tenant.id, *span, "--output", str(out), "--force")
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        assert [row["occurredAt"] for row in rows] == ["2026-01-05T00:00:00.000Z"]


def test_a_file_of_another_system_is_imported_by_a_mapping_of_its_columns(
    service: Service, tmp_path: Path
) -> None:
    caller = Caller(service, *service.new_tenant("Mover"))
    path = tmp_path / "payments.csv"
    moment = dt.datetime.fromtimestamp(NOW - 9000, dt.UTC)
    path.write_text(
        "id,Created date (UTC),Amount,Currency,Customer ID,Card Fingerprint,Card Name\n"
        f"ch_1,{moment:%Y-%m-%d %H:%M:%S},49.90,eur,cus_7,fp-7,A. Person\n"
        f"ch_2,{moment + dt.timedelta(minutes=9):%Y-%m-%d %H:%M:%S},,eur,,fp-8,B. Person\n"
    )
    pairs = {
        "occurredAt": "Created date (UTC)",
        "metadata.amount": "Amount",
        "metadata.currency": "Currency",
        "metadata.cardHash": "Card Fingerprint",
        "customer.externalId": "Customer ID",
        "metadata.reference": "id",
    }
    columns = [word for member, column in pairs.items() for word in ("--column", f"{member}={column}")]
    service.cli(
        *("import", str(path), "--tenant", caller.id, *columns),
        *("--set", "eventName=payment.attempt", "--set", "eventCategory=TRANSACTION", "--wait"),
    )
    items = caller.get("/api/v1/events?sortOrder=asc").json["data"]
    first = caller.get(f"/api/v1/events/{items[0]['id']}").json
    assert first["eventName"] == "payment.attempt"
    assert first["customer"] == {"externalId": "cus_7"}
    assert first["metadata"] == {
        "amount": "49.90",  # A decimal text is a number to rules.
        "currency": "eur",
        "cardHash": "fp-7",
        "reference": "ch_1",
    }
    assert "A. Person" not in json.dumps(first)


@pytest.mark.parametrize(
    "words", [("--column", "amount"), ("--set", "=x"), ("--column", "a=b", "--column", "a=c")]
)
def test_a_mapping_that_is_none_is_refused(service: Service, tmp_path: Path, words: tuple[str, ...]) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a\n1\n")
    done = run_cli(service.data, "import", str(path), "--tenant", "ten_1", *words, ok=False)
    assert done.returncode == 2
    assert words[0] in done.stderr
