"""The commands for watchlists, as a person and a script see them."""

import json
from pathlib import Path

import pytest

from tests.live import run_cli
from tests.watchlists import publishers
from tests.watchlists.publishers import write


def test_a_list_is_imported_listed_and_compared(tmp_path: Path) -> None:
    data = tmp_path / "data"
    path = write(tmp_path, "own.csv", publishers.OWN)
    made = run_cli(data, "watchlist", "import", "--source", "csv", str(path), "--json")
    assert (made["source"], made["entities"], made["changed"]) == ("csv", 3, True)
    write(tmp_path, "own.csv", publishers.OWN + "9,Ada Example,INDIVIDUAL,,,,,,,\n")
    run_cli(data, "watchlist", "import", "--source", "csv", str(path), "--json")
    (listed,) = run_cli(data, "watchlist", "list", "--json")
    assert (listed["code"], listed["entities"], listed["current"]) == ("OWN LIST", 4, True)
    assert len(run_cli(data, "watchlist", "list", "--all", "--json")) == 2
    found = run_cli(data, "watchlist", "diff", "csv", "--json")
    assert (found["added"], found["removed"], found["changed"]) == ({"csv:9": "Ada Example"}, {}, {})


def test_the_age_of_the_data_is_not_that_of_the_import(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for source, name, text in (("un_sc", "un.xml", publishers.UN), ("csv", "own.csv", publishers.OWN)):
        run_cli(data, "watchlist", "import", "--source", source, str(write(tmp_path, name, text)), "--json")
    own, nations = run_cli(data, "watchlist", "list", "--json")
    assert (own["dataAsOf"], own["dataAgeHours"]) == (None, None)
    assert nations["dataAsOf"] == "2026-01-01T00:00:00.000Z"
    assert nations["dataAgeHours"] > 24 * 30 > 1 > nations["ageHours"]
    header, first = run_cli(data, "watchlist", "list", ok=False).stdout.splitlines()[2:4]
    assert "importAgeHours" in header
    assert first.split().count("unknown") == 2
    # The same entities in a file of a later day are the same version, and of that day.
    later = write(tmp_path, "un.xml", publishers.UN.replace("2026-01-01T", "2026-02-01T"))
    assert not run_cli(data, "watchlist", "import", "--source", "un_sc", str(later), "--json")["changed"]
    assert run_cli(data, "watchlist", "list", "--json")[1]["dataAsOf"].startswith("2026-02-01")
    assert "un_sc (of 2026-02-01)" in run_cli(data, "doctor", "--json", ok=False).stdout


def test_the_sample_needs_no_file_and_says_that_it_is_one(tmp_path: Path) -> None:
    made = run_cli(tmp_path, "watchlist", "import", "--source", "sample", ok=False)
    assert made.returncode == 0
    assert "SAMPLE" in made.stdout


def test_a_broken_list_ends_with_one_clear_line(tmp_path: Path) -> None:
    path = write(tmp_path, "un.xml", "<html>")
    refused = run_cli(tmp_path / "data", "watchlist", "import", "--source", "un_sc", str(path), ok=False)
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert "un.xml is not well-formed XML" in refused.stderr


def test_labelled_cases_are_counted_for_each_tag(tmp_path: Path) -> None:
    man = {"name": "Torvald Mikkelsen", "entityType": "INDIVIDUAL", "dob": ["1957-03-12"]}
    asked = {"name": "Thorvald Mikkelson", "entityType": "INDIVIDUAL", "dob": "1957-03-12"}
    other = {"name": "Ingrid Haddad", "entityType": "INDIVIDUAL"}
    cases = [
        {"query": asked, "candidate": man, "expected": "match", "tag": "typo"},
        {"query": other, "candidate": man, "expected": "no_match", "tag": "other"},
        {"query": other, "candidate": man, "expected": "match", "tag": "other"},
        {"query": other, "candidate": None, "expected": "no_match", "tag": "nobody"},
    ]
    path = write(tmp_path, "cases.jsonl", "\n".join(json.dumps(case) for case in cases))
    data = tmp_path / "data"
    found = run_cli(data, "watchlist", "evaluate", str(path), "--json")
    assert found["total"] == {
        "cases": 3, "precision": 1.0, "recall": 0.5, "f1": 0.6667, "falsePositiveRate": 0.0,
    }  # fmt: skip
    assert found["tags"]["typo"]["recall"] == 1.0
    assert found["skipped"] == 1
    assert [miss["query"] for miss in found["misses"]] == ["Ingrid Haddad"]
    own = write(tmp_path, "own.csv", "name,type\nIngrid Haddad,INDIVIDUAL\n")
    run_cli(data, "watchlist", "import", "--source", "csv", str(own), "--json")
    found = run_cli(data, "watchlist", "evaluate", str(path), "--json")
    assert (found["skipped"], found["tags"]["nobody"]["falsePositiveRate"]) == (0, 1.0)


def test_a_line_that_is_no_case_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "cases.jsonl", "{}\n")
    refused = run_cli(tmp_path / "data", "watchlist", "evaluate", str(path), ok=False)
    assert refused.returncode == 1
    assert "line 1" in refused.stderr


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_list_of_ones_own_that_is_not_utf8_is_refused_by_its_line(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path, "own.csv", "name\nIvan PETROV\nAndrés PEÑA\n", encoding)
    refused = run_cli(tmp_path / "data", "watchlist", "import", "--source", "csv", str(path), ok=False)
    assert refused.returncode == 1
    line = 3 if encoding == "latin-1" else 1
    assert refused.stderr == f"Error: own.csv, line {line}, is not UTF-8; save the file in that encoding\n"
    marked = write(tmp_path, "own.csv", "name\nAndrés PEÑA\n", "utf-8-sig")
    run_cli(tmp_path / "data", "watchlist", "import", "--source", "csv", str(marked))


