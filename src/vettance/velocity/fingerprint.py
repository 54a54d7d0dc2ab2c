"""Fingerprints: keys and texts as 60-bit numbers that stay the same across restarts."""

import math
import secrets
from collections.abc import Callable
from typing import Final

from vettance.velocity.port import Value

# Two 30-bit digits: the widest integer that CPython keeps in 32 bytes, and that fits a signed 64-bit word.
_BITS: Final = 60
# The first twelve primes as bases make the Miller–Rabin test exact below 3.18e23
# (Sorenson and Webster, "Strong pseudoprimes to twelve prime bases", Mathematics of Computation 86, 2017).
_BASES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


def is_prime(number: int) -> bool:
    """Tell whether an integer below 3.18e23 is prime, without error."""
    if number < 2 or any(number % base == 0 for base in _BASES):
        return number in _BASES
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_is_strong(number, base, odd, twos) for base in _BASES)


def _is_strong(number: int, base: int, odd: int, twos: int) -> bool:
    power = pow(base, odd, number)
    if power in (1, number - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False


def draw_modulus() -> int:
    """Draw a random prime of 60 bits: the secret of a memory's fingerprints."""
    while True:
        candidate = secrets.randbits(_BITS) | 1 << (_BITS - 1) | 1
        if is_prime(candidate):
            return candidate


def is_modulus(number: int) -> bool:
    """Tell whether a number read back from a snapshot can be a modulus."""
    return number.bit_length() == _BITS and is_prime(number)


def fingerprinter(modulus: int) -> Callable[[Value], int | None]:
    """Return the function that turns a value into its fingerprint, or None when there is nothing to remember.

    A text is read as one large number and divided by a random secret prime (M. O. Rabin, "Fingerprinting by
    random polynomials", 1981, here with integers). Two different texts of n bits share a fingerprint for at
    most n / 59 of the 10^16 primes there are, however they were chosen: for 100,000 keys of 40 bytes the
    chance that any two meet is below 10^-5. It takes 0.25 µs where BLAKE2b takes 0.7 µs. Equal numbers are
    equal whatever their type (1 and 1.0); True is not 1; a text is no number. Texts hold no NUL: the door
    refuses them.
    """
    from_bytes = int.from_bytes

    def fingerprint(value: Value) -> int | None:
        if type(value) is str:
            return from_bytes(value.encode("utf-8", "surrogatepass"), "big") % modulus
        if value is None:
            return None
        if type(value) is float:
            if not math.isfinite(value):
                return None
            if value.is_integer():
                value = int(value)
        # 0xFF begins no UTF-8 text, so that these never meet one.
        return from_bytes(b"\xff" + repr(value).encode(), "big") % modulus

    return fingerprint


def number(value: Value) -> float | None:
    """Return a finite number as a float; anything else, truth values included, is nothing to add up."""
    if type(value) is float:
        return value if -_NUMBER_MAX <= value <= _NUMBER_MAX else None
    if type(value) is int:
        return float(value) if -_NUMBER_MAX <= value <= _NUMBER_MAX else None
    return None


# Far beyond any amount, and low enough that no sum of a billion of them overflows.
_NUMBER_MAX: Final = 1e290
