"""Values as people read them."""

import re

import pytest
from babel.numbers import format_decimal

from vettance.console.guard import fits_token, is_own_origin, mask_token
from vettance.console.masking import Sight, ValueTokens, masked
from vettance.console.page import own_path
from vettance.console.rendering import TEMPLATES
from vettance.console.shown_values import ValueFormatter, locale_of

NOW_MS = 1_790_000_000_000
SHOW = ValueFormatter(NOW_MS, "Europe/Stockholm", "en_GB")


@pytest.mark.parametrize(
    ("ago_s", "words"),
    [
        (0, "just now"),
        (59, "59 s ago"),
        (240, "4 min ago"),
        (7200, "2 h ago"),
        (200_000, "2 d ago"),
        (-90, "in 1 min"),
    ],
)
def test_moments_are_told_by_their_distance(ago_s: int, words: str) -> None:
    assert f">{words}</time>" in SHOW.ago(NOW_MS - ago_s * 1000)


def test_hovering_tells_the_moment_in_the_zone_of_the_visitor_and_in_utc() -> None:
    assert 'title="21 Sep 2026, 16:13:20 CEST · 14:13:20 UTC"' in SHOW.ago(NOW_MS)
    assert 'title="21 Sep 2026, 14:13:20 UTC"' in ValueFormatter(NOW_MS).ago(NOW_MS)
    assert SHOW.calendar_day("2026-09-21") == "21 Sep 2026"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("payment.attempt", "payment.<wbr>attempt"),
        ("NEW_DEVICE_LARGE", "NEW_<wbr>DEVICE_<wbr>LARGE"),
        ("a" * 50, f"{'a' * 24}<wbr>{'a' * 24}<wbr>aa"),
        ("__<b>", "__<wbr>&lt;b&gt;"),
        ("-" * 30, f"{'-' * 24}<wbr>------"),
        ("", ""),
    ],
)
def test_lines_break_where_words_of_codes_end(text: str, shown: str) -> None:
    assert SHOW.code(text) == shown


def test_amounts_follow_the_locale() -> None:
    assert SHOW.money(1234.5, "eur") == "€1,234.50"
    assert ValueFormatter(NOW_MS, locale="de").money(1234.5, "EUR") == "1.234,50\xa0€"
    assert SHOW.money("much", "EUR") == "much"
    assert SHOW.money(3, "<b>") == "3"
    assert locale_of("de-AT,en;q=0.5") == "de_AT"
    assert locale_of("*, ../../etc/passwd") == "en"


def test_numbers_beyond_the_digits_of_a_double_have_a_power_of_ten() -> None:
    show = ValueFormatter(NOW_MS, locale="de")
    assert [show.number(value) for value in (999_999_999_999_999.0, 1e15, -1.7e308)] == [
        "999.999.999.999.999",
        "1E15",
        "-1,7E308",
    ]
    assert show.money(1e300, "eur") == "1E300 EUR"
    assert show.number(2**63 - 1) == "9.223.372.036.854.775.807"


@pytest.mark.parametrize(
    "locale", ["en", "de", "de_CH", "fr", "es", "pl", "pt_PT", "sv", "hi", "en_IN", "bn", "ar", "fa", "he"]
)
def test_whole_numbers_are_written_as_the_locale_data_says(locale: str) -> None:
    show = ValueFormatter(NOW_MS, locale=locale)
    for value in (0, 999, 1000, 12_345, 1_234_567, 10**12, -1000, -1_234_567):
        said = format_decimal(value, locale=locale) if abs(value) >= 1000 else str(value)
        assert show.number(value) == said


def test_shares_of_labels_come_with_their_interval() -> None:
    assert SHOW.interval(71, 100) == "71.0 % ± 9, 100 labelled"
    assert SHOW.interval(0, 0) == "–"
    assert SHOW.change(0.02, 0.015) == "+0.5 points"


def test_identifiers_are_shortened_in_the_middle_and_escaped() -> None:
    shown = SHOW.short("evt_01a20856d1767003a08b6c80b51c035f")
    assert ">evt_01a2…1c035f</span>" in shown
    assert 'data-whole="evt_01a20856d1767003a08b6c80b51c035f"' in shown
    assert SHOW.short("<script>") == '<span class="id">&lt;script&gt;</span>'


@pytest.mark.parametrize(
    ("value", "shown"),
    [("alice@example.com", "a…@example.com"), ("customer-1234", "…1234"), ("cus-1", "…"), ("@", "…")],
)
def test_personal_values_are_masked(value: str, shown: str) -> None:
    assert masked(value) == shown


