"""The vault: encrypts what the store must not hold in the clear, bound to the row that holds it."""

import hashlib
import secrets
from typing import Final

# The deployment's one secret has several uses; BLAKE2b's personalisation (RFC 7693, section 2.8) gives each
# a key of its own, so that nothing learnt from one helps with another.
_PERSON: Final = b"vettance-sealing"
# Backups were the first to know their secret by it.
_PERSON_OF_DIGEST: Final = b"vettance-backups"
_VERSION: Final = b"\x01"
# NIST SP 800-38D: 96-bit nonces may be random for up to 2^32 sealings under one key.
_NONCE_BYTES: Final = 12
_OPENED_MAX: Final = 10_000


class UnsealFailure(Exception):
    """Something sealed does not open: another key sealed it, or it was moved to another row."""


def secret_digest(secret: bytes) -> str:
    """Return what a store, or a backup, knows its secret by, in hex digits; it tells nothing of it."""
    return hashlib.blake2b(key=secret, digest_size=16, person=_PERSON_OF_DIGEST).hexdigest()


class Vault:
    """Seals and opens with AES-256-GCM. A place is the kind of row and whatever names it."""

    def __init__(self, secret: bytes) -> None:
        # Here, as most commands seal nothing and loading it takes long.
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._refused = InvalidTag
        self._cipher = AESGCM(hashlib.blake2b(key=secret, digest_size=32, person=_PERSON).digest())
        # Every delivery needs the same few secrets again; what opened once is kept by its sealed form.
        self._opened: dict[tuple[bytes, tuple[str, ...]], str] = {}

    def seal(self, content: bytes, *place: str) -> bytes:
        """Encrypt something for one place."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return _VERSION + nonce + self._cipher.encrypt(nonce, content, _bound(place))

    def open(self, sealed: bytes, *place: str) -> bytes:
        """Decrypt what was sealed for this place. Raises `UnsealFailure`."""
        if sealed[:1] != _VERSION or len(sealed) <= 1 + _NONCE_BYTES:
            raise UnsealFailure("what is stored has an unknown form")
        nonce, content = sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
        try:
            return self._cipher.decrypt(nonce, content, _bound(place))
        except self._refused:
            raise UnsealFailure("what is stored does not open with this deployment's key") from None

    def open_again(self, sealed: bytes, *place: str) -> str:
        """The same for a short text that is wanted often: it is kept once it was opened."""
        known = self._opened.get((sealed, place))
        if known is None:
            known = self.open(sealed, *place).decode()
            if len(self._opened) >= _OPENED_MAX:
                self._opened.clear()
            self._opened[sealed, place] = known
        return known


def _bound(place: tuple[str, ...]) -> bytes:
    # Lengths keep ("ab", "c") apart from ("a", "bc").
    return b"".join(b"%d:%s" % (len(part.encode()), part.encode()) for part in place)
