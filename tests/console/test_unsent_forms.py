"""What somebody typed is not lost when the service cannot take it, and is sent again by a button."""

import html
import re
import resource
from pathlib import Path

from tests.console.visitor import PASSWORD, visitor_of
from tests.live import started
from tests.telemetry.test_outages import LOGIN, writer_of

REASON = 'Said "twice" that <it> was his card.'


def test_a_form_that_the_store_did_not_take_is_shown_and_sent_again(tmp_path: Path) -> None:
    service = started(tmp_path, VETTANCE_DATABASE_URL="")
    ann = visitor_of(service, service.tenant_id, "analyst")
    fields = {"type": "IP", "value": "203.0.113.9", "listType": "block", "expiry": "7d", "reason": REASON}
    csrf = ann.get("/console/lists").csrf
    writer = writer_of(service)
    _, hard = resource.prlimit(writer, resource.RLIMIT_FSIZE)
    # The log of the store cannot grow beyond what it has.
    size = (tmp_path / "vettance.db-wal").stat().st_size
    resource.prlimit(writer, resource.RLIMIT_FSIZE, (size, hard))
    service.wait_for(lambda: service.post("/api/v1/decisions/evaluate", LOGIN).status == 503)

    failed = ann.post("/console/lists", {"csrf": csrf, **fields}, Referer=f"{service.base_url}/console/lists")
    assert failed.status == 503
    assert "It may not have been done." in failed.words
    assert "Reason Said" in failed.words
    assert "<it>" not in failed.text
    password = {"csrf": csrf, "old": PASSWORD, "new": "another horse battery", "again": PASSWORD}
    refused = ann.post("/console/profile/password", password)
    assert refused.status == 503
    assert PASSWORD not in refused.text
    foreign = ann.post("/console/lists", {"csrf": csrf, **fields}, origin="https://elsewhere.example")
    assert "203.0.113.9" not in foreign.text

    resource.prlimit(writer, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))
    service.wait_for(lambda: service.post("/api/v1/decisions/evaluate", LOGIN).status == 200, 20)
    form = next(one for one in re.findall(r"<form\b.*?</form>", failed.text, re.DOTALL) if "203.0" in one)
    inputs = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', form)
    again = {name: html.unescape(value) for name, value in inputs}
    assert 'action="/console/lists"' in form
    assert ann.post("/console/lists", again).status == 303
    (entry,) = service.get("/api/v1/lists").json["data"]
    assert (entry["value"], entry["reason"]) == ("203.0.113.9", REASON)
    assert service.stop() == 0