def test_columns_that_are_not_read_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, "own.csv", "name,birthDate,country,shoe size,ID\nA. One,1970-01-02,NL,43,7\n")
    done = run_cli(tmp_path / "data", "watchlist", "import", "--source", "csv", str(path), "--json", ok=False)
    assert done.returncode == 0
    born, country, size = json.loads(done.stdout)["warnings"]
    assert born == "own.csv: the column 'birthdate' is not read (is birth_dates meant?)"
    assert country == "own.csv: the column 'country' is not read (is countries meant?)"
    assert size.startswith("own.csv: the column 'shoe size' is not read (there are id, name, type,")


def test_what_names_no_country_is_told_with_its_row(tmp_path: Path) -> None:
    rows = "A. One,NL;Xland,passport:N1:Yland\nB. Two,de,passport:N2:\nC. Three,,N3\n"
    path = write(tmp_path, "own.csv", f"name,countries,documents\n{rows}")
    done = run_cli(tmp_path / "data", "watchlist", "import", "--source", "csv", str(path), "--json", ok=False)
    assert done.returncode == 0
    said = [
        f"own.csv, row 2: '{text}' is no country; the entity is listed without it"
        for text in ("Xland", "Yland")
    ]
    assert json.loads(done.stdout)["warnings"] == said
    assert done.stderr.splitlines() == [f"Warning: {one}" for one in said]


def test_an_official_list_of_another_encoding_is_read(tmp_path: Path) -> None:
    text = publishers.SDN.replace("TORVALDSEN", "TORVALDSÉN")
    path = write(tmp_path, "sdn.csv", text, "cp1252")
    run_cli(tmp_path / "data", "watchlist", "import", "--source", "us_ofac_sdn", str(path))


def test_cases_that_are_not_utf8_or_none_at_all_are_an_error(tmp_path: Path) -> None:
    case = {"tag": "exact", "expected": "match", "query": {"name": "Peña"}, "candidate": {"name": "Peña"}}
    text = json.dumps(case, ensure_ascii=False)
    data = tmp_path / "data"
    for encoding, said in (("latin-1", "line 1, is not UTF-8"), ("utf-16", "line 1, is not UTF-8")):
        refused = run_cli(
            data, "watchlist", "evaluate", str(write(tmp_path, "c.jsonl", text, encoding)), ok=False
        )
        assert refused.returncode == 1
        assert said in refused.stderr
        assert refused.stderr.count("\n") == 1
    assert run_cli(
        data, "watchlist", "evaluate", str(write(tmp_path, "c.jsonl", text, "utf-8-sig")), "--json"
    )
    empty = run_cli(data, "watchlist", "evaluate", str(write(tmp_path, "c.jsonl", "\n")), ok=False)
    assert empty.returncode == 1
    assert "there is no case in" in empty.stderr
