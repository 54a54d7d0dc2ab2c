"""The source, read once for all tests of its shape."""

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[2]
SOURCE = PROJECT / "src" / "vettance"
FILES = sorted(path for path in SOURCE.rglob("*.py"))
#: The files of the source, as `room/file.py`.
NAMES = [str(path.relative_to(SOURCE)) for path in FILES]
#: The rooms, and the modules of the root.
ROOMS = {Path(name).parts[0].removesuffix(".py") for name in NAMES} - {"__init__"}


@functools.cache
def text_of(name: str) -> str:
    return (SOURCE / name).read_text("utf-8")


@functools.cache
def tree_of(name: str) -> ast.Module:
    return ast.parse(text_of(name))


def room_of(name: str) -> str:
    return Path(name).parts[0].removesuffix(".py")


def prose_of(name: str) -> Iterator[tuple[int, str]]:
    """The comments and docstrings of a file, each with its line."""
    for token in tokenize.generate_tokens(io.StringIO(text_of(name)).readline):
        if token.type == tokenize.COMMENT or (
            token.type == tokenize.STRING and re.match(r'r?"""', token.string)
        ):
            yield token.start[0], token.string


def module_of(name: str) -> str:
    return "vettance." + name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports_of(name: str) -> set[str]:
    """The modules of ours that a file imports, in functions and for types as well."""
    ours = {module_of(one) for one in NAMES}
    found: set[str] = set()
    for node in ast.walk(tree_of(name)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            parts = {f"{node.module}.{alias.name}" for alias in node.names} & ours
            found |= parts or {node.module} & ours
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & ours
    return found
