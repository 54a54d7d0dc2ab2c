"""Catalogues: that of English holds everything there is to say, and others are read from files of gettext."""

from pathlib import Path

import pytest

from vettance.console.catalogue import ENGLISH, FOLDER, catalogue_of, language_of
from vettance.console.collect_words import catalogue_text, collect
from vettance.console.rendering import environment

_GERMAN = """
msgid ""
msgstr "Content-Type: text/plain; charset=utf-8\\n"

msgid "Queue"
msgstr "Warteschlange"

#, fuzzy
msgid "Reviews"
msgstr "Rezensionen"

msgid "Next review"
msgstr ""
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "de.po").write_text(_GERMAN)
    return tmp_path


def test_the_catalogue_of_english_holds_what_the_console_says() -> None:
    assert (FOLDER / f"{ENGLISH}.po").read_text() == catalogue_text(), "write it anew: make catalogue"


def test_words_are_found_in_templates_and_in_python() -> None:
    found = {(one.file, one.text) for one in collect()}
    assert ("templates/queue.html", "Next review") in found
    assert ("navigation.py", "Overview") in found


def test_what_is_translated_is_said_in_the_language_and_the_rest_in_english(folder: Path) -> None:
    assert catalogue_of("de", folder) == {"Queue": "Warteschlange"}
    assert catalogue_of(ENGLISH, folder) == {}
    assert environment("de", folder).from_string("<p>Queue</p><p>Reviews</p>").render() == (
        "<p>Warteschlange</p><p>Reviews</p>"
    )


@pytest.mark.parametrize(
    ("locale", "language"), [("de_AT", "de"), ("de", "de"), ("fr_FR", "en"), ("en_GB", "en"), ("", "en")]
)
def test_a_page_speaks_the_language_of_the_browser_where_there_is_one(
    locale: str, language: str, folder: Path
) -> None:
    assert language_of(locale, folder) == language
