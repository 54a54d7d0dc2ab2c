"""Lists in pages: which rows are shown, where the others are, and long texts in a row."""

import html
import re

import pytest

from tests.console.conftest import SignIn
from tests.console.visitor import PageAnswer
from tests.live import Caller
from vettance.console.list_pages import number_of, rows_shown
from vettance.console.rendering import environment
from vettance.console.shown_values import ValueFormatter


def said(first: int, shown: int, total: int, *, is_cut: bool = False) -> str:
    """Return what is read below a list."""
    page = rows_shown(ValueFormatter(0), first, shown, total, "decision", is_cut=is_cut)
    pager = environment().get_template("macros.html").module.pager(page)  # type: ignore[attr-defined]
    return " ".join(re.sub(r"<[^>]*>", " ", pager).split())


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        ("0 decisions", (1, 0, 0)),
        ("1 decision", (1, 1, 1)),
        ("50 decisions", (1, 50, 50)),
        ("1–50 of 10,000 decisions", (1, 50, 10_000)),
        ("9,951–10,000 of 10,000 decisions", (9_951, 50, 10_000)),
        # Rows were removed between two pages.
        ("51–100 of 100 decisions", (51, 50, 90)),
        ("90 decisions", (101, 0, 90)),
    ],
)
def test_a_list_says_which_of_its_rows_are_shown(words: str, rows: tuple[int, int, int]) -> None:
    assert said(*rows) == words


def test_a_list_whose_rows_nobody_counted_says_so() -> None:
    assert said(1, 50, 50, is_cut=True) == "1–50 of more than 50 decisions"
    assert said(51, 50, 100, is_cut=True) == "51–100 of more than 100 decisions"


@pytest.mark.parametrize("text", ["", "0", "-3", "x", "1" * 13, "²"])
def test_what_names_no_row_is_the_first_one(text: str) -> None:
    assert number_of(text) == 1


def following(page: PageAnswer) -> str:
    found = re.search(r'href="([^"]+)" rel="next"', page.text)
    assert found is not None, page.words
    return html.unescape(found[1])


def test_every_page_of_a_list_says_where_it_is(tenant: Caller, people: SignIn) -> None:
    for number in range(60):
        body = {"type": "DEVICE", "value": f"fp-{number}", "listType": "block"}
        assert tenant.post("/api/v1/lists", body).status == 201
        assert tenant.post("/api/v1/events", {"eventName": "page.viewed"}).status == 201
    ann = people("analyst")
    for path, words in (
        ("/console/lists?listType=block", "of 60 entries"),
        ("/console/decisions?sortBy=riskScore", "of 60 decisions"),
    ):
        first = ann.get(path)
        assert f"1–50 {words}" in first.words
        second = ann.get(following(first))
        assert f"51–60 {words}" in second.words
        assert "First page" in second.words
        # The number of a row means nothing where no page begins.
        assert f"1–50 {words}" in ann.get(f"{path}&row=51").words
    eve = people("auditor")
    page = eve.get("/console/audit")
    assert "1–50 of more than 50 entries" in page.words
    assert re.search(r"51–\d+ of (more than )?\d+ entries", eve.get(following(page)).words)


def test_a_long_reason_is_cut_and_all_of_it_is_there(tenant: Caller, people: SignIn) -> None:
    reason = ("Seen with cards of other people, and again. " * 11).strip()
    for value, said_of in (("fp-long", reason), ("fp-short", "Seen before.")):
        body = {"type": "DEVICE", "value": value, "listType": "block", "reason": said_of}
        assert tenant.post("/api/v1/lists", body).status == 201
    page = people("analyst").get("/console/lists?type=DEVICE").text
    rows = {one: row for row in page.split("<tr data-row>") for one in ("fp-long", "fp-short") if one in row}
    cut = re.search(r"<summary>(.*?)…", rows["fp-long"])
    assert cut is not None
    assert len(re.sub(r"<[^>]*>", "", cut[1])) < 90
    assert f"<p>{reason}</p>" in rows["fp-long"]
    assert "<details" not in rows["fp-short"]
