"""The body of a request: which type it must have, how large it may be, how long it may take to arrive."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from vettance.errors import Invalid, PayloadTooLarge, ShareUsedUp, UnsupportedMediaType
from vettance.limits.loop_time import RECEIPT_S, Pace
from vettance.limits.shares import DynamicShares
from vettance.web.asgi import Message
from vettance.wire.payload import BODY_BYTES_MAX

if TYPE_CHECKING:
    from vettance.web.admission import Admission

Receive = Callable[[], Awaitable[Message]]

#: Seconds in which a whole body must have arrived. A phone on a bad line sends 1 MiB in this time; a client
#: that sends a byte now and then must not hold memory for longer.
ARRIVAL_S_MAX: Final = 30.0

#: Bytes of large bodies that may be held at one time: so many of those that still arrive, and so many of
#: those at work. Of a body that says how long it is, all counts from the beginning. Two bounds, so that
#: clients who send slowly take no room from those at work; within each, tenants and their keys have shares.
HELD_BYTES_MAX: Final = 128 * 1024 * 1024
#: Bodies up to this size need no room: nearly all are smaller, and what is held of them is bounded by the
#: number of connections, of which tenants have shares as well.
SMALL_BYTES_MAX: Final = 64 * 1024

# What is still read of a body after its refusal was sent. A socket closed with unread bytes resets the
# connection, and the reset can overtake the answer; clients that see it stop well before these bounds.
_DRAIN_BYTES_MAX: Final = 8 * 1024 * 1024
_DRAIN_S_MAX: Final = 2.0

#: What a connection gives at one read, about.
_READ_BYTES: Final = 128 * 1024

_LIMIT_DIGITS: Final = len(str(BODY_BYTES_MAX))
_CHARSET: Final = re.compile(r"""charset\s*=\s*(?:"([^"]*)"|([^\s"]*))""")


class Disconnected(Exception):
    """The client went away before its request was complete. Nobody is left to answer."""


def is_json_type(content_type: bytes) -> bool:
    """Tell whether a `Content-Type` is `application/json`, in UTF-8 where it names a charset."""
    if content_type == b"application/json":
        return True
    kind, _, parameters = content_type.decode("latin-1").lower().partition(";")
    if kind.strip() != "application/json":
        return False
    for parameter in parameters.split(";"):
        charset = _CHARSET.fullmatch(parameter.strip())
        if charset is not None and (charset[1] or charset[2]) not in ("utf-8", "utf8"):
            return False
    return True


class Arrivals:
    """Bounds what all bodies together may hold, and ends the wait for those that take too long.

    One timer serves all requests.

    A timer for each costs several microseconds, of which nearly all are spent on bodies that are
    there already; one look a second at those still missing costs nothing that can be measured.
    """

    def __init__(self, longest_s: float = ARRIVAL_S_MAX, held_bytes_max: int = HELD_BYTES_MAX) -> None:
        self._longest_s = longest_s
        self.arriving = DynamicShares(held_bytes_max)
        self.at_work = DynamicShares(held_bytes_max)
        #: What large bodies take of the loop, while they arrive and when they are read.
        self.pace = Pace()
        self._look_every_s = min(1.0, longest_s / 2)
        self._since: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self._looking = False

    def __len__(self) -> int:
        """Return how many requests wait for their bodies."""
        return len(self._since)

    def begin(self, task: asyncio.Task[Any]) -> None:
        """Note that `task` begins to wait for a body."""
        loop = asyncio.get_running_loop()
        self._since[task] = loop.time()
        if not self._looking:
            self._looking = True
            loop.call_later(self._look_every_s, self._look, loop)

    def end(self, task: asyncio.Task[Any]) -> None:
        """Note that `task` waits no more."""
        self._since.pop(task, None)
        self._late.discard(task)

    def refuse_late(self, task: asyncio.Task[Any]) -> None:
        """Raise `Invalid` when `task` was cancelled because its body is late; else return."""
        if task not in self._late:
            return
        task.uncancel()
        raise Invalid(
            "The body did not arrive in time.",
            {"body": f"must arrive within {self._longest_s:g} seconds"},
            (("connection", "close"),),
        )

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        overdue = loop.time() - self._longest_s
        for task, since in list(self._since.items()):
            if since > overdue:
                break  # The dictionary is in order of arrival: the rest came later.
            del self._since[task]
            self._late.add(task)
            task.cancel()
        self._looking = bool(self._since)
        if self._looking:
            loop.call_later(self._look_every_s, self._look, loop)


class Body:
    """The body of one request, read at most once and only when its turn in the order of checks has come."""

    __slots__ = (
        *("_arrivals", "_arrived", "_headers", "_held", "_receive", "admission", "answer_bytes", "complete"),
        "holders",
    )

    def __init__(
        self,
        headers: Mapping[bytes, bytes],
        receive: Receive,
        arrivals: Arrivals,
        arrived: Callable[[], bytes | None] | None = None,
    ) -> None:
        """`arrived` returns the whole body without waiting, if the server has it already."""
        self._arrived = arrived
        self._headers = headers
        self._receive = receive
        self._arrivals = arrivals
        self._held = 0
        #: Who holds the room that a large body takes, from the outermost inwards: a tenant, one of its keys.
        self.holders: tuple[str, ...] = ()
        #: How its request was let in: its charge is given back where it is refused because there is no room.
        self.admission: Admission | None = None
        #: Room that its holders have for the answer while it is built.
        self.answer_bytes = 0
        self.complete = False

    async def read(self) -> bytes:
        """Return the whole body.

        Raises `UnsupportedMediaType` (415) for a body that is not JSON, `PayloadTooLarge` (413) before more
        than the limit is read, `Invalid` (400) when it takes too long, `ShareUsedUp` (503) when it is large
        and its sender has too much under way, `Disconnected` when the client leaves. The room it takes is
        given back by `release`.
        """
        headers = self._headers
        length = headers.get(b"content-length")
        sent = length not in (None, b"0") or b"transfer-encoding" in headers
        if sent:
            if not is_json_type(headers.get(b"content-type", b"")):
                raise UnsupportedMediaType("The body must be sent as application/json in UTF-8.")
            if headers.get(b"content-encoding", b"identity").lower() != b"identity":
                raise UnsupportedMediaType("The body must be sent without a content encoding.")
            if length is not None and _is_large(length):
                raise _too_large()
        if self._arrived is not None and (body := self._arrived()) is not None:
            if len(body) > BODY_BYTES_MAX:
                raise _too_large()
            self.complete = True
            return self._keep(body)
        task = asyncio.current_task()
        assert task is not None, "a server runs every request in a task"
        self._arrivals.begin(task)
        try:
            return self._keep(await self._collect())
        except asyncio.CancelledError:
            self._arrivals.refuse_late(task)
            raise
        finally:
            self._arrivals.end(task)

    def release(self) -> None:
        """Give back the room of the body: its request is answered."""
        if self._held:
            self._arrivals.at_work.give(self._held, *self.holders)
            self._held = 0

    def _keep(self, body: bytes) -> bytes:
        if len(body) > SMALL_BYTES_MAX:
            if not self._arrivals.at_work.take(len(body), *self.holders):
                raise _no_room()
            self._held = len(body)
        return body

    async def _collect(self) -> bytes:
        parts: list[bytes] = []
        size = held = 0
        try:
            held = self._make_room(int(self._headers.get(b"content-length", b"0")), held)
            while (message := await self._receive_more(is_large=held > 0))["type"] != "http.disconnect":
                part: bytes = message.get("body", b"")
                size += len(part)
                if size > BODY_BYTES_MAX:
                    raise _too_large()
                held = self._make_room(size, held)
                if not message.get("more_body", False):
                    self.complete = True
                    return b"".join((*parts, part)) if parts else part
                parts.append(part)
            raise Disconnected
        finally:
            if held:
                self._arrivals.arriving.give(held, *self.holders)

    def _make_room(self, size: int, held: int) -> int:
        """Take room for a body that is or will be so large; returns how much is held of it now.

        Raises `ShareUsedUp`, before any of the body is read where its length was declared.
        """
        if size <= max(held, SMALL_BYTES_MAX):
            return held
        if not self._arrivals.arriving.take(size - held, *self.holders):
            raise _no_room()
        return size

    async def _receive_more(self, *, is_large: bool) -> Message:
        """Receive more of the body; of a large one only when its sender has time of the loop left for that.

        The time is taken before, since many that begin at one moment would be read at one moment; what it
        took less, or more, is settled after.
        """
        if not is_large:
            return await self._receive()
        pace, holder = self._arrivals.pace, self.holders[0] if self.holders else ""
        await pace.spend(holder, _READ_BYTES * RECEIPT_S)
        message = await self._receive()
        pace.settle(holder, (len(message.get("body", b"")) - _READ_BYTES) * RECEIPT_S)
        return message

    @property
    def is_left_over(self) -> bool:
        """Whether more is on its way than the server can be left to skip before a next request."""
        if self.complete:
            return False
        headers = self._headers
        if b"transfer-encoding" in headers:
            return True
        length = headers.get(b"content-length", b"0")
        is_last = b"close" in headers.get(b"connection", b"").lower()
        return _is_large(length) or (is_last and bool(length.strip(b"0")))

    async def drain(self) -> None:
        """Read and drop what the client still sends, within bounds, so that it gets to read its answer."""
        dropped = 0
        try:
            async with asyncio.timeout(_DRAIN_S_MAX):
                while dropped < _DRAIN_BYTES_MAX:
                    message = await self._receive_more(is_large=True)
                    if message["type"] == "http.disconnect" or not message.get("more_body", False):
                        return
                    dropped += len(message.get("body", b""))
        except TimeoutError:
            return


def _is_large(length: bytes) -> bool:
    """Tell whether a declared length is over the limit. Digits are counted first: there may be thousands."""
    if len(length) < _LIMIT_DIGITS:
        return False
    return len(length.lstrip(b"0")) > _LIMIT_DIGITS or int(length) > BODY_BYTES_MAX


def _too_large() -> PayloadTooLarge:
    return PayloadTooLarge(
        "The body is too large.", {"body": f"must not be larger than {BODY_BYTES_MAX} bytes"}
    )


def _no_room() -> ShareUsedUp:
    return ShareUsedUp("You have as many large bodies under way as you can have. Send fewer at a time.")
