"""The wire: JSON in and out, moments in time, and the bounds that every body shares."""

import datetime as dt
import functools
import itertools
import math
from collections.abc import Generator, Iterable, Iterator
from typing import Any, Final, TypeVar

import msgspec

from vettance.errors import Invalid, InvalidBody, Refusal, Unprocessable
from vettance.wire.iso_8601 import read_iso

JSON = dict[str, Any]
Result = TypeVar("Result")

BODY_BYTES_MAX = 1024 * 1024
#: How deep anything in a body may be nested. Whatever walks through a body, or reads it back from the store,
#: stays far from the interpreter's own bound with it; what people send has less than twenty levels.
BODY_DEPTH_MAX = 200
#: More arrays and objects than all bounded members of a body can hold together, eight of 32 KiB with nothing
#: else in them: what is made of each takes longer than a hundred times as many letters.
BODY_BRACKETS_MAX = 131_072
OBJECT_BYTES_MAX = 32 * 1024
OBJECT_DEPTH_MAX = 10
OBJECT_KEYS_MAX = 500
STRING_CHARS_MAX = 1024
#: How many characters of the name of a member an answer shows, and how many faults of one kind it names: what
#: is sent to be refused must not come back larger than it went in.
NAME_CHARS_SHOWN = 64
FAULTS_NAMED_MAX = 20
#: How many values are looked at to name those that cannot be stored. Most bodies have fewer than a hundred.
VALUES_LOOKED_AT_MAX = 10_000
INTEGER_MAX = 2**64 - 1
INTEGER_MIN = -(2**63)

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()
_splitter = msgspec.json.Decoder(dict[str, msgspec.Raw])
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

    def raise_any(self, of_shape: type[Invalid] = InvalidBody) -> None:
        """Raise 400 when the shape is wrong, else 422 when the meaning is; return when neither is."""
        if self.shape:
            raise of_shape("The request is not well-formed; see details.", {**self.meaning, **self.shape})
        self.raise_unprocessable()

    def raise_unprocessable(self) -> None:
        """Raise 422 when anything is wrong, be it of shape or of meaning; return when nothing is."""
        if self.shape or self.meaning:
            details = {**self.meaning, **self.shape}
            raise Unprocessable("The request cannot be processed; see details.", details)


def put_first(faults: dict[str, str], paths: Iterable[str]) -> dict[str, str]:
    """Return faults with those of `paths` first, in their order, and the others as they were found."""
    return {path: faults[path] for path in paths if path in faults} | faults


_TOO_MANY_BRACKETS: Final = f"must not hold more than {BODY_BRACKETS_MAX:,} arrays and objects"


def parse_object(body: bytes) -> JSON:
    """Parse a request body that must be one JSON object.

    Refuses with 422 what holds too many arrays and objects or nests them too deeply, and with 400 what no
    store can keep: NUL characters, lone surrogates, NaN, Infinity, numbers out of range, trailing data and a
    byte order mark. Of duplicate keys the last wins.
    """
    brackets = count_brackets(body)
    try:
        value = _decoder.decode(body)
    except RecursionError:
        raise run_steps(too_deep(body)) from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise not_json() from None
    if type(value) is not dict:
        raise _not_an_object()
    # Counting brackets takes microseconds; hardly any body has enough of them to be looked at.
    if brackets > BODY_DEPTH_MAX and depth_of(body) > BODY_DEPTH_MAX:
        raise run_steps(too_deep(body))
    hold_storable(body, value)
    return value


def count_brackets(body: bytes) -> int:
    """Count the brackets of a body that open, those in texts included. Refuses too many with 422."""
    brackets = _brackets(body)
    if brackets > BODY_BRACKETS_MAX:
        raise Unprocessable("The request cannot be processed; see details.", {"body": _TOO_MANY_BRACKETS})
    return brackets


def hold_storable(body: bytes, value: JSON) -> None:
    """Refuse with 400 a body with values that no store can keep, once it is parsed to `value`."""
    if (b"\\" in body and b"\\u0000" in body and _has_nul(body)) or not _fits(value):
        raise Invalid("The body holds values that cannot be stored.", _unstorable(value))


def split_members(body: bytes) -> dict[str, msgspec.Raw]:
    """Return the members of a JSON object as they were sent. Refuses as `parse_object` does, but for what is
    too deep: raises `RecursionError`."""
    try:
        return _splitter.decode(body)
    except msgspec.ValidationError:
        raise _not_an_object() from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise not_json() from None


