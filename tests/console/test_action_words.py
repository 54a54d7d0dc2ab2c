"""The words for actions of the audit log: every change that a page, a call or a person can make has some."""

import json
from pathlib import Path

import pytest

from vettance.console.action_words import action_in_words
from vettance.console.page_table import PAGES

DOCUMENT = json.loads((Path(__file__).parents[2] / "clients" / "openapi.json").read_text("utf-8"))
CALLS = [
    f"{method.upper()} {path}"
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
    if method in ("post", "put", "delete", "patch")
]
FORMS = [f"POST {page.path}" for page in PAGES if page.method == "POST"]


@pytest.mark.parametrize("action", [*CALLS, *FORMS])
def test_every_change_is_said_in_words(action: str) -> None:
    words = action_in_words(action)
    assert "/" not in words
    assert words[0].isupper()


def test_what_has_no_words_is_said_as_the_log_has_it() -> None:
    assert action_in_words("watchlist refresh") == "Watchlist refresh"
