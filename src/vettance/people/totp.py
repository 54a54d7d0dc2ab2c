"""Second factors: one-time passwords by the clock (TOTP, RFC 6238) and recovery codes."""

import base64
import hashlib
import hmac
import secrets
from typing import Final
from urllib.parse import quote

STEP_S: Final = 30
DIGITS: Final = 6
#: Codes of the step before and the step after are taken as well: clocks differ, and typing takes time.
_DRIFT_STEPS: Final = 1
#: RFC 4226, section 4, asks for 128 bits and recommends 160.
_SECRET_BYTES: Final = 20
RECOVERY_CODES: Final = 10
#: Without letters and digits that look like others.
_ALPHABET: Final = "23456789abcdefghjkmnpqrstuvwxyz"
_CODE_CHARS: Final = 12


def new_totp_secret() -> bytes:
    """Return a new secret."""
    return secrets.token_bytes(_SECRET_BYTES)


def secret_text(secret: bytes) -> str:
    """Write a secret as people type it into an app (base32)."""
    return base64.b32encode(secret).decode().rstrip("=")


def enrolment_uri(secret: bytes, email: str, issuer: str = "Vettance") -> str:
    """Return the address that apps read from a QR code (Key URI Format of Google Authenticator)."""
    label = f"{quote(issuer)}:{quote(email)}"
    return f"otpauth://totp/{label}?secret={secret_text(secret)}&issuer={quote(issuer)}"


def code_at(secret: bytes, step: int) -> str:
    """Return the code of a time step (RFC 4226, section 5.3)."""
    digest = hmac.digest(secret, step.to_bytes(8), hashlib.sha1)
    start = digest[-1] & 15
    number = int.from_bytes(digest[start : start + 4]) & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}d}"


def matching_step(secret: bytes, code: str, now_ms: int, after: int) -> int | None:
    """Return the time step that a code is of, later than `after` so that none is taken twice, or None."""
    typed = "".join(code.split()).encode(errors="replace")
    now = now_ms // 1000 // STEP_S
    found = None
    for step in range(now - _DRIFT_STEPS, now + _DRIFT_STEPS + 1):
        if hmac.compare_digest(code_at(secret, step).encode(), typed) and step > after:
            found = step
    return found


def new_recovery_codes() -> list[str]:
    """Return new recovery codes (about 59 bits each)."""
    made = ["".join(secrets.choice(_ALPHABET) for _ in range(_CODE_CHARS)) for _ in range(RECOVERY_CODES)]
    return ["-".join((one[:4], one[4:8], one[8:])) for one in made]


def recovery_digest(user_id: str, code: str) -> str:
    """Return what the store knows a recovery code by; capitals, spaces and hyphens do not matter."""
    plain = "".join(one for one in code.casefold() if one.isalnum())
    return hashlib.sha256(f"{user_id}:{plain}".encode(errors="replace")).hexdigest()
