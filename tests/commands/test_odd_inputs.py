"""Odd inputs end a command with one clear line, and leave nothing half-made behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from vettance.cli import main
from vettance.commands import whole_file

#: The commands over a part of time.
SPANS = (
    *("rules quality", "rules backtest", "rules suggest", "rules calibrate --hold 1%", "export events"),
    *("aml quality", "aml backtest"),
)


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def assert_refused(done: Result, said: str, code: int = 1) -> None:
    assert done.exit_code == code, done.output
    assert said in done.stderr
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The options that name a data folder with a list, and a tenant in it."""
    data = str(tmp_path_factory.mktemp("shop"))
    made = json.loads(run("tenant", "create", "Shop", "--json", "--data", data).stdout)
    assert run("watchlist", "import", "--source", "sample", "--data", data).exit_code == 0
    return "--data", data, "--tenant", made["tenantId"]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_is_not_utf_8_is_refused_by_every_command() -> None:
    word = os.fsdecode(b"ten_\xff")
    for words in (("key", "list", "--tenant", word), ("tenant", "set", word, "--aml", "on"), (word,)):
        assert_refused(run(*words), r"'ten_\xff' is not UTF-8", code=2)


def test_a_tenant_is_renamed_by_the_rules_by_which_it_was_named(shop: tuple[str, ...]) -> None:
    for name in ("", " ", "a\nb", "x" * 201):
        assert_refused(run("tenant", "create", name, *shop[:2]), "printable characters", code=2)
        assert_refused(run("tenant", "set", shop[3], "--name", name, *shop[:2]), "printable", code=2)


@pytest.mark.parametrize(
    "words",
    [
        ("rules", "pull", "--version"),
        ("aml", "diff", "--version"),
        ("model", "card"),
        ("model", "promote"),
        ("model", "features", "rollback", "--to"),
        ("model", "alerts", "card"),
        ("model", "alerts", "promote"),
    ],
)
def test_a_version_beyond_all_numbers_is_refused(shop: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert_refused(run(*words, 10**20, *shop), "is not in the range", code=2)


@pytest.mark.parametrize("words", SPANS)
@pytest.mark.parametrize("turned", [False, True])
def test_a_span_that_ends_before_it_begins_is_refused(
    shop: tuple[str, ...], words: str, *, turned: bool
) -> None:
    ends = [("--from", "2026-12-01"), ("--to", "2026-11-01")]
    given = (*words.split(), *((__file__,) if words.endswith("backtest") else ()))
    options = [word for end in (reversed(ends) if turned else ends) for word in end]
    assert_refused(run(*given, *options, *shop), "must not be later than --to", code=2)


def test_a_digit_that_no_number_is_written_with_is_no_time(shop: tuple[str, ...]) -> None:
    assert_refused(run("export", "events", "--from", "²", *shop), "ISO 8601", code=2)


def test_more_customers_than_memory_can_hold_are_refused(tmp_path: Path) -> None:
    for kind in ("aml", "fraud"):
        words = ("generate", kind, "--customers", 10**20, "--days", 1, "--out", tmp_path / "made")
        assert_refused(run(*words), "is not in the range", code=2)
    assert names(tmp_path) == set()


def test_a_header_too_long_for_csv_is_said(tmp_path: Path, shop: tuple[str, ...]) -> None:
    file = tmp_path / "long.csv"
    file.write_bytes(b"a" * 5_000_000)
    for command in ("import", "screen"):
        assert_refused(run(command, file, *shop), "long.csv is not CSV")
    assert names(tmp_path) == {"long.csv"}


@pytest.mark.parametrize(
    "words",
    [
        "import",
        "import events.csv --labels",
        "screen",
        "watchlist import --source csv",
        "watchlist evaluate",
        "demo --input",
    ],
)
def test_what_can_be_read_only_once_is_refused(
    tmp_path: Path, shop: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.csv").write_text("eventName,occurredAt\n")
    os.mkfifo(tmp_path / "pipe.csv")
    more = shop if words.startswith(("import", "screen")) else ()
    assert_refused(run(*words.split(), "pipe.csv", *more), "pipe.csv is a pipe or a device; write it", code=2)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("name;dob", "has semicolons between its cells; save it with commas"),
        ("name\tdob", "has tabs between its cells"),
        ("name,,dob,dob,", "has two columns dob; rename or remove one of them"),
    ],
)
def test_a_header_that_cannot_be_meant_is_refused_before_a_row_is_read(
    tmp_path: Path, shop: tuple[str, ...], header: str, said: str
) -> None:
    (tmp_path / "rows.csv").write_text(f"{header}\nAnna,,1990-01-01,1990-01-02,\n")
    for command in ("import", "screen"):
        assert_refused(run(command, tmp_path / "rows.csv", *shop), f"rows.csv {said}")
    assert names(tmp_path) == {"rows.csv"}