def decode_member(raw: msgspec.Raw) -> Any:
    """Parse one member that `split_members` returned; what is wrong inside of a text shows only here."""
    try:
        return _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise not_json() from None


def decode_text(sent: bytes) -> str:
    """Return JSON as the text that it is, where it is not parsed; raises `Invalid` if it is no UTF-8."""
    try:
        return sent.decode()
    except UnicodeDecodeError:
        raise not_json() from None


def kept(sent: bytes, value: JSON) -> bytes:
    """Return what to keep of a body that was parsed to `value` and held to its bounds.

    That is the body as sent; of a large one, and of one that may have been too deep, its value, written anew.
    Else blanks, and members that were overwritten by a later one of the same name, would let anything of any
    size into the store.
    """
    return sent if len(sent) <= OBJECT_BYTES_MAX and _brackets(sent) <= BODY_DEPTH_MAX else encode(value)


def _fits(value: JSON) -> bool:
    try:
        _pack(value)
    except OverflowError:
        return False
    return True


def too_deep(body: bytes) -> Generator[None, None, Refusal]:
    """Return, in steps, how a body is refused that cannot be parsed because it is too deep."""
    field = yield from deep_member(body)
    if field is None:
        return not_json()
    return Unprocessable("The request cannot be processed; see details.", {field: "is nested too deeply"})


def run_steps(steps: Generator[None, None, Result]) -> Result:
    """Do what is in steps in one go."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result


# How far each byte outside of texts goes down (brackets that open) or up (those that close).
_STEPS: Final = bytes(1 if byte in b"[{" else 255 if byte in b"]}" else 0 for byte in range(256))
#: A byte that stands less often than this in a text is looked for, not counted.
_RARE_MAX: Final = 256
#: So many brackets are looked at in one step: a millisecond.
_STEP_BRACKETS: Final = 8 * 1024
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")


def _brackets(text: bytes) -> int:
    """Count the brackets that open, those in texts included."""
    return _count(text, b"{") + _count(text, b"[")


def _count(text: bytes, byte: bytes) -> int:
    """Count a byte. To find a rare one in a large text takes a tenth of the time of looking at every byte."""
    if len(text) <= OBJECT_BYTES_MAX:
        return text.count(byte)
    place = -1
    for found in range(_RARE_MAX):
        place = text.find(byte, place + 1)
        if place < 0:
            return found
    return _RARE_MAX + text.count(byte, place + 1)


def at_texts(text: bytes) -> list[bytes]:
    """Cut valid JSON at its quotes: what stands outside of texts, and what in them, in turn."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return text.split(b'"')


def depth_of(text: bytes) -> int:
    """Return how deep valid JSON is nested.

    This costs less than parsing does, whatever the JSON looks like; a walk through the parsed value cost five
    times as much.
    """
    outside = b"".join(at_texts(text)[::2])
    steps = memoryview(outside.translate(_STEPS, _NO_BRACKETS)).cast("b")
    return max(itertools.accumulate(steps), default=0)


def is_deeper(text: bytes, depth: int) -> bool:
    """Tell whether valid JSON is nested deeper than so many levels; most has too few brackets for that."""
    return _brackets(text) > depth and depth_of(text) > depth


def keys_in(text: bytes) -> int:
    """Return how many keys valid JSON holds in all: outside of texts, a colon stands behind each key only."""
    return sum(part.count(b":") for part in at_texts(text)[::2])


def _has_nul(text: bytes) -> bool:
    """Tell whether JSON has an escaped NUL: one whose backslash is not itself escaped."""
    return b"\\u0000" in text.replace(b"\\\\", b"")


def _not_an_object() -> Invalid:
    return InvalidBody("The body must be a JSON object.", {"body": "must be an object"})


def not_json() -> Invalid:
    """Return how a body is refused that is not JSON."""
    return Invalid("The body is not valid JSON.", {"body": "must be valid JSON"})


def _unstorable(value: JSON) -> dict[str, str]:
    """Name values that no store can keep. What is too far inside to be looked for is named by the body."""
    details: dict[str, str] = {}
    for path, leaf in itertools.islice(_values(value, "body", 0), VALUES_LOOKED_AT_MAX):
        if type(leaf) is int and not INTEGER_MIN <= leaf <= INTEGER_MAX:
            details[path] = "must fit in 64 bits"
        elif type(leaf) is str and "\x00" in leaf:
            details[path] = "must not contain NUL characters"
        if len(details) == FAULTS_NAMED_MAX:
            break
    return details or {"body": "must hold no NUL characters, and integers of at most 64 bits"}


