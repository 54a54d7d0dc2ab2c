"""Erasure, by planting a customer's names in every text that the API takes, and searching the whole store."""

import copy
import itertools
import re
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from tests.live import Caller, Service, started
from tests.webhooks.sink import Sink, sinking
from vettance.retention.stored_texts import ANSWERS, AUDIT, KEPT, LOG, REWRITTEN, STAFF, TextColumns
from vettance.settings.secret_key import load_secret
from vettance.settings.settings import read_settings
from vettance.tenants.vault import UnsealFailure, Vault

NAME, EMAIL = "İpek-Straße-77", "straße.müller+shop@bücher.example"
FORMS = (
    NAME,
    EMAIL,
    f"see {NAME.upper()}!",
    f"to:{EMAIL.upper()}",
    EMAIL.replace("+shop", ""),
    f"?of={quote(EMAIL, safe='')}&n={quote(NAME)}",
    unicodedata.normalize("NFD", f"{NAME} {EMAIL}"),
    f"{EMAIL.partition('@')[0]}@xn--bcher-kva.example",
)
ORIGIN = "https://shop.example"
#: What is left of every form once case, accents and escapes are gone.
TRACES = ("ipek-strasse-77", "strasse.muller")
#: Texts that no customer can be named by: words, ids and digests of the service's own, numbers, and the names
#: of files that the operator gave; and forms that an erasure forgets.
NAMELESS = {
    "aml_alert": "id case_id origin typology rule_id severity state resolution",
    "aml_alert_count": "origin rule_id typology severity state resolution",
    "aml_alert_entity": "alert entity digest",
    "aml_alert_event": "alert event rule_id",
    "aml_case": "id state severity resolution",
    "aml_case_entry": "case_id kind",
    "aml_event": "id digest status import_id",
    "aml_list_set": "id versions",
    "aml_rescreening": "list_set",
    "aml_rule_count": "rule measure amount",
    "aml_rule_last_hit": "rule",
    "aml_ruleset": "digest state",
    "aml_screening": "id decision profile algorithm index_id alert case_id",
    "aml_screening_setting": "profile bounds",
    "aml_subject": "list_set screening",
    "api_key": "id digest hint scopes",
    "attempt": "error",
    "audit_entry": "id action digests chain",
    "audit_head": "chain",
    "audit_part": "entry name salt",
    "change": "area subject",
    "chunk_column": "name data",
    "console_session": "id digest user_id stage method kept_form",
    "decision": "id event_category decision level reasons",
    "delivery": "id subscription type subject state lease",
    "deployment": "secret_digest",
    "entry_link": "digest user_id",
    "event": "id source",
    "failing_work": "work subject error",
    "feedback": "id target type label",
    "id_search": "digits",
    "import_mark": "digest",
    "import_run": "id kind state",
    "interest": "type subscription slot",
    "job": "id label state event import_id kind",
    "known_address": "user_id address_digest",
    "label": "id event",
    "list_entry": "id type list_type",
    "feature_version": "digest",
    "message": "message_type message_subject next_subscription last_subscription",
    "model": "digest features body card average_precision",
    "model_change": "id change state author decided_by",
    "model_drift": "drift largest",
    "model_setting": "mode features failure",
    "recovery_code": "user_id digest",
    "rollup": "code",
    "roster": "kind terms",
    "alert_model": "digest body card",
    "alert_model_setting": "failure",
    "backtest": "id state progress",
    "rule_count": "rule measure amount",
    "rule_last_hit": "rule",
    "rule_step": "id kind step",
    "snooze": "kind rule type author",
    "review": "state claimed_by outcome label settled_by entries check_state check_outcome checked_by bulk",
    "review_bulk": "state outcome label asked_by decided_by ended_by",
    "review_bulk_piece": "bulk decisions",
    "review_count": "state",
    "ruleset": "digest state",
    "schema_version": "name digest",
    "sign_in_failure": "subject",
    "stream_consumer": "name kind",
    "stream_message": "message digest consumer job",
    "subscription": "id slot event_types secret next_secret old_secret",
    "tenant": "id",
    "token_key": "kid",
    "user_account": "id password totp totp_new theme time_zone",
    "user_membership": "user_id roles",
    "watchlist_index": "id versions",
    "watchlist_version": "source version",
}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Caller, Sink]]:
    """A service with a tenant whose every record names the customer."""
    service = started(tmp_path_factory.mktemp("planted"), VETTANCE_UNSAFE_WEBHOOKS="1")
    service.cli("watchlist", "import", "--source", "sample")
    tenant_id, key = service.new_tenant("Planted")
    service.cli("tenant", "set", tenant_id, "--aml", "on")
    caller = Caller(service, tenant_id, key)
    service.wait_for(lambda: caller.get("/api/v1/aml/cases").status == 200)
    screened = {"inputName": "Anna", "externalId": NAME}
    service.wait_for(lambda: caller.post("/api/v1/aml/screen", screened).status == 200, 20)
    with sinking() as sink:
        yield service, caller, sink
    service.stop()


