"""The wire: JSON in and out, moments in time, and the bounds that every body shares."""

import datetime as dt
import functools
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from vettance.errors import Invalid, Refusal, Unprocessable

JSON = dict[str, Any]

BODY_BYTES_MAX = 1024 * 1024
#: How deep anything in a body may be nested. Whatever walks through a body, or reads it back from the store,
#: stays far from the interpreter's own bound with it; what people send has less than twenty levels.
BODY_DEPTH_MAX = 200
OBJECT_BYTES_MAX = 32 * 1024
OBJECT_DEPTH_MAX = 10
OBJECT_KEYS_MAX = 500
STRING_CHARS_MAX = 1024
INTEGER_MAX = 2**64 - 1
INTEGER_MIN = -(2**63)

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()
# MessagePack takes exactly the integers that fit in 64 bits, and looks at all of a body in a microsecond.
_pack = msgspec.msgpack.Encoder().encode
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIRST_MS = (dt.datetime.min.replace(tzinfo=dt.UTC) - _EPOCH) // dt.timedelta(milliseconds=1)
_LAST_MS = (dt.datetime.max.replace(tzinfo=dt.UTC) - _EPOCH) // dt.timedelta(milliseconds=1)

encode = _encoder.encode
#: Reads JSON that this service wrote or accepted before; what comes from outside goes through `parse_object`.
decode = _decoder.decode


class Wire(msgspec.Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=False):
    """A value that crosses the wire: snake_case inside, camelCase outside."""


class Faults:
    """Collects every fault of a request, so that the caller can mend all of them at once."""

    def __init__(self) -> None:
        self.shape: dict[str, str] = {}
        self.meaning: dict[str, str] = {}

    def raise_any(self) -> None:
        """Raise 400 when the shape is wrong, else 422 when the meaning is; return when neither is."""
        if self.shape:
            raise Invalid("The request is not well-formed; see details.", {**self.meaning, **self.shape})
        if self.meaning:
            raise Unprocessable("The request cannot be processed; see details.", self.meaning)


def parse_object(body: bytes) -> JSON:
    """Parse a request body that must be one JSON object.

    Refuses with 400 what no store can keep: NUL characters, lone surrogates, NaN, Infinity, numbers out of
    range, trailing data and a byte order mark. Of duplicate keys the last wins.
    """
    try:
        value = _decoder.decode(body)
    except RecursionError:
        raise _too_deep(body) from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise _not_json() from None
    if type(value) is not dict:
        raise Invalid("The body must be a JSON object.", {"body": "must be an object"})
    # Counting brackets takes microseconds; hardly any body has enough of them to be looked at.
    if body.count(b"{") + body.count(b"[") > BODY_DEPTH_MAX and _depth(value) > BODY_DEPTH_MAX:
        raise _too_deep(body)
    if b"\\u0000" in body or not _fits(value):
        _refuse_unstorable(value)
    return value


def _fits(value: JSON) -> bool:
    try:
        _pack(value)
    except OverflowError:
        return False
    return True


_TOO_DEEP = f"must not be nested deeper than {OBJECT_DEPTH_MAX} levels"


def _too_deep(body: bytes) -> Refusal:
    field = deep_member(body)
    if field is None:
        return _not_json()
    return Unprocessable("The request cannot be processed; see details.", {field: "is nested too deeply"})


def _depth(value: JSON) -> int:
    """Return how deep a JSON container is nested, itself counted, without recursion."""
    depth = 0
    level: list[Any] = [value]
    while level:
        depth += 1
        inner = (member for one in level for member in (one.values() if type(one) is dict else one))
        level = [member for member in inner if type(member) is dict or type(member) is list]
    return depth


def _not_json() -> Invalid:
    return Invalid("The body is not valid JSON.", {"body": "must be valid JSON"})


