"""What is sealed opens in its own place only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.tenants.vault import UnsealFailure, Vault

KEY = b"k" * 32


@given(st.binary(max_size=80), st.text(max_size=40), st.text(max_size=40))
def test_what_is_sealed_opens_in_its_own_place_only(content: bytes, tenant: str, row: str) -> None:
    sealed = Vault(KEY).seal(content, tenant, row)
    assert Vault(KEY).open(sealed, tenant, row) == content
    for vault, place in (
        (Vault(KEY), (tenant + "x", row)),
        (Vault(KEY), (tenant, row + "x")),
        (Vault(KEY), (tenant + row,)),
        (Vault(KEY), (tenant, row, "")),
        (Vault(b"other" * 7), (tenant, row)),
    ):
        with pytest.raises(UnsealFailure):
            vault.open(sealed, *place)


@given(st.integers(0, 40))
def test_a_changed_byte_is_noticed(at: int) -> None:
    sealed = bytearray(Vault(KEY).seal(b"whsec_x", "ten_1", "whs_1"))
    sealed[at % len(sealed)] ^= 1
    with pytest.raises(UnsealFailure):
        Vault(KEY).open(bytes(sealed), "ten_1", "whs_1")


def test_sealing_twice_gives_different_bytes_and_opening_twice_the_same_text() -> None:
    vault = Vault(KEY)
    one, two = vault.seal(b"s", "t", "w"), vault.seal(b"s", "t", "w")
    assert one != two
    assert vault.open_again(one, "t", "w") == vault.open_again(one, "t", "w") == "s"
    assert vault.open_again(two, "t", "w") == "s"
    with pytest.raises(UnsealFailure):
        vault.open_again(one, "t", "x")
    with pytest.raises(UnsealFailure):
        vault.open(b"", "t", "w")