def columns(service: Service) -> dict[str, list[str]]:
    """Every column of the store that may hold a text, by table, as the store itself says."""
    if "VETTANCE_DATABASE_URL" in service.env:
        rows = service.rows(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' "
            "AND data_type NOT IN ('bigint', 'integer', 'boolean', 'smallint') "
            # The store makes these anew with what they are made of.
            "AND is_generated = 'NEVER' "
            "AND table_name IN (SELECT relname FROM pg_class WHERE NOT relispartition)"
        )
    else:
        rows = service.rows(
            "SELECT one.name, part.name FROM sqlite_master AS one, pragma_table_info(one.name) AS part "
            "WHERE one.type = 'table' AND part.type <> 'INTEGER' AND one.name NOT LIKE 'sqlite%' "
            "AND one.name NOT LIKE '%search#_%' ESCAPE '#'"
        )
    found: dict[str, list[str]] = {}
    for table, column in rows:
        found.setdefault(table, []).append(column)
    return found


def test_every_text_of_the_store_has_its_place_in_the_tables_of_erasure(service: Service) -> None:
    known = {(table, name) for table, names in (LOG | STAFF | AUDIT).items() for name in names}
    for place in (*REWRITTEN, ANSWERS, *(one.place for one in KEPT)):
        known |= {(place.table, name) for name in (*place.columns, *place.keys)}
    known |= {(table, name) for table, names in NAMELESS.items() for name in names.split()}
    there = {(table, name) for table, names in columns(service).items() for name in names if name != "tenant"}
    assert there - known == set()


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, member in pairs:
            yield from leaves(member, (*path, key))


