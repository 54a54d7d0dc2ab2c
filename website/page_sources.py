"""Which files of the project become pages of the site, and how their links are made to fit it."""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).parents[1]

#: Written for the site, with its links.
_INDEX: Final = Path(__file__).parent / "index.md"
#: Pages from outside `docs/`: file of the project → page of the site.
_ELSEWHERE: Final = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "SECURITY.md": "security.md",
    "THIRD_PARTY.md": "third-party.md",
    "bench/README.md": "benchmark-commands.md",
    "clients/python/README.md": "clients/python.md",
    "clients/typescript/README.md": "clients/typescript.md",
}
#: How code of ours is highlighted: a language of ours → one that the highlighter knows.
_LANGUAGES: Final = {"rule": "python", "refused": "text", "doubted": "text", "csv": "text"}
_FENCE: Final = re.compile(r"^(?P<mark>\s*```)(?P<language>[\w+-]*)[^\n]*$", re.MULTILINE)
_LINK: Final = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)")
_OUTSIDE: Final = ("http://", "https://", "mailto:", "#")


class BrokenLink(Exception):
    """A page links to a file that does not exist."""


def page_table() -> dict[str, str]:
    """Return every file of the project that is a page, with the page's path in the site."""
    table = dict(_ELSEWHERE)
    for path in sorted((PROJECT / "docs").rglob("*.md")):
        inside = path.relative_to(PROJECT / "docs")
        page = inside.with_name("index.md") if inside.name == "README.md" else inside
        table[str(path.relative_to(PROJECT))] = str(page)
    return table


def stage_pages(target: Path) -> int:
    """Write all pages into a folder, with links that fit the site; returns how many there are.

    Raises `BrokenLink` for a link to a file that does not exist.
    """
    table = page_table()
    for source, page in table.items():
        place = target / page
        place.parent.mkdir(parents=True, exist_ok=True)
        text = (PROJECT / source).read_text("utf-8")
        place.write_text(fit_links(text, source, page, table), "utf-8")
    shutil.copy(_INDEX, target / "index.md")
    shutil.copytree(PROJECT / "docs" / "pictures", target / "pictures")
    return len(table) + 1


def fit_links(text: str, source: str, page: str, table: Mapping[str, str]) -> str:
    """Return the text of a page with its links and code blocks as the site needs them.

    A link to another page leads to that page; one to a file that is no page becomes plain text, since the
    site is whole by itself. Links inside code blocks stay as they are.
    """
    pieces = re.split(r"(^\s*```.*?^\s*```$)", text, flags=re.DOTALL | re.MULTILINE)

    def fitted(match: re.Match[str]) -> str:
        target, _, anchor = match["target"].partition("#")
        if match["target"].startswith(_OUTSIDE):
            return match[0]
        file = os.path.normpath(Path(source).parent / target)
        if not (PROJECT / file).exists():
            raise BrokenLink(f"{source} links to {match['target']}, which does not exist")
        if (PROJECT / file).is_dir():
            file = f"{file}/README.md" if f"{file}/README.md" in table else f"{file}/index.md"
        where = _picture_page(file) if match["image"] else table.get(file)
        if where is None:
            return match["text"]
        led = os.path.relpath(where, Path(page).parent)
        return f"{match['image']}[{match['text']}]({led}{'#' if anchor else ''}{anchor})"

    return "".join(
        _FENCE.sub(_named_language, piece) if index % 2 else _LINK.sub(fitted, piece)
        for index, piece in enumerate(pieces)
    )


def _picture_page(file: str) -> str | None:
    return file.removeprefix("docs/") if file.startswith("docs/pictures/") else None


def _named_language(match: re.Match[str]) -> str:
    language = match["language"]
    return f"{match['mark']}{_LANGUAGES.get(language, language)}"
