"""Passwords: which are taken, and that wrong ones are wrong."""

import pytest

from vettance.people.password import hash_password, refused_because, verify_password


@pytest.mark.parametrize(
    "password",
    [
        "short",
        "x" * 257,
        "password1234",
        "Administrator",
        "passwordpassword",
        "123456789012",
        "aaaaaaaaaaaa",
        "abcdefghijklmnop",
        "987654321098",
        "\ud800 lonely surrogate",
    ],
)
def test_a_weak_password_is_refused_with_a_reason(password: str) -> None:
    assert refused_because(password)


@pytest.mark.parametrize(
    "password", ["correct horse battery", "tester-password-1", "пароль для меня", "x1" + "é" * 254]
)
def test_a_password_that_nobody_guesses_is_taken(password: str) -> None:
    assert refused_because(password) is None


def test_only_the_password_of_a_hash_is_right() -> None:
    hashed = hash_password("correct horse battery")
    assert hashed.startswith("$argon2id$v=19$m=65536,t=2,p=1$")
    assert verify_password(hashed, "correct horse battery")
    assert not verify_password(hashed, "correct horse batterz")
    assert not verify_password(hashed, "correct horse battery" * 100)
    assert not verify_password(None, "correct horse battery")
    assert not verify_password("garbage", "correct horse battery")
    assert not verify_password(None, "\ud800")
