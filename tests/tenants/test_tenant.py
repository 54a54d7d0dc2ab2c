"""Keys: their form, their checksum, what is stored of them."""

import re

from hypothesis import given
from hypothesis import strategies as st

from vettance.tenants.keyring import KeyRing
from vettance.tenants.tenant import Key, Tenant, is_key, key_digest, key_hint, make_key


def test_a_key_has_the_form_of_the_contract() -> None:
    assert re.fullmatch(r"vtc_live_[0-9A-Za-z]{32}", make_key(live=True))
    assert re.fullmatch(r"vtc_test_[0-9A-Za-z]{32}", make_key(live=False))
    assert make_key(live=True) != make_key(live=True)


@given(st.integers(9, 40), st.sampled_from("abcXYZ019"))
def test_a_key_with_one_wrong_character_is_recognised_without_a_look_up(position: int, letter: str) -> None:
    key = make_key(live=True)
    wrong = key[:position] + letter + key[position + 1 :]
    assert is_key(key)
    assert is_key(wrong) == (wrong == key)


def test_what_is_stored_of_a_key_does_not_contain_it() -> None:
    key = make_key(live=True)
    assert key[9:] not in key_hint(key)
    assert key_digest(b"a" * 32, key) != key_digest(b"b" * 32, key)


def test_the_key_ring_finds_keys_until_they_are_revoked() -> None:
    pepper = b"p" * 32
    ring = KeyRing(pepper)
    text = make_key(live=False)
    tenant = Tenant(id="ten_1", name="One")
    key = Key(id="key_1", tenant="ten_1", digest=key_digest(pepper, text), hint="", created_at_ms=0)
    ring.replace([tenant], [key])
    assert ring.find(text) == (key, tenant)
    assert ring.find(make_key(live=False)) is None
    assert ring.find("vtc_test_") is None
    revoked = Key(id="key_1", tenant="ten_1", digest=key.digest, hint="", created_at_ms=0, revoked_at_ms=1)
    ring.replace([tenant], [revoked])
    assert ring.find(text) is None
