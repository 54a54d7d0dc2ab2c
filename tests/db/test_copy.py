"""Moving house: everything arrives, is found again, and the numbers go on."""

from pathlib import Path

import pytest

from databases import absence, ask, database
from live import Service, run_cli, started

LOGIN = {
    "eventName": "user.login",
    "eventCategory": "AUTHENTICATION",
    "customer": {"externalId": "c-moved", "email": "anna@example.com"},
}


def test_a_store_is_copied_and_served_from_postgresql(tmp_path: Path) -> None:
    if (reason := absence()) is not None:
        pytest.skip(reason)
    with database() as url:
        before = started(tmp_path, VETTANCE_DATABASE_URL="")
        ids = [
            before.post("/api/v1/decisions/evaluate", LOGIN).json["correlationIds"]["eventId"]
            for _ in range(30)
        ]
        assert (
            before.post("/api/v1/lists", {"type": "IP", "value": "203.0.113.9", "listType": "block"}).status
            == 201
        )
        assert before.stop() == 0
        arguments = ("copy", "--from", f"sqlite:{tmp_path}", "--to", url)
        copied = _copy(*arguments, "--json")
        assert copied["tables"]["event"] == copied["tables"]["decision"] == 30
        assert copied["tables"]["list_entry"] == 1
        assert ask(url, "SELECT id FROM event ORDER BY seq") == [(event_id,) for event_id in ids]
        again = run_cli(tmp_path, *arguments, ok=False, data=False)
        assert again.returncode == 1
        assert "the database is not empty" in again.stderr
        after = Service(tmp_path)
        after.env = {"VETTANCE_DATABASE_URL": url}
        after.api_key = before.api_key
        after.start()
        for event_id in (ids[0], ids[-1]):
            assert after.get(f"/api/v1/decisions/{event_id}").status == 200
        newest = after.post("/api/v1/decisions/evaluate", LOGIN).json["correlationIds"]["eventId"]
        found = after.get("/api/v1/decisions?search=c-moved&limit=100").json
        assert [one["id"] for one in found["data"]] == [newest, *reversed(ids)]
        assert after.stop() == 0


def _copy(*arguments: str) -> dict[str, dict[str, int]]:
    copied: dict[str, dict[str, int]] = run_cli(Path(), *arguments, data=False)
    return copied


def test_what_cannot_be_copied_is_said_in_one_line(tmp_path: Path) -> None:
    for source, target, said in (
        ("vettance-data", "postgresql://127.0.0.1/x", "--from takes sqlite:"),
        (f"sqlite:{tmp_path}", "mysql://127.0.0.1/x", "--to takes a URL"),
        (f"sqlite:{tmp_path}", "postgresql://127.0.0.1/x", "there is no store"),
    ):
        done = run_cli(tmp_path, "copy", "--from", source, "--to", target, ok=False, data=False)
        assert done.returncode == 1
        assert said in done.stderr
