"""What an erasure passes over holds no name, however it is spelled; what names nobody is passed over."""

import json
import unicodedata
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vettance.retention.name_forms import Names
from vettance.retention.pseudonym import renamed

NAMES = (
    "c-1001",
    "7",
    "ü1",
    "i",
    "İpek-Straße-77",
    "straße.müller+shop@bücher.example",
    "ﬁΣας-Ångström",
    "\u0301",
)
#: Letters that fold alike, that change places, that begin escapes, and that end what is read at once.
PIECES = (
    *"\\%u\"' i7/n",
    "%C3",
    "\\u00",
    "\u0307",
    "\u0323",
    "İ",
    "ẞ",
    "ς",
    "\x1c",
    "\xa0",
    "\u200b",
    "Ꭰ",
    "ꭰ",
)


def spelled(letter: str) -> list[str]:
    """A letter as people, browsers and programs write it."""
    ways = {letter, letter.upper(), letter.lower(), letter.casefold()}
    ways |= {unicodedata.normalize(form, way) for form in ("NFD", "NFKC") for way in ways}
    units = [way.encode("utf-16-be").hex() for way in ways]
    escaped = {"".join(f"\\u{one[at : at + 4]}" for at in range(0, len(one), 4)) for one in units}
    in_url = {"".join(f"%{byte:02x}" for byte in way.encode()) for way in ways}
    return sorted({*ways, *escaped, *in_url, *map(quote, ways)})


@st.composite
def texts_about(draw: st.DrawFn, name: str) -> str:
    """A text that says the name in some spelling, or nearly, between other letters."""
    around = st.lists(st.sampled_from((*PIECES, "7")), max_size=4).map("".join)
    letters = [draw(st.sampled_from(spelled(letter))) for letter in name]
    if draw(st.booleans()):
        letters.insert(draw(st.integers(0, len(letters))), draw(st.sampled_from(PIECES)))
    return draw(around) + "".join(letters) + draw(around)


CASES = st.sampled_from(NAMES).flatmap(lambda name: st.tuples(st.just(name), texts_about(name)))


def in_json(value: Any, escape: str) -> bytes:
    """JSON with what must be escaped, with all beyond ASCII, or with every letter."""
    if escape == "all":
        text = "".join(f"\\u{ord(letter):04x}" if ord(letter) < 2**16 else letter for letter in value)
        return f'[{{"{text}": "{text}"}}]'.encode()
    return json.dumps([{value: value}], ensure_ascii=escape == "ascii").encode()


@given(CASES)
@example(("7", "\x1c7\x1c"))
@example(("c-1001", "\\u005cu0063-1001"))
def test_a_row_that_names_the_customer_is_never_passed_over(case: tuple[str, str]) -> None:
    name, text = case
    names = Names({name: "P"})
    if names.replaced(text) != text:
        assert names.may_be_in((text,))
        assert names.may_be_in((1, "\\", text, None, b"%4"))
        for escape in ("least", "ascii", "all"):
            content = in_json(text, escape)
            value = json.loads(content)
            assert renamed(value, names) != value
            assert names.may_be_in((content,)), content
            assert names.may_be_in(("%", content.decode())), content
    cut = "\udcc3" + text + "\udcff"
    if names.replaced(cut) != cut:
        assert names.may_be_in((b"\xc3", cut.encode(errors="surrogateescape"), "Ü"))
    if names.is_name(text):
        assert names.may_be_in((text,))


@pytest.mark.parametrize(
    "column",
    [
        "c-1002",
        b'{"customer":{"externalId":"c-1002","email":"anne@mail.example"},"metadata":{"amount":7}}',
        '{"city":"Zürich"}'.encode(),
        b'{"page":"https://shop.example/?q=a%20b&n=%C3%BC"}',
        rb'{"note":"she said \"c\/1001\" \u00fc"}',
        "İstanbul, Straße 17",
        b"\x1f\x8b\xff",
        None,
        1001,
    ],
)
def test_a_row_that_names_nobody_is_passed_over(column: object) -> None:
    names = Names({"c-1001": "P", "anna@mail.example": "Q", "7": "R"})
    assert not names.may_be_in(("evt_1", column, "DE"))
    assert names.may_be_in(("evt_1", column, "c-1001"))
    assert names.may_be_in((b'{"to":"ANNA@mail.example"}', column))
    assert names.may_be_in((column, b'["a","7"]'))
