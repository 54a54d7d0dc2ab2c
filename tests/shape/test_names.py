"""One name, one thing: classes, files and folders, each with a word of the field."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.shape.source import NAMES, PROJECT, ROOMS, imports_of, module_of, tree_of

#: A protocol may have the name of the class that fulfils it, each in a room of its own.
PROTOCOLS_BESIDE_THEIR_CLASS: dict[str, str] = {}

#: Files that many rooms have, always for the same purpose (docs/glossary.md says which).
HOUSE_KINDS = {
    "__init__.py",
    "answers.py",
    "api.py",
    "cli.py",
    "features.py",
    "gate.py",
    "pages.py",
    "sql.py",
    "worker.py",
}

ROOT_MODULES_MAX = 10

#: Folders of tests that are no room: what they test is the whole, or is not in src.
OTHER_TESTS = {
    "bench": "the scripts of bench/",
    "browser": "the SDK in a real browser",
    "clients": "the clients of clients/, against the real service",
    "deploy": "what is in deploy/",
    "docs": "pages whose commands and tables must be true",
    "grown": "statements on a store that has grown",
    "packs": "the fraud pack as authors and customers meet it",
    "release": "what a release is made of, in release/",
    "shape": "the shape of the source",
    "texts": "texts of every length and script through every endpoint",
}

IRREGULAR = (
    "Been|Born|Bought|Bound|Broken|Brought|Built|Caught|Chosen|Done|Drawn|Driven|Fallen|Felt"
    "|Found|Given|Gone|Heard|Held|Hidden|Kept|Known|Laid|Left|Lent|Lost|Made|Meant|Met|Paid|Said"
    "|Seen|Sent|Shown|Sold|Sought|Spoken|Spent|Taken|Taught|Thought|Told|Torn|Undone|Unmet|Won"
    "|Written"
)
PARTICIPLE = re.compile(rf"^_?([A-Z][a-z]+ed|{IRREGULAR})$")
#: Names of HTTP and words that end like a participle and are none.
NO_PARTICIPLES = {"Feed", "Need", "Speed", "Unauthorized"}
#: The participles that are still there. Shorten this list; never add to it.
PARTICIPLES: set[str] = {
    "Copied",
    "Declared",
    "Disconnected",
    "Lost",
    "Replayed",
    "Rotated",
    "Said",
    "Shared",
    "Skipped",
    "Tried",
    "Written",
    "_Failed",
    "_Placed",
}


def classes() -> dict[str, list[str]]:
    """The names of classes, each with the files that define one at the top of the file."""
    found = defaultdict(list)
    for name in NAMES:
        for node in tree_of(name).body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(name)
    return found


def test_no_two_classes_share_a_name() -> None:
    twice = {
        name: files
        for name, files in classes().items()
        if len(files) > 1 and name not in PROTOCOLS_BESIDE_THEIR_CLASS
    }
    assert not twice, f"rename all but one of each, by what it is in its room: {twice}"


def test_no_two_files_share_a_name() -> None:
    files = defaultdict(list)
    for name in NAMES:
        files[Path(name).name].append(name)
    twice = {name: found for name, found in files.items() if len(found) > 1 and name not in HOUSE_KINDS}
    assert not twice, f"rename all but one of each, by the noun or verb that is in it: {twice}"


def test_no_class_is_named_by_a_participle_alone() -> None:
    found = {name for name in classes() if PARTICIPLE.match(name)} - NO_PARTICIPLES
    added = {name: classes()[name] for name in found - PARTICIPLES}
    assert not added, f"say what it is, not what was done to it (Told -> WebhookPayload): {added}"


def test_the_root_holds_little() -> None:
    root = [name for name in NAMES if "/" not in name]
    assert len(root) <= ROOT_MODULES_MAX, f"move one of these into a room: {root}"


def test_no_modules_import_each_other_in_a_circle_for_types_neither() -> None:
    edges = {module_of(name): imports_of(name) - {module_of(name)} for name in NAMES}
    while free := {module for module, needs in edges.items() if not needs & edges.keys()}:
        edges = {module: needs for module, needs in edges.items() if module not in free}
    # What is left is in a circle, or imports one; those that nobody left imports are only above it.
    while tops := edges.keys() - set().union(*edges.values()):
        edges = {module: needs for module, needs in edges.items() if module not in tops}
    circle = {module: sorted(needs & edges.keys()) for module, needs in edges.items()}
    assert not circle, f"have the lower module take a value or a protocol instead: {circle}"


def test_tests_are_in_the_folder_of_the_room_that_they_test() -> None:
    folders = {
        path.parent.relative_to(PROJECT / "tests").parts for path in (PROJECT / "tests").rglob("test_*.py")
    }
    strays = {folder for folder in folders if len(folder) != 1 or folder[0] not in ROOMS | OTHER_TESTS.keys()}
    assert not strays, (
        f"tests of src/vettance/ROOM belong in tests/ROOM; other folders need a line in OTHER_TESTS: {strays}"
    )


@pytest.mark.parametrize("folder", sorted(OTHER_TESTS))
def test_every_other_folder_of_tests_is_there(folder: str) -> None:
    assert list((PROJECT / "tests" / folder).glob("test_*.py")), f"take {folder} out of OTHER_TESTS"


def test_helpers_of_tests_are_imported_by_their_path() -> None:
    helpers = {path.stem for path in (PROJECT / "tests").rglob("*.py")}
    for path in sorted((PROJECT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in helpers and node.level == 0:
                near = (path.parent / f"{node.module}.py").exists()
                assert not near, (
                    f"{path}:{node.lineno}: write from tests.{path.parent.name}.{node.module} import …"
                )
