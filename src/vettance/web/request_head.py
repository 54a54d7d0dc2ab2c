"""The head of a request: what the parser lets through and HTTP does not, and what only the parser minds."""

import functools
import re
from collections.abc import Sequence
from typing import Final

from vettance.errors import Invalid, TargetTooLong

#: RFC 3986, section 3.2.2 and RFC 9110, section 7.2: a host, and perhaps a port. It may be empty.
_HOST: Final = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9\-._~!$&'()*+,;=%]*)(?::[0-9]*)?")
#: A method is a token (RFC 9110, section 9.1); none that is registered is longer than 17 characters.
_METHOD: Final = re.compile(rb"(?:\r?\n)*([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}) [^ ]")
#: What arrives of a method alone is no more than this: empty lines, the method, a blank.
METHOD_BYTES_MAX: Final = 80
_BEGUN: Final = re.compile(rb"(?:\r?\n)*[!#$%&'*+\-.^_`|~0-9A-Za-z]{0,64} ?")
_FRAMING: Final = frozenset((b"host", b"transfer-encoding"))
_END: Final = b"\r\n\r\n"
#: The method of a request is changed to this one where the parser must not learn which it was.
_STAND_IN: Final = b"POST"

#: What the parser takes apart: it counts the bytes of a URL with 16 bits.
TARGET_BYTES_MAX: Final = 2**16 - 1

NO_HTTP: Final = "This is no HTTP request."


class HeadRefused(Exception):
    """A head that is not answered: its message goes to the client, with the status of `kind`."""

    def __init__(self, message: str, kind: type[Invalid] = Invalid) -> None:
        super().__init__(message)
        self.kind = kind


def refusal_of(error: BaseException | None) -> Invalid:
    """Return what the client is answered when its head cannot be read, for this reason or another."""
    return error.kind(str(error)) if isinstance(error, HeadRefused) else Invalid(NO_HTTP)


def check_target(target: bytes) -> None:
    """Raise `HeadRefused` for a target that is too long. The parser would only say that it is bad."""
    if len(target) > TARGET_BYTES_MAX:
        message = f"The target of the request line must not be longer than {TARGET_BYTES_MAX:,} bytes."
        raise HeadRefused(message, TargetTooLong)


def check_head(version: str, headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Raise `HeadRefused` for a request that another server in front of us could read differently.

    `headers` have lower-case names. What the parser refuses by itself is not looked at again.
    """
    if version not in ("1.1", "1.0"):
        raise HeadRefused("The version of HTTP must be 1.1 or 1.0.")
    framing = [header for header in headers if header[0] in _FRAMING]
    hosts = [value for name, value in framing if name == b"host"]
    if len(hosts) > 1 or (not hosts and version == "1.1"):
        raise HeadRefused("A request must carry one Host header.")
    if hosts and not _is_host(hosts[0]):
        raise HeadRefused("The Host header must name a host, and perhaps a port.")
    if len(framing) == len(hosts):
        return
    # RFC 9112, section 6.1. Other codings have no meaning here; HTTP/1.0 has none, so a proxy may not see it.
    codings = [value.lower() for name, value in framing if name != b"host"]
    if version == "1.0" or codings != [b"chunked"]:
        raise HeadRefused("A body may be sent as chunked only, once, and with HTTP/1.1.")


def without_upgrade(url: bytes, version: str, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return the head of a request without what asks for another protocol, and with a method that does not.

    RFC 9110, section 7.8: a server may ignore `Upgrade`. The parser cannot: to it, the request ends with its
    head, and the body is the next request.
    """
    lines = [b"%s %s HTTP/%s" % (_STAND_IN, url, version.encode())]
    for name, value in headers:
        if name == b"connection":
            kept = [option for option in value.split(b",") if option.strip().lower() != b"upgrade"]
            value = b",".join(kept)  # noqa: PLW2901
        if name != b"upgrade":
            lines.append(name + b": " + value)
    return b"\r\n".join((*lines, b"", b""))


@functools.lru_cache(maxsize=256)
def _is_host(value: bytes) -> bool:
    return _HOST.fullmatch(value) is not None


class StrangeMethod:
    """A head with a method that the parser does not know, as it arrives.

    The parser gives up at such a method, so the path is never seen, and no answer could say which methods
    it does take. A whole head is given to a new parser with a method in its place that it knows.
    """

    def __init__(self) -> None:
        self._head = b""
        self.method = b""

    def add(self, data: bytes) -> bytes | None:
        """Take more; once the head is whole, return all with another method. Raises `HeadRefused`."""
        self._head += data
        found = _METHOD.match(self._head)
        if found is None:
            if _BEGUN.fullmatch(self._head) is None:
                raise HeadRefused(NO_HTTP)
        elif _END in self._head:
            self.method = found[1]
            return _STAND_IN + self._head[found.end(1) :]
        return None

    def __len__(self) -> int:
        """Return how many bytes have arrived."""
        return len(self._head)
