"""Catalogues: the words of the console in other languages, in files of gettext (`locale/de.po`).

English is the language of the source, so its catalogue, `en.po`, is the list of all there is to translate;
`python -m vettance.console.collect_words` writes it, and `msgmerge` brings another one up to date with it.
"""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Final

#: Where the catalogues are, one file for each language, named by its code (ISO 639).
FOLDER: Final = Path(__file__).parent / "locale"
ENGLISH: Final = "en"


@functools.cache
def languages(folder: Path) -> frozenset[str]:
    """Return the codes of the languages that the console speaks."""
    return frozenset(path.stem for path in folder.glob("*.po")) | {ENGLISH}


def language_of(locale: str, folder: Path) -> str:
    """Return the language of pages for a locale such as `de_AT`: English where there is no catalogue."""
    code = locale.partition("_")[0]
    return code if code in languages(folder) else ENGLISH


@functools.cache
def catalogue_of(language: str, folder: Path) -> Mapping[str, str]:
    """Return the words of a language by the English ones; those that nobody has translated are left out.

    What is marked as fuzzy counts as not translated, as it does for the tools of gettext.
    """
    from babel.messages.pofile import read_po

    if language == ENGLISH:
        return {}
    with (folder / f"{language}.po").open("rb") as file:
        catalogue = read_po(file, locale=language)
    return {
        one.id: one.string
        for one in catalogue
        if isinstance(one.id, str) and one.id and isinstance(one.string, str) and one.string and not one.fuzzy
    }