def _values(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield (field path, value) for a value and all keys and values below it; paths have a bounded length."""
    yield path, value
    if type(value) is dict:
        for key, member in value.items():
            yield path, key
            yield from _values(member, _below(path, shown_name(key), depth), depth + 1)
    elif type(value) is list:
        for index, member in enumerate(value):
            yield from _values(member, _below(path, str(index), depth), depth + 1)


def _below(path: str, name: str, depth: int) -> str:
    if depth >= OBJECT_DEPTH_MAX:
        return path
    return f"{path}.{name}" if depth else name


def shown_name(name: str) -> str:
    """Return the name of a member as an answer may show it: without NUL characters, and of bounded length."""
    return name.replace("\x00", "")[:NAME_CHARS_SHOWN]


def deep_member(body: bytes) -> Generator[None, None, str | None]:
    """Name the top-level member under which a body too deep to parse goes deepest, in steps.

    None when its brackets are not those of one JSON object.
    """
    parts = at_texts(body)
    brackets = [part.translate(None, _NO_BRACKETS) for part in parts[::2]]
    whole = b"".join(brackets)
    yield
    if len(parts) % 2 == 0 or not (yield from _is_one_object(whole)):
        return None
    depths: list[int] = []
    passed = itertools.accumulate(memoryview(whole.translate(_STEPS)).cast("b"))
    while some := list(itertools.islice(passed, _STEP_BRACKETS)):
        depths += some
        yield
    deepest = depths.index(max(depths))
    yield
    before = deepest - depths[deepest::-1].index(1)  # The last bracket that stands outside of this member.
    for index, ended in enumerate(itertools.accumulate(map(len, brackets))):
        if ended > before + 1:
            return shown_name(parts[max(0, 2 * index - 1)].decode("utf-8", "replace"))
    return None


def _is_one_object(brackets: bytes) -> Generator[None, None, bool]:
    """Tell whether brackets are those of one object, and none too many."""
    still_open = bytearray()
    for place, bracket in enumerate(brackets):
        if bracket in b"{[":
            if not still_open and (place or bracket != ord("{")):
                return False
            still_open.append(bracket)
        elif not still_open or bracket - still_open.pop() != 2:  # In ASCII two apart: [ and ], { and }.
            return False
        if place % _STEP_BRACKETS == 0:
            yield
    return bool(brackets) and not still_open


def check_object(value: JSON, path: str, faults: Faults) -> None:
    """Hold a free-form object to its bounds: depth, number of keys, size when serialised. Faults are 422."""
    if (fault := over_bounds(encode(value))) is not None:
        faults.meaning[path] = fault


def over_bounds(text: bytes) -> str | None:
    """Return which bound of free-form objects JSON without blanks exceeds, as a message; None if none."""
    return None if is_within_bounds(text) else bound_exceeded(text, len(text))


def bound_exceeded(text: bytes, size: int) -> str | None:
    """Return which bound of objects JSON exceeds that takes `size` bytes without blanks; None if none."""
    if is_deeper(text, OBJECT_DEPTH_MAX):
        return f"must not be nested deeper than {OBJECT_DEPTH_MAX} levels"
    if keys_in(text) > OBJECT_KEYS_MAX:
        return f"must not hold more than {OBJECT_KEYS_MAX} keys in all"
    if size > OBJECT_BYTES_MAX:
        return f"must not be larger than {OBJECT_BYTES_MAX} bytes as JSON"
    return None


def is_within_bounds(text: bytes) -> bool:
    """Tell whether no object within JSON can be over its bounds, at a glance: hardly any event can.

    False says nothing: brackets and colons in texts are counted too.
    """
    return (
        len(text) <= OBJECT_BYTES_MAX
        and _brackets(text) <= OBJECT_DEPTH_MAX
        and text.count(b":") <= OBJECT_KEYS_MAX
    )


def timestamp(moment_ms: int) -> str:
    """Write Unix milliseconds as the service writes moments: UTC, milliseconds, `Z`."""
    seconds, millis = divmod(moment_ms, 1000)
    return f"{_whole_second(seconds)}.{millis:03d}Z"


@functools.lru_cache(maxsize=256)
def _whole_second(seconds: int) -> str:
    return (_EPOCH + dt.timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()


def read_timestamp(text: str) -> int | None:
    """Read an ISO 8601 moment as Unix milliseconds; without an offset it is UTC.

    None when it is not one, and when it is out of the years that `timestamp` can write.
    """
    moment_ms = read_iso(text)
    return moment_ms if moment_ms is not None and _FIRST_MS <= moment_ms <= _LAST_MS else None


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
