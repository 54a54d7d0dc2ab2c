"""What an e-mail address tells."""

import pytest
from disposable_email_domains import blocklist
from hypothesis import given
from hypothesis import strategies as st

from vettance.decisions.email import FREE_PROVIDERS, email_facts, is_disposable, looks_random


@pytest.mark.parametrize(
    "domain", ["mailinator.com", "guerrillamail.com", "10minutemail.com", "inbox.mailinator.com"]
)
def test_a_throw_away_domain_and_what_stands_below_it_are_disposable(domain: str) -> None:
    assert is_disposable(domain)


@pytest.mark.parametrize("domain", ["example.com", "gmail.com", "mailinators.example", "com", "", "co.uk"])
def test_an_ordinary_domain_is_not_disposable(domain: str) -> None:
    assert not is_disposable(domain)


def test_no_free_provider_is_called_disposable() -> None:
    assert not FREE_PROVIDERS & set(blocklist)


@pytest.mark.parametrize(
    ("address", "mailbox"),
    [
        ("j.o.h.n+shop@gmail.com", "john@gmail.com"),
        ("john@googlemail.com", "john@gmail.com"),
        ("a.b+x@example.org", "a.b@example.org"),
        ("+x@example.org", "+x@example.org"),
    ],
)
def test_aliases_share_one_mailbox(address: str, mailbox: str) -> None:
    assert email_facts(address).mailbox == mailbox


@pytest.mark.parametrize("address", ["", "@", "a", "a@", "@b.c", "a@b", "a b@c.de"])
def test_what_is_no_address_has_no_facts(address: str) -> None:
    facts = email_facts(address)
    assert not facts.valid
    assert facts.domain is None


@pytest.mark.parametrize(
    "local",
    [
        "john.smith", "maria.gonzalez1984", "krzysztof.brzeczyszczyk", "anna", "schwartz", "j.r.r.tolkien",
        "info", "nguyenvanan95", "hildegard.schwarzschild", "support2024", "o.wright", "christchurch",
    ],
)  # fmt: skip
def test_names_of_people_do_not_look_random(local: str) -> None:
    assert not looks_random(local)


@pytest.mark.parametrize("local", ["a8k2x9qz", "xkcdqwrtzp", "q7w2e9r4t1", "zxcvbnmasd", "bfjkqwlp"])
def test_typing_of_machines_looks_random(local: str) -> None:
    assert looks_random(local)


@given(st.text(max_size=80))
def test_any_text_has_facts(address: str) -> None:
    facts = email_facts(address)
    assert 0 <= facts.digits_ratio <= 1
    assert (facts.domain is not None) == facts.valid