def _refuse_unstorable(value: JSON) -> None:
    details: dict[str, str] = {}
    for path, leaf in leaves(value):
        if type(leaf) is int and not INTEGER_MIN <= leaf <= INTEGER_MAX:
            details[path] = "must fit in 64 bits"
        elif type(leaf) is str and "\x00" in leaf:
            details[path] = "must not contain NUL characters"
    if details:
        raise Invalid("The body holds values that cannot be stored.", details)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (field path, scalar) for every scalar and every key below `value`."""
    if type(value) is dict:
        for key, member in value.items():
            yield path or "body", key
            yield from leaves(member, f"{path}.{key}" if path else key.replace("\x00", ""))
    elif type(value) is list:
        for index, member in enumerate(value):
            yield from leaves(member, f"{path}.{index}")
    else:
        yield path or "body", value


def deep_member(body: bytes) -> str | None:
    """Name the top-level member under which a body too deep to parse goes deepest.

    None when its brackets are not those of one JSON object.
    """
    still_open: list[bytes] = []
    deepest, name, deepest_name = 0, "body", None
    for token in re.finditer(rb'"((?:[^"\\]|\\.)*)"\s*(:)?|[\[{\]}]', body):
        text = token.group()
        if token.group(2) and len(still_open) == 1:
            name = token.group(1).decode("utf-8", "replace")[:64]
        elif text in (b"{", b"["):
            if not still_open and (text == b"[" or deepest):
                return None
            still_open.append(text)
            if len(still_open) > deepest:
                deepest, deepest_name = len(still_open), name
        elif text in (b"}", b"]") and (not still_open or still_open.pop() + text not in (b"{}", b"[]")):
            return None
    return None if still_open else deepest_name


def check_object(value: JSON, path: str, faults: Faults, *, body_bytes: int) -> None:
    """Hold a free-form object to its bounds: depth, number of keys, size when serialised. Faults are 422.

    `body_bytes` is the size of the body it came in; an object is not weighed when its body is light enough.
    """
    keys, depth = _measure(value, 1)
    if depth > OBJECT_DEPTH_MAX:
        faults.meaning[path] = _TOO_DEEP
    elif keys > OBJECT_KEYS_MAX:
        faults.meaning[path] = f"must not hold more than {OBJECT_KEYS_MAX} keys in all"
    elif body_bytes > OBJECT_BYTES_MAX and len(encode(value)) > OBJECT_BYTES_MAX:
        faults.meaning[path] = f"must not be larger than {OBJECT_BYTES_MAX} bytes as JSON"


def _measure(value: Any, depth: int) -> tuple[int, int]:
    """Return (keys in all, greatest depth) of a JSON container; stops looking below the greatest depth."""
    if depth > OBJECT_DEPTH_MAX:
        return 0, depth
    members = value.values() if type(value) is dict else value
    keys, deepest = len(value) if type(value) is dict else 0, depth
    for member in members:
        if type(member) is dict or type(member) is list:
            more, below = _measure(member, depth + 1)
            keys += more
            deepest = max(deepest, below)
    return keys, deepest


def timestamp(moment_ms: int) -> str:
    """Write Unix milliseconds as the service writes moments: UTC, milliseconds, `Z`."""
    seconds, millis = divmod(moment_ms, 1000)
    return f"{_whole_second(seconds)}.{millis:03d}Z"


@functools.lru_cache(maxsize=256)
def _whole_second(seconds: int) -> str:
    return (_EPOCH + dt.timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()


_ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[Tt ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:[Zz]|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII,
)


def read_timestamp(text: str) -> int | None:
    """Read an ISO 8601 moment as Unix milliseconds; without an offset it is UTC.

    None when it is not one, and when its offset moves it out of the years that `timestamp` can write.
    """
    if not _ISO.fullmatch(text):
        return None
    try:
        moment = dt.datetime.fromisoformat(text.upper())
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    moment_ms = (moment - _EPOCH) // dt.timedelta(milliseconds=1)
    return moment_ms if _FIRST_MS <= moment_ms <= _LAST_MS else None


def read_moment(value: Any) -> int | None:
    """Read an ISO 8601 string or Unix seconds (integer or decimal) as Unix milliseconds, or None."""
    if type(value) is str:
        return read_timestamp(value)
    if type(value) in (int, float) and math.isfinite(value) and abs(value) < 1e11:
        moment_ms = int(value * 1000)
        return moment_ms if moment_ms >= _FIRST_MS else None
    return None


def error_body(refusal: Refusal) -> JSON:
    """Shape a refusal as the error body that every endpoint answers with."""
    return {"error": {"code": refusal.code, "message": refusal.message, "details": refusal.details}}