def test_a_batch_that_did_not_begin_leaves_nothing(tmp_path: Path, shop: tuple[str, ...]) -> None:
    (tmp_path / "people.txt").write_text("name\nAnna Meier\n")
    assert_refused(run("screen", tmp_path / "people.txt", "--out", tmp_path / "out.csv", *shop), "format")
    assert names(tmp_path) == {"people.txt"}


def test_a_batch_whose_refused_rows_cannot_be_written_goes_on_elsewhere(
    tmp_path: Path, shop: tuple[str, ...]
) -> None:
    file = tmp_path / "people.csv"
    file.write_text("name,dob\nAnna Meier,\nIvan Petrov,once\n")
    words = ("screen", file, "--workers", 1, *shop)
    assert_refused(run(*words, "--errors", tmp_path / "nowhere" / "refused"), f"{tmp_path}/nowhere/refused: ")
    assert [name for name in names(tmp_path) if not name.endswith(".part")] == ["people.csv"]
    done = run(*words, "--json")
    assert json.loads(done.stdout)["resumedAfter"] == 2
    assert names(tmp_path) == {"people.csv", "people.screened.csv", "people.csv.errors.ndjson"}


@pytest.mark.parametrize("source", ["ftm", "eu_fsf", "csv"])
def test_a_list_that_cannot_be_read_leaves_nothing(
    tmp_path: Path, shop: tuple[str, ...], source: str
) -> None:
    before = names(Path(shop[1], "watchlists"))
    (tmp_path / "list.json").write_bytes(b"[" * 100_000)
    done = run("watchlist", "import", "--source", source, tmp_path / "list.json", *shop[:2])
    assert_refused(done, "list.json")
    assert names(Path(shop[1], "watchlists")) == before


@pytest.mark.parametrize("url", ["http://[::bad", "http://a\x00b/", "x"])
def test_an_address_that_is_none_is_said(shop: tuple[str, ...], url: str) -> None:
    assert_refused(run("watchlist", "refresh", "--source", "un_sc", "--url", url, *shop[:2]), "un_sc: ")


def test_a_file_is_there_whole_or_as_it_was_before(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    for content in (b"first", b"second"):
        with whole_file(path) as file:
            file.write(content)
        path.chmod(0o600)

    def cut_off() -> None:
        with whole_file(path) as file:
            file.write(b"half of the thi")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut_off()
    assert path.read_bytes() == b"second"
    assert path.stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == {"export.csv"}


def test_a_link_stays_one_and_a_device_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for path in (tmp_path / "link", Path("/dev/null")):
        with whole_file(path) as file:
            file.write(b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"x"
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("tenant show nobody", 1, "there is no tenant nobody"),
        ("tenant create", 2, "Missing argument 'NAME'"),
        ("tenant set nobody --throttle 0", 2, "is not in the range"),
        ("tenant nothing", 2, "No such command 'nothing'"),
        ("export events --tenant nobody", 1, "--json goes with --output"),
        ("rules check missing.yaml", 2, "'missing.yaml' does not exist"),
        ("decisions replay evt_x --tenant nobody", 1, "there is no tenant nobody"),
        ("generate fraud --customers 1 --days 1 --out /dev/null/x", 1, "cannot write to /dev/null/x"),
        ("user link nobody@example.com", 1, "there is no user nobody@example.com"),
    ],
)
def test_a_script_that_asks_for_json_gets_each_refusal_in_json(
    shop: tuple[str, ...], words: str, code: int, said: str
) -> None:
    data = () if words.split()[1] in ("check", "fraud", "nothing") else shop[:2]
    done = run(*words.split(), *data, "--json")
    assert_refused(done, said, code)
    assert f"Error: {json.loads(done.stdout)['error']['message']}\n" == done.stderr


def test_an_answer_in_json_stays_the_only_one(shop: tuple[str, ...]) -> None:
    done = run("watchlist", "refresh", "--source", "un_sc", "--url", "x", *shop[:2], "--json")
    assert_refused(done, "un_sc: ")
    assert json.loads(done.stdout) == []
    assert run("tenant", "create", *shop[:2], "--", "--json").stdout.startswith("Tenant --json is ten_")


def test_an_output_that_takes_nothing_is_said_in_one_line(shop: tuple[str, ...]) -> None:
    for words in (("tenant", "list"), ("tenant", "list", "--json"), ("tenant", "show", "x", "--json")):
        command = [sys.executable, "-m", "vettance.cli", *words, *shop[:2]]
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
        assert done.returncode == 1
        assert done.stderr.startswith(b"Error: ")
        assert done.stderr.count(b"\n") == 1
