"""A tenant's own list is screened in the same way as any other, and neither hit nor seen by anybody else."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import Caller, Service, run_cli, started

SCREEN = "/api/v1/aml/screen"
LISTS = "/api/v1/aml/watchlists"
SHARED = "name,type,birth_dates\nRosalind Achterberg,INDIVIDUAL,1969-10-11\n"
OWN = (
    "id,name,type,reason\n1,Quillon Vandermeersch,INDIVIDUAL,{reason}\n2,Ottoline Brakspear,INDIVIDUAL,Mule\n"
)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = started(tmp_path_factory.mktemp("own-lists"))
    yield service
    assert service.stop() == 0


def officer(service: Service, name: str) -> Caller:
    tenant_id, key = service.new_tenant(name)
    service.cli("tenant", "set", tenant_id, "--aml", "on", "--json")
    caller = Caller(service, tenant_id, key)
    service.wait_for(lambda: caller.get(LISTS).status == 200)
    return caller


def write(folder: Path, text: str) -> str:
    path = folder / "list.csv"
    path.write_text(text)
    return str(path)


def sources(caller: Caller) -> set[str]:
    return {row["source"] for row in caller.get(LISTS).json["data"]}


def screen(caller: Caller, name: str, external_id: str = "subject") -> dict[str, object]:
    answer = caller.post(SCREEN, {"inputName": name, "externalId": external_id})
    assert answer.status == 200
    found: dict[str, object] = answer.json
    return found


def test_a_list_of_ones_own_is_hit_by_its_tenant_alone(running: Service, tmp_path: Path) -> None:
    one, other = officer(running, "Owner"), officer(running, "Neighbour")
    path = write(tmp_path, OWN.format(reason="Fraud"))
    said = running.cli("watchlist", "import", "--source", "csv", "--tenant", one.id, path, "--json")
    assert (said["source"], said["entities"]) == ("own", 2)
    # Nothing else is loaded: the owner is screened against this list, and the other against none.
    running.wait_for(lambda: one.post(SCREEN, {"inputName": "Ann", "externalId": "a"}).status == 200)
    assert other.post(SCREEN, {"inputName": "Ann", "externalId": "a"}).status == 502
    found = screen(one, "Quillon Vandermeersch")
    assert (found["decision"], found["listsHit"]) == ("REVIEW", ["OWN LIST"])
    assert (sources(one), sources(other)) == ({"own"}, set())

    running.cli("watchlist", "import", "--source", "csv", write(tmp_path, SHARED))
    running.wait_for(lambda: other.post(SCREEN, {"inputName": "Ann", "externalId": "a"}).status == 200)
    running.wait_for(lambda: screen(one, "Rosalind Achterberg")["decision"] == "REVIEW")
    assert set(screen(one, "Nobody Atall")["listVersions"]) == {"csv", "own"}  # type: ignore[call-overload]
    assert screen(one, "Quillon Vandermeersch")["decision"] == "REVIEW"
    assert screen(other, "Quillon Vandermeersch")["decision"] == "AUTO_CLEAR"
    assert screen(other, "Rosalind Achterberg")["decision"] == "REVIEW"
    assert (sources(one), sources(other)) == ({"csv", "own"}, {"csv"})

    rows = running.cli("watchlist", "list", "--json")
    assert {(row["source"], row["tenant"]) for row in rows} == {("csv", None), ("own", one.id)}
    running.cli("watchlist", "remove", "--source", "csv", "--tenant", one.id)
    running.wait_for(lambda: screen(one, "Quillon Vandermeersch")["decision"] == "AUTO_CLEAR")
    assert sources(one) == {"csv"}


def test_what_cannot_be_a_tenants_own_list_is_refused(running: Service, tmp_path: Path) -> None:
    path = write(tmp_path, SHARED)
    tenant_id, _key = running.new_tenant("Refused")
    for arguments, reason in (
        (("--source", "un_sc", "--tenant", tenant_id, path), "other lists are everybody's"),
        (("--source", "own", path), "goes with --tenant"),
        (("--source", "csv", "--tenant", "ten_nobody", path), "there is no tenant"),
    ):
        refused = run_cli(running.data, "watchlist", "import", *arguments, ok=False)
        assert refused.returncode == 1
        assert reason in refused.stderr
