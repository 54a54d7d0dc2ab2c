"""Erasure of customers whom nothing but AML events, cases and notes name."""

import json
from typing import Any

from tests.live import Caller, Service

ID, EMAIL, SHARED = "erika-aml-77", "erika.aml@mail.example", "family@mail.example"


def watched(caller: Caller, external_id: str, customer: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    body = {
        "eventName": "transfer.sent",
        "externalEventId": external_id,
        "customer": customer,
        "metadata": {"amount": 900, "direction": "out", "counterpartyCountry": "KP", **metadata},
    }
    told = caller.post("/api/v1/aml/events", body)
    assert told.status == 200, told.json
    answer: dict[str, Any] = told.json
    return answer


def texts(service: Service, caller: Caller, *tables: str) -> str:
    """Return every text that the store has of a tenant in some tables."""
    rows = (service.rows(f"SELECT * FROM {name} WHERE tenant = '{caller.id}'") for name in tables)
    return "\n".join(str(row) for found in rows for row in found).lower()


def test_addresses_that_only_aml_events_tell_are_erased_and_shared_ones_stay_in_theirs(
    service: Service,
) -> None:
    caller = Caller(service, *service.new_tenant("Erase"))
    service.cli("tenant", "set", caller.id, "--aml", "on")
    service.wait_for(lambda: caller.get("/api/v1/aml/cases").status == 200)
    erika = {"externalId": ID, "name": "Erika Mustermann", "metadata": {"surname": "Mustermann"}}
    first = watched(caller, "e-1", {**erika, "email": EMAIL.title()})
    watched(caller, "e-2", {**erika, "email": SHARED}, counterpartyId="shop")
    watched(caller, "e-3", {"externalId": "paul-8", "email": SHARED}, counterpartyId=ID)
    case = caller.get(f"/api/v1/aml/cases?customer={ID}").json["data"][0]["id"]
    noted = caller.post(f"/api/v1/aml/cases/{case}/notes", {"notes": f"Wrote to {EMAIL}.", "officer": "ann"})
    assert noted.status == 200

    kept = service.cli("customer", "erase", "--tenant", caller.id, "--external-id", ID, "--json")["kept"]
    assert {"AML events", "AML cases", "notes of AML cases"} <= {one["what"] for one in kept}
    assert EMAIL not in texts(service, caller, "audit_part")
    assert EMAIL in texts(service, caller, "aml_event", "aml_case_entry")

    done = service.cli(
        "customer", "erase", "--tenant", caller.id, "--external-id", ID, "--also", "aml", "--json"
    )
    left = texts(service, caller, "aml_event", "aml_case_entry", "aml_case", "aml_alert", "audit_part")
    for name in (ID, EMAIL, "mustermann"):
        assert name not in left, name
    events = json.dumps(caller.get(f"/api/v1/aml/cases?customer={done['pseudonym']}").json)
    assert case in events
    theirs = caller.get("/api/v1/aml/cases?customer=paul-8").json["data"][0]["id"]
    sent = caller.get(f"/api/v1/aml/cases/{theirs}").json["events"][0]["event"]
    assert sent["customer"] == {"externalId": "paul-8", "email": SHARED}
    assert sent["metadata"]["counterpartyId"] == done["pseudonym"]
    # A retry of what was sent is still known as one, and answered under the new name.
    again = watched(caller, "e-1", {**erika, "email": EMAIL.title()})
    assert (again["id"], again["status"]) == (first["id"], first["status"])
    assert ID not in json.dumps(again)