def members(schema: Any, document: Any) -> dict[str, Any]:
    """The members that a body may have, by what the document says of them."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema.get("properties", {})


def bodies(example: Any, schema: Any, document: Any) -> Iterator[Any]:
    """An example, each time with another of its texts, or of those it leaves out, naming the customer."""
    forms = itertools.cycle(FORMS)
    absent = [(name,) for name in members(schema, document) if name not in example]
    nested = [
        (name, inner)
        for name, part in members(schema, document).items()
        for inner in members(part, document)
        if inner not in (example.get(name) or {})
    ]
    for path in (*leaves(example), *absent, *nested):
        # Some members take an id, others an address; whatever one refuses, another form may pass.
        for form in (next(forms), NAME, EMAIL):
            body = copy.deepcopy(example)
            inner = body
            for key in path[:-1]:
                inner = inner.setdefault(key, {}) if isinstance(inner, dict) else inner[key]
            inner[path[-1]] = form
            if "customer" in body:
                # An address that other customers have too would be theirs as well.
                body["customer"]["externalId"] = NAME.upper() if form is EMAIL else NAME
            yield body


def plant(caller: Caller, sink: Sink) -> int:
    """Send every body of every operation; returns how many were taken."""
    document = caller.get("/openapi.json").json
    body = {"eventName": "user.login", "customer": {"externalId": NAME, "email": EMAIL}}
    event = caller.post("/api/v1/events", body).json["eventId"]
    types = ["EVENT_RISK_EVALUATED", "AML_CASE_CREATED"]
    hook = {"url": f"{sink.url}&n=1", "eventTypes": types[:1]}
    hook_id = caller.post("/api/v1/webhooks/subscriptions", hook).json["id"]
    transfer = {
        "eventName": "transfer.sent",
        "externalEventId": f"tx-{NAME}",
        "customer": {"externalId": NAME},
        "metadata": {"amount": "9500.00", "currency": "EUR", "counterpartyCountry": "KP", "accountId": EMAIL},
    }
    assert caller.post("/api/v1/aml/events", transfer).status < 300
    case = caller.get("/api/v1/aml/cases").json["data"][0]["id"]
    token = {
        "sdkSessionId": f"sdk-{NAME}",
        "tenantSessionId": EMAIL,
        "userExternalId": NAME,
        "origin": ORIGIN,
    }
    made = caller.post("/api/v1/websdk/tokens", token).json
    taken = 0
    for path, operations in document["paths"].items():
        content = operations.get("post", {}).get("requestBody", {}).get("content", {}).get("application/json")
        if content is None or "example" not in content or path.endswith(("/resolve", "/reject", "/replay")):
            continue
        ids = {"webhooks": hook_id, "feedback": event, "aml": case}
        filled = path.replace("{id}", ids.get(path.split("/")[3], "")).replace("{email}", quote(EMAIL))
        for number, sent in enumerate(bodies(content["example"], content["schema"], document)):
            key = f"{quote(EMAIL) if number % 3 == 0 else 'k'}/{number}"
            headers = {"Idempotency-Key": key}
            if path.endswith("/websdk/signals"):
                headers = {"Authorization": f"Bearer {made['token']}", "Origin": ORIGIN}
                sent |= {"sdkSessionId": token["sdkSessionId"], "sentAt": time.time_ns() // 1_000_000}
            headers["X-Request-Id"] = f"for-{quote(EMAIL, safe='')}"[:64]
            answer = caller.service.post(
                filled, sent, key=None if "Authorization" in headers else caller.key, headers=headers
            )
            taken += answer.status < 300
    return taken


def said(value: Any) -> str:
    """Fold what a column holds, past every escape."""
    text = bytes(value).decode("utf-8", "replace") if isinstance(value, bytes | memoryview) else str(value)
    text = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)
    text = unicodedata.normalize("NFKD", unquote(text)).casefold()
    return "".join(
        letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter)
    )


def names_in(service: Service) -> dict[str, int]:
    """In how many rows of which table a trace of the customer stands, whatever column it is."""
    secret = load_secret(read_settings(data=str(service.data)))
    found: dict[str, int] = {}
    for table in columns(service):
        ask = f"SELECT * FROM {table}"
        if table.endswith("_search") and "VETTANCE_DATABASE_URL" not in service.env:
            # It keeps no texts; what it finds is asked for.
            ask = f"SELECT '{TRACES[1]}' FROM {table} WHERE {table} MATCH '\"strasse\"'"
        for row in service.rows(ask):
            text = " ".join(map(said, row))
            if table == "answer":
                text += said(opened(secret, row))
            if any(trace in text for trace in TRACES):
                found[table] = found.get(table, 0) + 1
    return found


def opened(secret: bytes, row: Any) -> bytes:
    tenant, path, key, _, content, *_ = row
    try:
        return Vault(secret).open(bytes(content), "answer", tenant, path, key)
    except UnsealFailure:
        raise AssertionError(f"{path} {key} does not open") from None


def rows_of(kept: list[dict[str, Any]]) -> dict[str, int]:
    """What the answer to an erasure says of the rows that stay, by table."""
    by_words: dict[str, TextColumns] = {one.what: one.place for one in KEPT}
    told: dict[str, int] = {}
    for one in kept:
        if one["count"] is not None:
            table = by_words[one["what"]].table
            told[table] = told.get(table, 0) + one["count"]
    return told


def test_names_planted_everywhere_are_gone_but_for_what_the_answer_counts(
    planted: tuple[Service, Caller, Sink],
) -> None:
    service, caller, sink = planted
    sink.answer = f"no such customer: {NAME}".encode()
    assert plant(caller, sink) > 60
    service.wait_for(lambda: not service.rows("SELECT 1 FROM job WHERE state = 'accepted'"), 20)
    sink.wait(3)
    before = names_in(service)
    assert before.keys() >= {
        *("event", "decision", "feedback", "list_entry", "message", "attempt", "answer", "signal_batch"),
        *("aml_event", "aml_case", "aml_alert", "aml_case_entry", "aml_screening", "aml_subject"),
    }
    erase = ("customer", "erase", "--tenant", caller.id, "--external-id", NAME, "--json")
    done = service.cli(*erase)
    assert names_in(service) == rows_of(done["kept"])
    # No event tells the address any more.
    done = service.cli(*erase, "--also", "aml", "--also", "lists", "--email", EMAIL)
    assert {one["what"] for one in done["kept"] if one["count"]} <= {"URLs of webhooks"}
    assert names_in(service) == rows_of(done["kept"])
    for path in caller.get("/openapi.json").json["paths"]:
        if "{" not in path and "webhooks" not in path and (answer := caller.get(path)).status == 200:
            assert not [trace for trace in TRACES if trace in said(answer.body)], path


def files_that_name(data: Path) -> set[str]:
    """The files of a data folder in which a trace of the customer stands, be it in freed space."""
    files = [path for path in data.rglob("*") if path.is_file()]
    return {path.name for path in files if any(trace in said(path.read_bytes()) for trace in TRACES)}


def fill(caller: Caller) -> None:
    """Store rows of many sizes, so that pages are split, and texts that take pages of their own."""
    for number in range(150):
        who = {"externalId": NAME, "email": EMAIL} if number % 3 else {"externalId": f"c-{number}"}
        metadata = {"note": f"{NAME} " + "x" * (37 * number % 3_000)}
        body = {"eventName": "user.login", "customer": who, "metadata": metadata}
        event = caller.post("/api/v1/events", body).json["eventId"]
        if number % 10 == 0:
            notes = {"label": "FRAUD", "notes": f"{EMAIL} " + "y" * 1_000}
            assert caller.post(f"/api/v1/feedback/event/{event}", notes).status == 201


@pytest.mark.parametrize("is_running", [False, True])
def test_no_file_of_the_store_holds_a_name_once_it_is_compact(tmp_path: Path, is_running: bool) -> None:
    own_service = Service(tmp_path)  # On the embedded store, whatever the others are on.
    own_service.tenant_id, own_service.api_key = own_service.new_tenant()
    own_service.start()
    caller = Caller(own_service, own_service.tenant_id, own_service.api_key)
    fill(caller)
    own_service.stop()
    assert "vettance.db" in files_that_name(own_service.data)
    if is_running:
        own_service.start()
    done = own_service.cli("customer", "erase", "--tenant", caller.id, "--external-id", NAME, "--json")
    assert (done["compactedAt"] is None) == is_running
    if is_running:
        refused = own_service.cli("retention", "compact", ok=False)
        assert refused.returncode == 1
        assert "stop it first" in refused.stderr
        own_service.stop()
        assert own_service.cli("retention", "compact", "--json")["compactedAt"]
    assert files_that_name(own_service.data) == set()
    own_service.start()
    assert caller.get("/api/v1/events").json["total"] == 150
    assert caller.get(f"/api/v1/decisions?customer={done['pseudonym']}").json["total"] == 100
    own_service.stop()
