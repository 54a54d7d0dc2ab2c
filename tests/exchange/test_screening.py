"""`vettance screen` screens everybody in a file, once, whatever happens to it in between."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from tests.live import run_cli
from vettance.exchange.screening.journal import Journal, JournalBusy, JournalLine

LIST = """\
id,name,type,birth_dates,countries,documents,reason
1,Rosalind Achterberg,INDIVIDUAL,1969-10-11,NL,passport:NX1234567:NL,Chargeback ring
2,Ostrava Brightwater Shipping LLC,ORGANIZATION,,PA,,Front company
"""
CUSTOMERS = """\
Customer ID,Full Name,Type,Date of Birth,Country,Documents,Aliases,Branch
c-1,Rosalind Achterberg,individual,1969-10-11,NL,,,North
c-2,Wilhelmina Oakes,INDIVIDUAL,1980-01-01,GB,,Billie Oakes;B. Oakes,North
c-3,Brightwater Shipping Ostrava,ORGANIZATION,,,,,South
c-4,,INDIVIDUAL,,,,,South
c-5,Nobody Inparticular,INDIVIDUAL,01.02.1980,Holland,,,South
c-6,Someone Else,INDIVIDUAL,,,passport: nx-1234567,,South
too,few
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("batch")
    (folder / "list.csv").write_text(LIST)
    run_cli(folder, "watchlist", "import", "--source", "csv", str(folder / "list.csv"))
    return folder


def new_tenant(data: Path, name: str) -> str:
    tenant: str = run_cli(data, "tenant", "create", name, "--aml", "--json")["tenantId"]
    return tenant