def test_a_viewers_links_carry_tokens_that_open_for_the_same_tenant_and_kind_only() -> None:
    tokens = ValueTokens(b"s" * 32)
    sight = Sight(tokens, "ten_a", is_masked=True)
    name = sight.name("email", "alice@example.com")
    assert "alice" not in name
    assert name == sight.name("email", "alice@example.com")
    assert sight.value("email", name) == "alice@example.com"
    assert sight.value("ip", name) == name
    assert Sight(tokens, "ten_b", is_masked=True).value("email", name) == name
    assert sight.value("email", "~no token") == "~no token"
    assert Sight(tokens, "ten_a", is_masked=False).name("email", "alice@example.com") == "alice@example.com"


def test_events_are_masked_whole() -> None:
    sight = Sight(ValueTokens(b"s" * 32), "ten_a", is_masked=True)
    event = {
        "eventName": "payment",
        "customer": {"email": "alice@example.com", "metadata": {"phones": ["+46701234567"]}},
        "metadata": {"amount": 12.5, "currency": "EUR", "iban": 12345678901},
    }
    assert sight.member("", event) == {
        "eventName": "payment",
        "customer": {"email": "a…@example.com", "metadata": {"phones": ["…4567"]}},
        "metadata": {"amount": 12.5, "currency": "EUR", "iban": "…8901"},
    }


def test_tokens_of_forms_differ_by_page_and_fit_their_session_only() -> None:
    one, two = mask_token("secret", "/console/"), mask_token("secret", "/console/lists")
    assert one != two
    assert fits_token(one, "secret")
    assert fits_token(two, "secret")
    assert not fits_token(one, "other")
    assert not any(fits_token(text, "secret") for text in ("", "x", "====", one[:-1] + "A", "é"))


@pytest.mark.parametrize(
    ("origin", "host", "is_own"),
    [
        (b"https://desk.example", b"desk.example", True),
        (b"https://desk.example:443", b"desk.example", True),
        (b"https://desk.example", b"desk.example:443", True),
        (b"http://desk.example", b"desk.example", False),
        (b"https://desk.example:8443", b"desk.example", False),
        (b"https://evil.example", b"desk.example", False),
        (b"null", b"desk.example", False),
        (b"https://desk.example@evil.example", b"desk.example", False),
        (b"https://[::1", b"[::1", False),
    ],
)
def test_an_origin_is_ours_by_scheme_host_and_port(origin: bytes, host: bytes, is_own: bool) -> None:
    headers = {b"origin": origin, b"host": host}
    assert is_own_origin(headers, is_https=True, proxies=0) is is_own


def test_behind_a_proxy_the_host_may_be_that_of_the_proxy() -> None:
    headers = {
        b"origin": b"https://desk.example",
        b"host": b"inner:8080",
        b"x-forwarded-host": b"desk.example",
    }
    assert is_own_origin(headers, is_https=True, proxies=1)
    assert not is_own_origin(headers, is_https=True, proxies=0)


def test_only_paths_of_the_console_are_gone_back_to() -> None:
    assert (
        own_path("/console/decisions?customer=a%40b.example") == "/console/decisions?customer=a%40b.example"
    )
    assert own_path("/console/../api") == "/console/"
    assert own_path("/consoles") == "/console/"


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (0, "event", "0 events"),
        (1, "event", "1 event"),
        (2, "match", "2 matches"),
        (1, "entry", "1 entry"),
        (1, "review a day", "1 review a day"),
        (0.5, "review a day", "0.5 reviews a day"),
        (1234, "value more", "1,234 more values"),
    ],
)
def test_what_is_counted_is_named_for_one_and_for_several(number: float, noun: str, words: str) -> None:
    assert SHOW.count(number, noun) == words


def test_no_page_writes_a_plural_behind_a_number_that_may_be_one() -> None:
    nouns = (
        "attempts|cases|decisions|deliveries|entries|events|features|figures|frauds|hits|matches|rules|values"
    )
    behind = re.compile(rf"\}}\}}? (?:more |labelled )?(?:{nouns})\b")
    pages = [*TEMPLATES.glob("*.html"), *TEMPLATES.parent.glob("*.py")]
    # The words for both, a bound that is never one, and an example.
    others = "counted_nouns.py", "label_forms.py", "translated_templates.py"
    counted = [path for path in pages if path.name not in others]
    assert [(path.name, found[0]) for path in counted for found in behind.finditer(path.read_text())] == []
