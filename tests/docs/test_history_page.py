"""The commands of the pages about history and the generator do what the pages say."""

import json
import re
import shlex
import time
from pathlib import Path

from tests.live import Caller, Service, run_cli

DOCS = Path(__file__).parents[2] / "docs"


def commands(page: str, heading: str) -> list[list[str]]:
    """Return the commands of the first block behind a heading."""
    block = (DOCS / page).read_text("utf-8").partition(heading)[2].split("```")[1]
    return [shlex.split(line)[1:] for line in block.splitlines() if line.startswith("vettance ")]


def test_what_the_page_of_history_imports_is_imported(service: Service, tmp_path: Path) -> None:
    caller = Caller(service, *service.new_tenant("Page"))
    line = {"eventName": "login", "occurredAt": time.time() - 86_400}
    (tmp_path / "history.ndjson").write_text(json.dumps(line) + "\n")
    done = []
    for command in commands("history.md", "## Importing history"):
        words = [caller.id if word == "ten_…" else word for word in command]
        words = [str(tmp_path / word) if re.search(r"\.ndjson$|^traffic$", word) else word for word in words]
        if words[0] == "generate":
            run_cli(tmp_path, *words, data=False)
        else:
            done.append(service.cli(*words, "--json"))
    lines = len((tmp_path / "traffic" / "events.ndjson").read_bytes().splitlines())
    assert [(one["accepted"], one["labelled"], one["refused"]) for one in done] == [
        (1, 0, 0),
        (1, 0, 0),
        (lines, lines, 0),
    ]


def test_labelled_traffic_is_imported_with_its_labels(service: Service, tmp_path: Path) -> None:
    caller = Caller(service, *service.new_tenant("Inline"))
    block = (DOCS / "generator.md").read_text("utf-8").split("```")[1]
    words = shlex.split(block.partition("$ vettance")[2])
    words[words.index("--customers") + 1] = "20"
    words[words.index("--output") + 1] = str(tmp_path)
    run_cli(tmp_path, *words, "--labelled", data=False)
    events = (tmp_path / "events.ndjson").read_text().splitlines()
    told = service.cli("import", str(tmp_path / "events.ndjson"), "--tenant", caller.id, "--json")
    assert (told["accepted"], told["labelled"], told["refused"]) == (len(events), len(events), 0)