def screened_but_some(data: Path, *arguments: str) -> dict[str, Any]:
    """Run a command that has to exit 1 because of refused rows, and return what it said."""
    done = run_cli(data, *arguments, ok=False)
    assert done.returncode == 1, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_everybody_is_screened_and_bad_rows_are_told_with_their_lines(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "customers.csv"
    file.write_text(CUSTOMERS)
    said = screened_but_some(data, "screen", str(file), "--json")
    counts = {name: said[name] for name in ("screened", "refused", "confirmed", "review", "autoClear")}
    assert counts == {"screened": 4, "refused": 3, "confirmed": 2, "review": 1, "autoClear": 1}
    rows = {row["externalId"]: row for row in read_csv(tmp_path / "customers.screened.csv")}
    assert [rows[name]["decision"] for name in ("c-1", "c-2", "c-3", "c-6")] == [
        *("CONFIRMED", "AUTO_CLEAR", "REVIEW", "CONFIRMED")
    ]
    assert (rows["c-1"]["line"], rows["c-1"]["entityName"]) == ("2", "Rosalind Achterberg")
    assert (rows["c-1"]["source"], rows["c-1"]["listsHit"]) == ("OWN LIST", "OWN LIST")
    assert json.loads(rows["c-1"]["matches"])[0]["scoreBreakdown"]["dob"] == 1.0
    assert rows["c-2"]["matches"] == ""
    refused = [
        json.loads(line) for line in (tmp_path / "customers.csv.errors.ndjson").read_text().splitlines()
    ]
    assert [line["line"] for line in refused] == [5, 6, 8]
    assert refused[0]["details"] == {"inputName": "is required"}
    assert set(refused[1]["details"]) == {"inputDob", "inputNationality"}
    assert list(tmp_path.glob("*.part")) == []


def test_without_a_tenant_nothing_is_kept_and_parquet_is_written(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "names.ndjson"
    file.write_text('{"name":"Rosalind Achterberg","dob":"1969-10-11"}\n{"inputName":"Wilhelmina Oakes"}\n')
    run_cli(data, "screen", str(file), "--out", str(tmp_path / "results.parquet"), "--workers", "1")
    table = pyarrow.parquet.read_table(tmp_path / "results.parquet").to_pylist()
    assert [(row["externalId"], row["decision"], row["line"]) for row in table] == [
        ("row-1", "CONFIRMED", 1),
        ("row-2", "AUTO_CLEAR", 2),
    ]
    assert [row["screeningId"] for row in table] == [None, None]


def test_a_tenants_file_opens_cases_like_requests_do(data: Path, tmp_path: Path) -> None:
    tenant = new_tenant(data, "Cases")
    file = tmp_path / "customers.csv"
    # The same subject twice meets in one case.
    file.write_text(CUSTOMERS + "c-1,Rosalind Achterberg,INDIVIDUAL,1969-10-11,NL,,,North\n")
    said = screened_but_some(data, "screen", str(file), "--tenant", tenant, "--json")
    assert (said["screened"], said["alerts"]) == (5, 3)
    rows = read_csv(tmp_path / "customers.screened.csv")
    first, again = (row for row in rows if row["externalId"] == "c-1")
    assert first["screeningId"] != again["screeningId"]
    assert (first["caseId"], first["alertId"]) == (again["caseId"], again["alertId"])
    # What is done is done: the same file next month is screened anew.
    said = screened_but_some(data, "screen", str(file), "--tenant", tenant, "--force", "--json")
    assert (said["screened"], said["resumedAfter"]) == (5, 0)


def wait_for(done: Callable[[], bool]) -> None:
    until = time.monotonic() + 90
    while not done():
        assert time.monotonic() < until, "not seen in time"
        time.sleep(0.01)


@pytest.mark.timeout(600)
def test_a_batch_that_was_killed_goes_on_and_screens_nobody_twice(data: Path, tmp_path: Path) -> None:
    tenant = new_tenant(data, "Killed")
    count = 1_500
    file, out = tmp_path / "many.csv", tmp_path / "many.out.csv"
    names = (f"c-{number},Rosalind Achterberg,1969-10-11" for number in range(count))
    file.write_text("\n".join(("id,name,dob", *names, "")))
    arguments = ("screen", str(file), "--tenant", tenant, "--out", str(out), "--json")
    process = subprocess.Popen(
        [sys.executable, "-m", "vettance.cli", *arguments, "--data", str(data)],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )

    def written() -> int:
        return sum(path.read_bytes().count(b"\n") for path in tmp_path.glob("*.part"))

    wait_for(lambda: written() > 300)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not out.exists()
    said: dict[str, Any] = run_cli(data, *arguments)
    assert said["screened"] == said["confirmed"] == said["alerts"] == count
    assert said["resumedAfter"] >= 200
    rows = read_csv(out)
    assert [row["externalId"] for row in rows] == [f"c-{number}" for number in range(count)]
    assert len({row["screeningId"] for row in rows}) == len({row["caseId"] for row in rows}) == count


def test_a_journal_forgets_what_was_cut_off_and_what_is_of_another_run(tmp_path: Path) -> None:
    path = tmp_path / "part"
    lines = [JournalLine(number, number + 1, [f"cell {number}"], None) for number in range(1, 4)]
    journal = Journal(path, "one")
    journal.append(lines)
    with pytest.raises(JournalBusy):
        Journal(path, "one")
    journal.close()
    with path.open("ab") as file:
        file.write(b'[4,5,["ce')
    journal = Journal(path, "one")
    assert (journal.rows, journal.is_done, list(journal.lines())) == (3, False, lines)
    journal.keep(2)
    journal.append([JournalLine(3, 4, None, {"row": "is bad"})])
    journal.finish()
    journal.close()
    journal = Journal(path, "one")
    assert journal.is_done
    assert [line.refused for line in journal.lines()] == [None, None, {"row": "is bad"}]
    journal.close()
    journal = Journal(path, "another")
    assert journal.rows == 0
    journal.close(remove=True)
    assert not path.exists()


@pytest.mark.parametrize(("encoding", "line"), [("latin-1", 2), ("utf-16", 1)])
def test_a_file_that_is_not_utf8_is_refused_before_anybody_is_screened(
    data: Path, tmp_path: Path, encoding: str, line: int
) -> None:
    file = tmp_path / "customers.csv"
    file.write_text("name\nRosalind Áchterberg\n", encoding)
    done = run_cli(data, "screen", str(file), ok=False)
    assert done.returncode == 1
    told = f"Error: customers.csv, line {line}, is not UTF-8; save the file in that encoding\n"
    assert done.stderr == told
    assert [path.name for path in tmp_path.iterdir()] == ["customers.csv"]


@pytest.mark.parametrize("suffix", ["csv", "ndjson"])
def test_a_byte_order_mark_is_no_part_of_a_file(data: Path, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"customers.{suffix}"
    name = "Rosalind Achterberg"
    file.write_text(f"name\n{name}\n" if suffix == "csv" else json.dumps({"name": name}) + "\n", "utf-8-sig")
    assert run_cli(data, "screen", str(file), "--json")["screened"] == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--output", "customers.csv"), "FILE and --output are one file; give --output another"),
        (("--output", "link.csv"), "FILE and --output are one file; give --output another"),
        (("--errors", "customers.csv"), "FILE and --errors are one file; give --errors another"),
        (("--output", "r.csv", "--errors", "r.csv"), "--output and --errors are one file"),
    ],
)
def test_no_file_is_written_over_another_one_of_the_run(
    data: Path, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    file = tmp_path / "customers.csv"
    file.write_text(CUSTOMERS)
    (tmp_path / "link.csv").symlink_to(file)
    given = [part if part.startswith("--") else str(tmp_path / part) for part in options]
    for command in (("screen",), ("import", "--tenant", "ten_a")):
        if command[0] == "import" and "--output" in options:
            continue
        done = run_cli(data, *command, str(file), *given, ok=False)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert file.read_text() == CUSTOMERS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["customers.csv", "link.csv"]


def test_earlier_results_are_overwritten_on_demand_only(data: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "customers.csv", tmp_path / "results.csv"
    file.write_text(CUSTOMERS)
    screened_but_some(data, "screen", str(file), "--output", str(out), "--json")
    errors = tmp_path / "customers.csv.errors.ndjson"
    for kept, also in ((out, ()), (errors, ("--output", str(tmp_path / "other.csv")))):
        before = kept.read_text("utf-8")
        done = run_cli(data, "screen", str(file), *(also or ("--output", str(out))), ok=False)
        assert done.returncode == 1
        assert f"{kept} is there already; --force overwrites it" in done.stderr
        assert kept.read_text("utf-8") == before
    out.write_text("earlier")
    screened_but_some(data, "screen", str(file), "--output", str(out), "--force", "--json")
    assert len(read_csv(out)) == 4


def test_devices_take_results_and_refused_rows(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "customers.csv"
    file.write_text(CUSTOMERS)
    done = run_cli(data, "screen", str(file), "--errors", os.devnull, ok=False)
    assert done.returncode == 1, done.stderr
