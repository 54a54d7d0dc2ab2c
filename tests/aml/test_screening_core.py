"""The parts of screening that need no service: the deadline, freshness, and which alert says it already."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vettance.aml.screening.freshness import DATA_OLD_MS, STALE_MS, is_stale, stale_reason
from vettance.aml.screening.screen import Screener
from vettance.aml.screening.screening_request import party_request, read_screen_request, sent_of
from vettance.aml.screening.sql import history_of
from vettance.db.engine import Row, Statement
from vettance.db.sqlite import SqliteStore
from vettance.errors import GatewayTimeout, Unprocessable
from vettance.ids import IdSource
from vettance.watchlists.entity import BirthDate, EntityType
from vettance.watchlists.list_store import Version
from vettance.watchlists.refresh import IndexKeeper, import_list
from vettance.watchlists.sql import StoredVersion
from vettance.wire.payload import decode

NOW_MS = 1_790_000_000_000
BODY = {"inputName": "Rosalind Achterberg", "externalId": "r"}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(tmp_path / "vettance.db", writer="thread")
    await opened.migrate()
    yield opened
    await opened.close()


async def test_past_the_deadline_it_is_504_and_nothing_is_kept(store: SqliteStore, tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("name\nRosalind Achterberg\n")
    await import_list(store, tmp_path, "csv", [path], NOW_MS)
    keeper = IndexKeeper(store, tmp_path)
    await keeper.reload()
    hasty = Screener(store, IdSource(), keeper, deadline_s=0.0)
    try:
        with pytest.raises(GatewayTimeout):
            await hasty.screen("ten_x", read_screen_request(BODY), b"{}")
    finally:
        hasty.close()
    for table in ("aml_screening", "aml_case", "aml_alert"):
        assert await store.read(Statement(f"SELECT COUNT(*) FROM {table}")) == [(0,)]


def listed(source: str, checked_at_ms: int) -> StoredVersion:
    version = Version(source=source, version="v", entities=1, names=1)
    return StoredVersion(version=version, current=True, imported_at_ms=0, checked_at_ms=checked_at_ms)


def test_only_a_list_with_a_publisher_grows_stale() -> None:
    old = NOW_MS - STALE_MS - 1
    versions = [listed("un_sc", old), listed("us_ofac_sdn", NOW_MS), listed("csv", old), listed("gone", old)]
    assert [is_stale(stored, NOW_MS) for stored in versions] == [True, False, False, False]
    assert stale_reason(versions, NOW_MS) == "not refreshed for 7 days: un_sc"
    assert stale_reason(versions[1:], NOW_MS) is None
    assert stale_reason([], NOW_MS) is None


def test_old_data_is_named_however_lately_it_was_imported() -> None:
    stored = listed("un_sc", NOW_MS)
    version = msgspec.structs.replace(stored.version, data_as_of_ms=NOW_MS - DATA_OLD_MS)
    of_old = msgspec.structs.replace(stored, version=version)
    assert stale_reason([of_old], NOW_MS) is None
    assert (stale_reason([stored, of_old], NOW_MS + 1) or "").startswith(
        "data older than 30 days: un_sc (of 20"
    )


def test_of_several_resolutions_of_a_pair_the_last_counts() -> None:
    mistaken = ("alr_1", "cas_1", "HIGH", "FALSE_POSITIVE", "e", "d1")
    meant = ("alr_2", "cas_2", "HIGH", "TRUE_MATCH", "e", "d1")
    still_open = ("alr_3", "cas_3", "HIGH", None, "e", "d2")
    assert history_of([mistaken]).cleared == {"e": "d1"}
    assert history_of([mistaken, meant]).cleared == {}
    assert history_of([meant, mistaken]).cleared == {"e": "d1"}
    assert history_of([mistaken, still_open]).open_alerts[0].entities == {"e": "d2"}


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_MEMBERS = (
    *("inputName", "externalId", "entityType", "inputDob", "inputNationality", "inputAliases"),
    *("inputIdDocuments", "sensitivityProfile"),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(_MEMBERS), _json))
def test_any_json_object_is_a_subject_or_422(body: dict[str, object]) -> None:
    try:
        request = read_screen_request(body)
    except Unprocessable:
        return
    assert request.external_id
    assert any(letter.isalnum() for letter in request.subject.name)


def test_the_body_written_for_a_party_reads_as_the_same_subject() -> None:
    request = party_request(
        "customer-1",
        "Rosalind Achterberg",
        counterparty=True,
        kind=EntityType.INDIVIDUAL,
        birth="1969-10-11",
        country="nl",
        now_ms=NOW_MS,
    )
    assert request is not None
    assert request.role == "counterparty rosalind achterberg"
    again = read_screen_request(decode(sent_of(request)))
    assert (again.external_id, again.subject) == ("customer-1", request.subject)
    assert again.subject.birth == BirthDate("1969-10-11")
    assert again.subject.countries == ("NL",)


def test_a_party_without_a_readable_name_is_not_screened_and_bad_details_are_left_out() -> None:
    assert party_request("customer-1", " - ", counterparty=False, now_ms=NOW_MS) is None
    assert party_request("customer-1", "x" * 1025, counterparty=False, now_ms=NOW_MS) is None
    for birth in ("11.10.1969", "2068-10-11"):
        request = party_request(
            "customer-1", "Ann", counterparty=False, birth=birth, country="Holland", now_ms=NOW_MS
        )
        assert request is not None
        assert (request.role, request.subject.birth, request.subject.countries) == ("", None, ())


def test_nobody_is_born_on_a_day_that_has_begun_nowhere() -> None:
    noon_ms = 1_785_585_600_000  # 1 August 2026, 12:00 UTC: the 2nd has begun in the zones from +12 hours on
    assert read_screen_request({**BODY, "inputDob": "2026-08-02"}, noon_ms).subject.birth is not None
    with pytest.raises(Unprocessable) as refused:
        read_screen_request({**BODY, "inputDob": "2026-08-03"}, noon_ms)
    assert refused.value.details == {"inputDob": "must not be in the future"}
    assert read_screen_request({**BODY, "inputDob": "2026-08-03"}).subject.birth is not None


async def test_two_processes_that_screen_one_subject_at_once_make_one_alert(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "own.csv"
    path.write_text("name\nRosalind Achterberg\n")
    await import_list(store, tmp_path, "csv", [path], NOW_MS)
    keeper = IndexKeeper(store, tmp_path)
    await keeper.reload()
    request = read_screen_request(BODY)
    first, second = (Screener(store, IdSource(), keeper) for _ in range(2))
    read = store.read
    answers: list[bytes] = []

    async def read_late(statement: Statement) -> list[Row]:
        # Between the history and the case that the second one reads, the first one screens.
        if "FROM aml_case" in statement.sql and not answers:
            answers.append(b"")
            answers[0] = await first.screen("ten_x", request, b"{}")
        return await read(statement)

    monkeypatch.setattr(store, "read", read_late)
    try:
        answers.append(await second.screen("ten_x", request, b"{}"))
    finally:
        first.close()
        second.close()
    one, other = (decode(answer) for answer in answers)
    assert (one["alertId"], one["caseId"]) == (other["alertId"], other["caseId"])
    assert (one["caseCreated"], other["caseCreated"]) == (True, False)
    assert await read(Statement("SELECT COUNT(*), SUM(events) FROM aml_alert")) == [(1, 2)]
