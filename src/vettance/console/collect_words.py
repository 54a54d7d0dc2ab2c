"""Collects everything that the console says into the catalogue of English, `locale/en.po`.

    python -m vettance.console.collect_words

Other catalogues follow by gettext's own tools, `msgmerge --update de.po en.po`.
"""

import argparse
import ast
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po

from vettance.console.catalogue import ENGLISH, FOLDER
from vettance.console.rendering import TEMPLATES, translating
from vettance.console.words import Words

_PAGES: Final = Path(__file__).parent


class FoundWords(NamedTuple):
    """Words, and the file and line that say them."""

    text: str
    file: str
    line: int


def collect() -> list[FoundWords]:
    """Find all words of templates and of Python files, in the order of these."""
    return [*_of_templates(), *_of_python()]


def _of_templates() -> Iterator[FoundWords]:
    for path in sorted(TEMPLATES.glob("*.html")):
        found: list[FoundWords] = []

        def note(text: str, line: int, name: str = path.name, found: list[FoundWords] = found) -> str:
            found.append(FoundWords(text, f"templates/{name}", line))
            return text

        translating(note).parse(path.read_text(), path.name)
        yield from found


def _of_python() -> Iterator[FoundWords]:
    for path in sorted(_PAGES.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == Words.__name__
                and node.args
                and isinstance(node.args[0], ast.Constant)
            ):
                yield FoundWords(str(node.args[0].value), path.name, node.lineno)


def catalogue_text() -> str:
    """Return the catalogue of English: every text once, with the files that say it."""
    catalogue = Catalog(locale=ENGLISH, project="Vettance", version="console", charset="utf-8", fuzzy=False)
    catalogue.header_comment = "# What the console says. To translate it: `msginit -i en.po -l de`."
    for one in collect():
        # Files alone: lines move with every change, and the test would ask for a new catalogue each time.
        catalogue.add(one.text, locations=[(one.file, 0)])
    file = io.BytesIO()
    write_po(file, catalogue, omit_header=False, include_lineno=False, width=100)
    lines = file.getvalue().decode().splitlines()
    dated = tuple(f'"{name}:' for name in ("POT-Creation-Date", "PO-Revision-Date", "Generated-By"))
    return "\n".join(line for line in lines if not line.startswith(dated)) + "\n"


def main() -> None:
    """Write the catalogue of English."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{ENGLISH}.po").write_text(catalogue_text())


if __name__ == "__main__":
    main()
