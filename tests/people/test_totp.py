"""One-time passwords, held to the table of RFC 6238 (appendix B), and recovery codes."""

import pytest

from vettance.people.totp import (
    code_at,
    enrolment_uri,
    matching_step,
    new_recovery_codes,
    new_totp_secret,
    recovery_digest,
)

SECRET = b"12345678901234567890"


@pytest.mark.parametrize(
    ("at_s", "code"),
    [
        (59, "287082"),
        (1111111109, "081804"),
        (1111111111, "050471"),
        (1234567890, "005924"),
        (20000000000, "353130"),
    ],
)
def test_codes_are_those_of_the_standard(at_s: int, code: str) -> None:
    assert code_at(SECRET, at_s // 30) == code
    assert matching_step(SECRET, code, at_s * 1000, 0) == at_s // 30


def test_a_code_is_taken_a_step_early_and_late_and_never_again() -> None:
    step = 59 // 30
    assert matching_step(SECRET, " 287 082", 30_000, 0) == step
    assert matching_step(SECRET, "287082", 89_000, 0) == step
    assert matching_step(SECRET, "287082", 90_000, 0) is None
    assert matching_step(SECRET, "287082", 59_000, step) is None


@pytest.mark.parametrize("code", ["", "28708", "2870822", "28708a", "²87082", "\ud800"])
def test_what_is_no_code_is_refused(code: str) -> None:
    assert matching_step(SECRET, code, 59_000, 0) is None


def test_recovery_codes_are_read_as_people_type_them() -> None:
    codes = new_recovery_codes()
    assert len(set(codes)) == 10
    assert recovery_digest("usr_1", codes[0]) == recovery_digest("usr_1", codes[0].upper().replace("-", " "))
    assert recovery_digest("usr_1", codes[0]) != recovery_digest("usr_2", codes[0])


def test_the_address_for_apps_names_who_and_what() -> None:
    uri = enrolment_uri(SECRET, "ada+x@example.com")
    assert uri.startswith("otpauth://totp/Vettance:ada%2Bx%40example.com?secret=GEZDGNBVGY3TQOJQ")
    assert len(new_totp_secret()) == 20
